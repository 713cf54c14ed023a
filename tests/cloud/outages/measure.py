# SPDX-License-Identifier: Apache-2.0
"""A call of stock nova and of nova with this package, under the same fault."""

import contextlib
import dataclasses
import json
import pathlib
import time

import requests

from tests.cloud.outages import cases
from tests.cloud.outages import faults
from tests.cloud.outages import lane as lanes
from tests.cloud.outages import moments
from tests.cloud.outages import world as worlds
from tests.cloud import processes
from tests import patience

# Seconds of a call with this package in addition to stock nova's, if that has
# answered, and to inline_timeout.
PATIENCE = patience.seconds(10)
# Seconds in which the party's return lets a call end, and in which placement
# has to equal nova.
END = HEAL = patience.seconds(30)
ATTEMPTS = 3
# What the hook logs if it leaves the work to the agent.
UNMIRRORED = b'is not mirrored to placement yet'
POLL, LOOKS = 0.2, 2
WARM = 20.0


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer of nova-api.

    :param status: 0 if there was none within the limit
    :param seconds: until the answer, or the limit
    :param before: seconds of the hook before nova's method
    :param method: seconds of nova's method
    :param after: seconds of the hook after nova's method
    :param log: what nova-api has logged
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


@dataclasses.dataclass(frozen=True)
class Measured:
    """Both answers of a case, and how placement became equal to nova.

    :param healed: seconds from the end of the fault until placement equalled
        nova
    :param different: how placement differs from nova after ``HEAL``
    """

    case: cases.Case
    stock: Answer
    ours: Answer
    healed: float
    different: tuple[str, ...]


class Measurer:
    """The measurements of one lane.

    :param cut: seconds after which no answer is waited for
    """

    def __init__(self, lane: lanes.Lane, cut: float) -> None:
        self._lane = lane
        self._cut = cut
        self._world = worlds.World(lane)
        self._usable: set[str] = set()

    @property
    def journal(self) -> str:
        """Return the kind of database that has the lane's journal."""
        return self._lane.journal

    def check_wires(self) -> None:
        """Check that nova and the agent reach each party through its wire.

        :raises CloudError: when a fault would have no effect
        """
        unused = [name for name, wire in self._lane.wires.items()
                  if not wire.accepted and (
                      not name.startswith('journal')
                      or name.endswith(self.journal))]
        if unused:
            raise processes.CloudError('%s was not reached through its wire'
                                       % ' and '.join(unused))

    def measure(self, case: cases.Case) -> Measured:
        """Measure a case, first with stock nova.

        :raises CloudError: when it cannot be measured
        """
        if self._lane.journal != case.journal:
            self._lane.use(case.journal)
            self._usable.clear()
            self._lane.start(lanes.AGENT)
        self._world.tidy()
        stock = self._call(case, lanes.STOCK, self._cut)
        cut = min(self._cut, self._lane.inline_timeout + PATIENCE + (
            stock.seconds if stock.status else 0.0))
        ours = self._call(case, lanes.OURS, cut)
        healed, different = self._heal(case)
        return Measured(case, stock, ours, healed, different)

    def _call(self, case: cases.Case, name: str, cut: float) -> Answer:
        """Call a nova-api, and make the party fail at the moment."""
        self._make_usable(case, name)
        process = self._lane.processes[name]
        request = self._world.prepare(case.call)
        self._usable.discard(name)
        fault = faults.Fault(self._lane, case)
        recording = moments.Recording(case.moment, fault.begin)
        log = pathlib.Path(process.log)
        logged = log.stat().st_size
        self._lane.listener.record(recording)
        began, status, message = time.monotonic(), 0, ''
        try:
            answer = self._send(name, request, cut)
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
        self._lane.listener.record(None)
        if recording.error:
            raise processes.CloudError('the fault did not begin: %s' % (
                recording.error)) from recording.error
        if status and name == lanes.STOCK:
            self._usable.add(name)
        else:
            process.kill()
        return Answer(
            status, message, seconds, *recording.seconds(),
            log.read_bytes()[logged:].decode(errors='replace'))

    def _make_usable(self, case: cases.Case, name: str) -> None:
        """Start a nova-api if necessary, and use it.

        :raises CloudError: when it does not mirror although nothing fails
        """
        for _attempt in range(ATTEMPTS):
            if name not in self._usable or case.cold:
                self._lane.start(name)
            if self._warm(case, name):
                return
            self._usable.discard(name)
        raise processes.CloudError(
            '%s does not mirror without a fault; %s' % (
                name, processes.tail(self._lane.processes[name].log)))

    def _warm(self, case: cases.Case, name: str) -> bool:
        """Make a nova-api use every party, or all but the party of a case.

        :returns: whether everything was mirrored, so that no back-off is
            active; not on a machine that is too busy
        """
        calls = self._world.warming()
        log = pathlib.Path(self._lane.processes[name].log)
        logged = log.stat().st_size
        with contextlib.ExitStack() as stack:
            if case.party == 'keystone':
                # It needs no token of its own for this.
                calls = [worlds.Request('GET', '/os-aggregates')]
            elif case.cold:
                refused = faults.Fault(
                    self._lane, dataclasses.replace(case, fault='refuses'))
                stack.callback(refused.end)
                refused.begin()
            for each in calls:
                self._send(name, each, WARM).raise_for_status()
        return UNMIRRORED not in log.read_bytes()[logged:]

    def _send(self, name: str, request: worlds.Request, timeout: float
              ) -> requests.Response:
        return self._lane.send(
            name, request.method, request.path, request.body, timeout)

    def _heal(self, case: cases.Case) -> tuple[float, tuple[str, ...]]:
        """Wait until placement equals nova, and stays so."""
        began, equal = time.monotonic(), 0
        while True:
            waited = time.monotonic() - began
            different = tuple(
                each for each in self._world.differences()
                if case.exempt != cases.STORAGE
                or not each.startswith(worlds.STORAGE))
            equal = 0 if different else equal + 1
            # What was held by a wire may be written late.
            if equal == LOOKS or waited > HEAL:
                return waited, different
            time.sleep(POLL)


def _message(answer: requests.Response) -> str:
    """Return the message of an error, or ''."""
    if answer.status_code < 400:
        return ''
    try:
        return ' '.join(str(each['message'])
                        for each in answer.json().values())
    except (json.JSONDecodeError, AttributeError, TypeError, KeyError):
        return answer.text
