# SPDX-License-Identifier: Apache-2.0
"""A call of stock nova and of nova with this package, under the same fault."""

from collections import abc
import contextlib
import dataclasses
import itertools
import json
import time

import requests

from tests.cloud.faults import kinds
from tests.cloud.faults import lane as lanes
from tests.cloud.faults import moments
from tests.cloud.faults import report
from tests.cloud.faults import scene as scenes
from tests.cloud.faults import table
from tests.cloud import processes
from tests import patience

# Seconds after which no answer of stock nova is waited for; the selection of
# pairs has to be short.
CUT, SHORT_CUT = 60.0, 8.0
# Seconds that the hook may take in addition to inline_timeout.
MARGIN = patience.seconds(1)
# Seconds of a call with this package in addition to stock nova's, if that has
# answered, and to inline_timeout.
PATIENCE = patience.seconds(10)
# Seconds in which the party's return lets a call end, and in which placement
# has to equal nova.
END = HEAL = patience.seconds(30)
ATTEMPTS = 3
# What the hook logs if it leaves the work to the agent.
UNMIRRORED = 'is not mirrored to placement yet'
# The host of another cell.
OTHER_CELL = 'cell-2'
WARM = 20.0


@dataclasses.dataclass(frozen=True)
class TimedAnswer:
    """An answer of nova-api.

    :param status: 0 if there was none within the limit
    :param seconds: until the answer, or the limit
    :param before: seconds of the hook before nova's method
    :param after: seconds of the hook after nova's method
    """

    status: int
    message: str
    seconds: float
    before: float
    method: float
    after: float
    log: str = dataclasses.field(default='', repr=False)

    @property
    def hook(self) -> float:
        """Return the seconds that the hook added."""
        return self.before + self.after

    def figures(self, prefix: str = '') -> dict[str, report.Figure]:
        """Return the answer as columns of the report."""
        return {prefix + 'status': self.status,
                prefix + 'message': self.message,
                prefix + 'seconds': self.seconds}

    def __str__(self) -> str:
        if not self.status:
            return 'missing (%s)' % (self.message or 'no answer in time')
        return ' '.join(filter(None, (str(self.status), self.message)))


class Caller:
    """The measurements of one lane; ``healthy`` has those without a fault."""

    def __init__(self, lane: lanes.Lane, healthy: dict[str, TimedAnswer]
                 ) -> None:
        self._lane = lane
        self._healthy = healthy
        self._usable: set[str] = set()
        self._setting: tuple[object, ...] = ()
        self._numbers = itertools.count(1)
        self._scene = scenes.Scene(lane)
        self._host = self._scene.name('compute', 1)
        for cell, host in ((lanes.CELL, self._host),
                           (OTHER_CELL, self._scene.name('compute', 2))):
            self._scene.create_hosts(cell, [host])
            self._scene.place(host, [scenes.SECOND])

    def check_wires(self) -> None:
        """Check that nova and the agent reach each party through its wire."""
        # The lane has used only one of the journals yet.
        used = [name for name in self._lane.wires if name.endswith(
            self._lane.journal) or not name.startswith('journal')]
        unused = [name for name in used if not self._lane.wires[name].accepted]
        if unused:
            raise processes.CloudError('%s was not reached through its wire'
                                       % ' and '.join(unused))

    def measure(self, row: table.Row) -> report.Measured:
        """Measure a row, first with stock nova."""
        if self._setting != (row.journal, row.inline_timeout):
            self._setting = (row.journal, row.inline_timeout)
            self._lane.use(row.journal, {'aggregate_mirror': {
                'inline_timeout': str(row.inline_timeout)}})
            self._usable.clear()
            self._lane.start(lanes.AGENT)
        self._scene.remove_call()
        cut = CUT if row.inline_timeout == table.INLINE_TIMEOUT else SHORT_CUT
        stock = self._call(row, lanes.STOCK, cut)
        if row.kind == table.NONE:
            self._healthy[row.call] = stock
        ours = self._call(row, lanes.OURS, min(
            cut, row.inline_timeout + PATIENCE + (
                stock.seconds if stock.status else 0.0)))
        healed, differences = self._scene.heal(
            HEAL, and_storage=row.exempt != table.STORAGE)
        return report.Measured(
            row, {**stock.figures(report.STOCK),
                  "stock seconds in nova's method": stock.method,
                  **ours.figures(),
                  "seconds of the hook before nova's method": ours.before,
                  "seconds in nova's method": ours.method,
                  "seconds of the hook after nova's method": ours.after,
                  report.HEALED: healed},
            (*problems(row, stock, ours, self._healthy), *differences),
            'stock: %s\nours: %s\n%s' % (stock, ours, ours.log))

    def _prepare(self, call: str) -> lanes.Request:
        """Prepare nova and placement for a call, and return its request."""
        scene, aggregates = self._scene, [scenes.SECOND]
        if call == 'remove':
            aggregates.append(scenes.FIRST)
        scene.place(self._host, aggregates)
        if call in ('add', 'remove'):
            return scene.action('%s_host' % call, self._host, scenes.FIRST)
        name = scene.name(call, next(self._numbers))
        if call == 'delete':
            aggregate = scene.create_aggregate(name)
            scene.write(scene.storage, {scene.foreign, aggregate})
            return scene.deletion(name)
        scene.create_hosts(lanes.CELL, [name])
        scene.place(name, [scenes.FIRST, scenes.SECOND], leaving=True)
        return scene.departure(name)

    def _call(self, row: table.Row, name: str, cut: float) -> TimedAnswer:
        """Call a nova-api, and make the party fail at the moment."""
        self._make_usable(row, name)
        process = self._lane.processes[name]
        request = self._prepare(row.call)
        self._usable.discard(name)
        fault = kinds.Fault(self._lane, row)
        recording = moments.Recording(row.moment, fault.begin)
        log = processes.NewLines(process.log)
        began, status, message = time.monotonic(), 0, ''
        with self._lane.listener.record(recording):
            try:
                answer = self._lane.send(name, request, cut)
                status, message = answer.status_code, _message(answer)
            except requests.ReadTimeout:
                pass
            except requests.ConnectionError as exc:
                message = str(exc)
            finally:
                seconds = time.monotonic() - began
                fault.end()
            if not status and name == lanes.OURS:
                # The time of the hook after nova's method counts, too.
                recording.wait_done(END)
        if recording.error:
            raise processes.CloudError('the fault did not begin: %s' % (
                recording.error)) from recording.error
        if status and name == lanes.STOCK:
            self._usable.add(name)
        else:
            process.kill()
        return TimedAnswer(
            status, message, seconds, *recording.seconds(), log.read())

    def _make_usable(self, row: table.Row, name: str) -> None:
        """Start a nova-api if necessary, and use it."""
        for _attempt in range(ATTEMPTS):
            if name not in self._usable or row.cold:
                self._lane.start(name)
            if self._warm(row, name):
                return
            self._usable.discard(name)
        log = self._lane.processes[name].log
        raise processes.CloudError(
            '%s does not mirror without a fault; %s' % (
                name, processes.tail(log)))

    def _warm(self, row: table.Row, name: str) -> bool:
        """Make a nova-api use every party, or all but the party of a row.

        :returns: whether everything was mirrored, so that no back-off is
            active; not on a machine that is too busy
        """
        calls = [self._scene.action(name, self._host, scenes.WARM)
                 for name in ('add_host', 'remove_host')]
        log = processes.NewLines(self._lane.processes[name].log)
        with contextlib.ExitStack() as stack:
            if row.party == 'keystone':
                # It needs no token of its own for this.
                calls = [lanes.Request('GET', '/os-aggregates')]
            elif row.cold:
                refused = kinds.Fault(
                    self._lane, dataclasses.replace(row, kind='refuses'))
                stack.callback(refused.end)
                refused.begin()
            for call in calls:
                self._lane.send(name, call, WARM).raise_for_status()
        return UNMIRRORED not in log.read()


def _message(answer: requests.Response) -> str:
    """Return the message of an error, or ''."""
    if answer.status_code < 400:
        return ''
    try:
        errors = answer.json().values()
        return ' '.join(str(error['message']) for error in errors)
    except (json.JSONDecodeError, AttributeError, TypeError, KeyError):
        return answer.text


def problems(row: table.Row, stock: TimedAnswer, ours: TimedAnswer,
             healthy: abc.Mapping[str, TimedAnswer]) -> list[str]:
    """List how the answers break the promise.

    The answer has to be stock nova's under the same fault, or without a fault:
    stock nova also fails or waits because of its own mirroring, and this
    package does not.
    """
    limit, texts = row.inline_timeout + MARGIN, []
    allowed = {(answer.status, answer.message)
               for answer in (stock, healthy[row.call])}
    waits = row.exempt in (table.TIME, table.OF_NOVA)
    if (ours.status, ours.message) not in allowed and not (
            waits and not ours.status):
        texts.append('the answer is %s' % ours)
    if ours.hook > limit and row.exempt != table.TIME:
        texts.append('the hook took %.1f s' % ours.hook)
    if stock.status and ours.seconds > stock.seconds + limit and not waits:
        texts.append('it took %.1f s longer' % (ours.seconds - stock.seconds))
    return texts
