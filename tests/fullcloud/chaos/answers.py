# SPDX-License-Identifier: Apache-2.0
"""Which answers a user may get: pure, no I/O."""

from collections.abc import Iterable
import dataclasses

from tests.fullcloud.chaos import faults

NONE = 0
"""The status of a request that was not answered."""

STOCK = {
    'create': {200}, 'show': {200, 404}, 'rename': {200, 404},
    'zone': {200, 400, 404}, 'metadata': {200, 404},
    'add': {200, 404, 409}, 'remove': {200, 404}, 'delete': {200, 400, 404}}
"""What nova with a healthy placement answers to each operation, if nobody
knows in which state the aggregate is."""

# In nova's own answer when it removes a host that another request has added
# after the aggregate was read: it is gone from the database, but not from what
# was read, and list.remove fails.
_RACE = "<class 'ValueError'>"

# Nova cannot do without them, whoever mirrors its aggregates. Placement, the
# journal and the agents are not among them.
_NEEDED = ('keystone', 'mariadb', 'rabbitmq')


@dataclasses.dataclass(frozen=True)
class Answer:
    """What became of one request; times are monotonic.

    :param allowed: the statuses that nova gives then
    """

    operation: str
    controller: int
    began: float
    ended: float
    status: int
    text: str
    allowed: frozenset[int]

    @property
    def expected(self) -> bool:
        """Whether nova gives it while nothing is wrong."""
        return self.status in self.allowed

    @property
    def seconds(self) -> float:
        """How long the user has waited for it."""
        return self.ended - self.began


def met(answer: Answer, windows: Iterable[faults.Window]
        ) -> list[faults.Window]:
    """The faults that were there while the request was answered."""
    return [window for window in windows
            if window.overlaps(answer.began, answer.ended)]


def delayed_by_mirror(answer: Answer, windows: Iterable[faults.Window]
                      ) -> bool:
    """Whether there were faults, and none that stock nova waits for, too."""
    targets = {window.target for window in met(answer, windows)}
    return bool(targets) and targets.isdisjoint(
        {*_NEEDED, f'nova-api-{answer.controller}',
         f'database-of-{answer.controller}'})


def excused(answer: Answer, windows: Iterable[faults.Window]) -> bool:
    """Whether a stock nova would have given an unexpected answer, too.

    That is: an error of nova's own race, when one host is added to and removed
    from one aggregate at once; no answer while this nova-api was killed, or
    one of its processes; and a server error while something was away that
    nova itself needs.
    """
    if (answer.operation == 'remove' and answer.status == 500
            and answer.allowed == STOCK['remove'] and _RACE in answer.text):
        return True
    targets = {window.target for window in met(answer, windows)}
    if answer.status == NONE:
        return f'nova-api-{answer.controller}' in targets
    return answer.status >= 500 and not targets.isdisjoint(
        {*_NEEDED, f'database-of-{answer.controller}'})
