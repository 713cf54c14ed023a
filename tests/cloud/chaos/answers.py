# SPDX-License-Identifier: Apache-2.0
"""The answers that a user may get: pure, no I/O."""

from collections import abc
import dataclasses

from tests.cloud.chaos import faults

NONE = 0
"""The status of a request without an answer."""

STOCK = {
    'create': {200}, 'show': {200, 404}, 'rename': {200, 404},
    'zone': {200, 400, 404}, 'metadata': {200, 404},
    'add': {200, 404, 409}, 'remove': {200, 404}, 'delete': {200, 400, 404}}
"""What nova with a healthy placement answers to each operation, if the state
of the aggregate is unknown."""

# In nova's own answer when it removes a host that another request added after
# the aggregate was read: the host is deleted from the database, but
# list.remove on the older object fails.
_RACE = "<class 'ValueError'>"

# Nova depends on these, with or without this package. Placement, the journal
# and the agents are not among them.
_NEEDED = ('keystone', 'mariadb', 'rabbitmq')


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to one request; times are monotonic.

    :param allowed: the statuses that nova gives in this situation
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
        """Check whether nova gives this answer without faults."""
        return self.status in self.allowed

    @property
    def seconds(self) -> float:
        """Return how long the user waited for the answer."""
        return self.ended - self.began


def met(answer: Answer, windows: abc.Iterable[faults.Window]
        ) -> list[faults.Window]:
    """Return the faults that overlap the request."""
    return [window for window in windows
            if window.overlaps(answer.began, answer.ended)]


def delayed_by_mirror(answer: Answer, windows: abc.Iterable[faults.Window]
                      ) -> bool:
    """Check whether there were faults, but none that stock nova waits for."""
    targets = {window.target for window in met(answer, windows)}
    return bool(targets) and targets.isdisjoint(
        {*_NEEDED, 'nova-api-%s' % answer.controller,
         'database-of-%s' % answer.controller})


def excused(answer: Answer, windows: abc.Iterable[faults.Window]) -> bool:
    """Check whether stock nova would also have given an unexpected answer.

    That is: the error of nova's own race, when a host is added to and removed
    from an aggregate at the same time; no answer while this nova-api or one of
    its processes was killed; and a server error while a service that nova
    itself needs was unavailable.
    """
    if (answer.operation == 'remove' and answer.status == 500
            and answer.allowed == STOCK['remove'] and _RACE in answer.text):
        return True
    targets = {window.target for window in met(answer, windows)}
    if answer.status == NONE:
        return 'nova-api-%s' % answer.controller in targets
    return answer.status >= 500 and not targets.isdisjoint(
        {*_NEEDED, 'database-of-%s' % answer.controller})
