# SPDX-License-Identifier: Apache-2.0
"""Rounds of operations and faults; after each, placement has to equal nova.

The functions say what nova may answer, and what may die, during which faults.
"""

import collections
from collections import abc
from concurrent import futures
import functools
import math
import threading
import time
from typing import Any

from tests.cloud import cloud
from tests.cloud.faults import disturbances
from tests.cloud.faults import report
from tests.cloud.faults import table
from tests.cloud.faults import users
from tests.cloud import observer
from tests.cloud import output
from tests.cloud import processes
from tests.cloud import sql
from tests import patience

USERS, SHARED = 4, 2
ROUND = 60
# A soak may take this many times as long until every kind of fault has
# occurred: their number per minute depends on the machine.
LONGEST = 3
POLL = 0.5
# A journal row that failed often waits up to 30 seconds for its next attempt.
HEALS_WITHIN = patience.seconds(120)
# An aggregate of another tool. It stays, and the next run uses it, too.
FOREIGN = 'f0e1a7e5-0000-4000-8000-000000000000'
OTHERS = {FOREIGN: FOREIGN}
# Texts of a kind of problem, and characters of each.
SHOWN, LENGTH = 20, 300
# In nova's own answer when it removes a host that another request added after
# the aggregate was read: the host is deleted from the database, but
# list.remove on the older object fails.
_RACE = "<class 'ValueError'>"
# Nova depends on these, with or without this package. Placement, the journal
# and the agents are not among them.
_NEEDED = {'keystone', 'mariadb', 'rabbitmq'}
# Without its database the journal cannot record what has changed.
_JOURNAL = {'mariadb', 'journal-of-1', 'journal-of-2'}
# nova-api does not start without these, and gives up only some seconds later.
_AT_START = {'mariadb', 'rabbitmq', 'database-of-1', 'database-of-2'}
GIVES_UP_WITHIN = patience.seconds(60)

Windows = abc.Sequence[disturbances.Window]


class Soak:
    """Operations and faults on a cloud."""

    round_seconds = ROUND

    def __init__(self, running: cloud.Cloud, rows: abc.Sequence[table.Row],
                 seed: str, tell: output.Tell) -> None:
        self._cloud = running
        self._rows = rows
        self._seed = seed
        self._tell = tell
        self._problems: list[str] = []
        self._answers: list[users.Answer] = []
        self._rounds = self._left = 0
        self._remove_all()
        self._tell('Waiting until placement equals nova')
        compared = observer.compared(running, OTHERS, HEALS_WITHIN)
        if _differences(compared):
            raise processes.CloudError(
                'placement differs from nova before the first operation: was '
                '--without used on this cloud? Create a new cloud.\n'
                + observer.table(compared))
        for node in self._cloud.nodes():
            self._cloud.change_aggregates(
                node.uuid, lambda before: before | {FOREIGN})
        self._faults = disturbances.Disturbances(running, rows, seed)

    def run(self, seconds: float) -> list[report.Measured]:
        """Soak the cloud; repair it and delete the aggregates at the end."""
        start = time.monotonic()

        def ended() -> bool:
            return time.monotonic() - start >= seconds * (
                LONGEST if self._missing() else 1)

        try:
            shared = self._share()
            active = [users.User(
                self._cloud, 'user-%d' % number, self._seed, shared,
                self._answers.append) for number in range(1, USERS + 1)]
            while not ended():
                began = time.monotonic()
                self._round(active, ended)
                self._rest(began)
        finally:
            self._faults.supervise()
            self._end()
            self._remove_all()
        self._tell('All aggregates are deleted')
        if not self._problems:
            self._rest(time.monotonic())
        return self._measured()

    def _missing(self) -> set[str]:
        """Return the kinds of faults that have not occurred yet."""
        return self._faults.kinds - {
            window.kind for window in self._faults.windows}

    def _end(self) -> None:
        """Prepare the cloud for the deletion of all aggregates."""

    def _round(self, active: abc.Iterable[users.User],
               ended: abc.Callable[[], bool]) -> None:
        self._rounds += 1
        token = self._cloud.identity().get_token()
        stop = threading.Event()
        end = time.monotonic() + self.round_seconds
        tasks = self._faults.tasks('round-%s' % self._rounds, stop)
        for user in active:
            user.token = token
            tasks.append(functools.partial(user.run, stop))
        with futures.ThreadPoolExecutor(len(tasks)) as pool:
            running = [pool.submit(task) for task in tasks]
            try:
                while not (ended() or time.monotonic() > end
                           or any(task.done() for task in running)):
                    self._faults.supervise()
                    done = '%d operations, %d faults' % (
                        len(self._answers), len(self._faults.windows))
                    texts = [done, *self._faults.current()]
                    self._tell(', '.join(texts), passing=True)
                    time.sleep(POLL)
            finally:
                stop.set()
                # A process that was unavailable may have caused others to
                # exit.
                while not all(task.done() for task in running):
                    self._faults.supervise()
                    time.sleep(POLL)
        for task in running:
            # A task only ends by itself with an error, which ends the soak.
            task.result()

    def _rest(self, since: float) -> None:
        """Wait until everything runs and is repaired, and compare.

        What the journal repaired is counted apart from what was left to the
        full sync.
        """
        self._tell('Waiting until placement is repaired')
        self._faults.supervise()
        patience.wait(lambda: not self._open_rows(), HEALS_WITHIN, POLL)
        left = _differences(observer.compared(self._cloud, OTHERS))
        self._left += left
        if left and not lacked_journal(self._faults.windows, since):
            self._problems.append('the journal lost %d associations' % left)
        compared = observer.compared(self._cloud, OTHERS, HEALS_WITHIN)
        self._problems += self._open_rows()[:SHOWN]
        if _differences(compared):
            self._problems.append('placement differs from nova\n'
                                  + observer.table(compared))
        self._problems += ['%s lost an association that is not of nova'
                           % row.node.name
                           for row in compared if not row.foreign]

    def _open_rows(self) -> list[str]:
        """Read the journal rows that are not yet mirrored."""
        rows = self._journal(
            'SELECT id, host, running, attempts, last_error '
            'FROM dirty WHERE mirrored_at IS NULL')
        texts = ['open row {}: {}, running {}, {} attempts: {}'.format(*row)
                 for row in rows]
        return [text[:LENGTH] for text in texts]

    def _journal(self, statement: str) -> list[Any]:
        """Read from the journal."""
        return sql.execute(
            self._cloud.config.database_url('journal'), statement)

    def _share(self) -> list[users.Aggregate]:
        """Create the aggregates that all users share."""
        shared = []
        for number in range(1, SHARED + 1):
            name = '%sshared-%d' % (users.PREFIX, number)
            answer = self._cloud.nova().post(
                '/os-aggregates', json={'aggregate': {'name': name}}).json()
            shared.append(users.Aggregate(
                answer['aggregate']['id'], name, sure=False))
        return shared

    def _remove_all(self) -> None:
        """Delete the aggregates of this run, or of a killed run."""
        self._cloud.delete_aggregates(users.PREFIX)

    def _measured(self) -> list[report.Measured]:
        """Return how often each fault occurred, and what came of all."""
        windows = self._faults.windows
        times = collections.Counter(
            (window.target, window.kind) for window in windows)
        patient = [answer.seconds for answer in self._answers
                   if delayed_by_mirror(answer, windows)]
        seconds = [answer.seconds for answer in self._answers]
        figures: dict[str, report.Figure] = {
            'seed': self._seed, 'rounds': self._rounds,
            'operations': len(self._answers), 'faults': len(windows),
            'slowest answer': max(seconds, default=0.0),
            'slowest by mirroring': max(patient, default=0.0),
            'left to the full sync': self._left, **self._figures()}
        total = table.Row(table.NONE, table.NONE, self._rows[0].moment)
        measured = [report.Measured(
            total, figures, self._problems + self._verdict(),
            self._operations())]
        for row in self._rows:
            figures = {'times': times[row.party, row.kind]}
            measured.append(report.Measured(row, figures))
        return measured

    def _figures(self) -> dict[str, report.Figure]:
        """Return what else was measured."""
        return {}

    def _verdict(self) -> list[str]:
        """List what was wrong with the answers and the processes."""
        windows = self._faults.windows
        problems = [] if self._answers else ['nothing was done']
        for kind in sorted(self._missing()):
            problems.append('no fault of kind %s' % kind)
        for death in crashed(windows):
            problems.append('%s died' % death.target)
        wrong = [answer for answer in self._answers if not answer.expected
                 and not excused(answer, windows)]
        for answer in wrong[:SHOWN]:
            problems.append(described(answer, windows)[:LENGTH])
        return problems

    def _operations(self) -> str:
        counts = collections.Counter(
            (answer.operation, answer.status) for answer in self._answers)
        statuses = sorted({status for _operation, status in counts})
        rows: list[list[object]] = [['operation', *statuses]]
        for operation in users.STOCK:
            numbers = [counts[operation, status] for status in statuses]
            rows.append([operation, *numbers])
        return output.columns(rows)


def _differences(rows: abc.Iterable[observer.Row]) -> int:
    """Count the associations in which placement differs from nova."""
    return sum(len(row.nova ^ row.placement) for row in rows)


def _met(answer: users.Answer, windows: Windows
         ) -> list[disturbances.Window]:
    """Return the faults that overlap the request."""
    return [window for window in windows
            if window.overlaps(answer.began, answer.ended)]


def delayed_by_mirror(answer: users.Answer, windows: Windows) -> bool:
    """Check whether there were faults, but none that stock nova waits for."""
    targets = {window.target for window in _met(answer, windows)}
    return bool(targets) and targets.isdisjoint({
        *_NEEDED, 'nova-api-%d' % answer.controller,
        'database-of-%d' % answer.controller})


def excused(answer: users.Answer, windows: Windows) -> bool:
    """Check whether stock nova would also have given an unexpected answer.

    That is: the error of nova's own race, when a host is added to and removed
    from an aggregate at the same time; no answer while this nova-api or one of
    its processes was killed; and a server error while a service that nova
    itself needs was unavailable.
    """
    if (answer.operation == 'remove' and answer.status == 500
            and answer.allowed == users.STOCK['remove']
            and _RACE in answer.text):
        return True
    targets = {window.target for window in _met(answer, windows)}
    if not answer.status:
        return 'nova-api-%d' % answer.controller in targets
    needed = {*_NEEDED, 'database-of-%d' % answer.controller}
    return answer.status >= 500 and not targets.isdisjoint(needed)


def lacked_journal(windows: Windows, since: float) -> bool:
    """Check whether a journal could not be written since a moment."""
    return any(window.target in _JOURNAL and window.overlaps(since, math.inf)
               for window in windows)


def crashed(windows: Windows) -> list[disturbances.Window]:
    """Return deaths of mirror processes without an excuse.

    Unavailable dependencies of nova excuse nova-api. An agent needs nothing to
    run, and is never excused.
    """
    return [window for window in windows if window.kind == disturbances.DIED
            and _has_crashed(window, windows)]


def _has_crashed(death: disturbances.Window, windows: Windows) -> bool:
    if not death.target.startswith('nova-api'):
        return death.target in cloud.AGENTS
    began = death.began - GIVES_UP_WITHIN
    needed = [window for window in windows if window.target in _AT_START]
    return not any(window.overlaps(began, death.noticed) for window in needed)


def described(answer: users.Answer, windows: Windows) -> str:
    """Describe an unexpected answer for people."""
    during = ', '.join(map(str, _met(answer, windows)))
    return '%s by controller %d, %.1f s: %s instead of %s, during %s: %s' % (
        answer.operation, answer.controller, answer.seconds,
        answer.status or 'none', sorted(answer.allowed), during or 'nothing',
        answer.text)
