# SPDX-License-Identifier: Apache-2.0
"""Rounds of operations and faults; after each, placement has to equal nova."""

from collections import abc
from concurrent import futures
import functools
import threading
import time

from tests.cloud.chaos import clients
from tests.cloud.chaos import faults
from tests.cloud.chaos import report
from tests.cloud import cloud
from tests.cloud import observer
from tests.cloud import output
from tests.cloud import processes
from tests import databases
from tests import patience

CLIENTS = 4
SHARED = 2
ROUND = 60
# A soak may take this many times as long until every kind of fault has
# occurred.
LONGEST = 3
POLL = 0.5
# A journal row that failed often waits up to 30 seconds for its next attempt.
HEALS_WITHIN = patience.seconds(120)
# An aggregate of another tool. It stays, and the next run uses it, too.
FOREIGN = 'f0e1a7e5-0000-4000-8000-000000000000'


class Soak:
    """Operations and faults on a cloud.

    :param kinds: of faults, see ``faults.KINDS``
    :param tell: is called with each progress message
    :raises CloudError: when placement does not equal nova at the beginning
    """

    round_seconds = ROUND

    def __init__(self, running: cloud.Cloud, seed: str,
                 kinds: abc.Collection[str],
                 tell: output.Tell) -> None:
        self.result = report.Result(seed)
        self._cloud = running
        self._tell = tell
        self._remove_all()
        self._tell('Waiting until placement equals nova')
        rows = self._settled()
        if report.differences(rows):
            raise processes.CloudError(
                'placement differs from nova before the first operation: was '
                '--without used on this cloud? Create a new cloud.\n'
                + observer.table(rows))
        self._add_foreign()
        self._clients: list[clients.Client] = []
        self._faults = faults.Faults(running, kinds, seed)
        self.result.kinds = self._faults.kinds()
        self.result.windows = self._faults.windows

    def run(self, seconds: float) -> None:
        """Soak the cloud; repair it and delete the aggregates at the end.

        It continues for up to ``LONGEST`` times as long until each kind of
        fault has occurred: the number of faults per minute depends on the
        machine.

        :raises CloudError: when a process does not start again
        """
        start = time.monotonic()

        def ended() -> bool:
            return is_over(time.monotonic() - start, seconds,
                           self.result.missing())

        try:
            shared = self._share()
            self._clients = [
                clients.Client(self._cloud, 'client-%s' % number,
                               self.result.seed, shared,
                               self.result.given.append)
                for number in range(1, CLIENTS + 1)]
            while not ended():
                began = time.monotonic()
                self._round(ended)
                self._rest(began)
        finally:
            self._faults.supervise()
            self._end()
            self._remove_all()
        self._tell('All aggregates are deleted')
        if not (self.result.different or self.result.open_rows):
            self._rest(time.monotonic())

    def _end(self) -> None:
        """Prepare the cloud for the deletion of all aggregates."""

    def _round(self, ended: abc.Callable[[], bool]) -> None:
        self.result.rounds += 1
        token = self._cloud.identity().get_token()
        stop = threading.Event()
        end = time.monotonic() + self.round_seconds
        tasks = self._faults.tasks('round-%s' % self.result.rounds, stop)
        for each in self._clients:
            each.token = token
            tasks.append(functools.partial(each.run, stop))
        with futures.ThreadPoolExecutor(len(tasks)) as pool:
            running = [pool.submit(task) for task in tasks]
            try:
                while not (ended() or time.monotonic() > end
                           or any(each.done() for each in running)):
                    self._faults.supervise()
                    self._tell(self._progress(), passing=True)
                    time.sleep(POLL)
            finally:
                stop.set()
                # A process that was unavailable may have caused others to
                # exit.
                while not all(each.done() for each in running):
                    self._faults.supervise()
                    time.sleep(POLL)
        for each in running:
            # A task only ends by itself with an error, which ends the soak.
            each.result()

    def _progress(self) -> str:
        done = '%s operations, ' \
               '%s faults' % (len(self.result.given), len(self.result.windows))
        return ', '.join([done, *self._faults.current()])

    def _rest(self, since: float) -> None:
        """Wait until everything runs and is repaired, and compare.

        What the journal repaired is counted apart from what was left to the
        full sync.

        :param since: when the changes to be repaired began
        """
        self._tell('Waiting until placement is repaired')
        self._faults.supervise()
        deadline = time.monotonic() + HEALS_WITHIN
        while self._open_rows() and time.monotonic() < deadline:
            time.sleep(POLL)
        self.result.add_left(report.differences(self._rows()), since)
        self.result.add_rest(self._settled(), self._open_rows())

    def _settled(self) -> list[observer.Row]:
        """Compare until placement equals nova, or the time is over."""
        deadline = time.monotonic() + HEALS_WITHIN
        while True:
            rows = self._rows()
            if all(row.equal for row in rows) or time.monotonic() > deadline:
                return rows
            time.sleep(POLL)

    def _open_rows(self) -> list[str]:
        """Read the journal rows that are not yet mirrored."""
        return ['row {}: {}, running {}, {} attempts: {}'.format(*row)
                for row in self._journal(
                    'SELECT id, host, running, attempts, last_error '
                    'FROM %sjournal.dirty WHERE mirrored_at IS NULL')]

    def _journal(self, statement: str) -> list[tuple]:
        """Read from the journal, whose name has a prefix."""
        where, _slash, prefix = self._cloud.config.database.rpartition('/')
        return databases.execute(where, statement % prefix)

    def _rows(self) -> list[observer.Row]:
        return observer.Observer(self._cloud, {FOREIGN: FOREIGN}).compare(
            self._cloud.nodes())

    def _add_foreign(self) -> None:
        """Add an aggregate that is not nova's to each provider."""
        for node in self._cloud.nodes():
            self._cloud.change_aggregates(
                node.uuid, lambda before: before | {FOREIGN})

    def _share(self) -> list[clients.Aggregate]:
        """Create the aggregates that all clients share."""
        nova = self._cloud.nova()
        made = []
        for number in range(1, SHARED + 1):
            body = nova.post('/os-aggregates', json={'aggregate': {
                'name': '%sshared-%s' % (clients.PREFIX, number)}}).json()
            made.append(clients.Aggregate(
                body['aggregate']['id'], body['aggregate']['name'],
                sure=False))
        return made

    def _remove_all(self) -> None:
        """Delete the aggregates of this run, or of a killed run."""
        self._cloud.delete_aggregates(clients.PREFIX)


def is_over(lasted: float, seconds: float, missing: abc.Collection[str]
            ) -> bool:
    """Check whether a soak has to end.

    :param lasted: seconds since its beginning
    :param seconds: its requested duration
    :param missing: the kinds of faults that have not occurred yet
    """
    return lasted >= seconds * (LONGEST if missing else 1)
