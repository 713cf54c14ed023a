# SPDX-License-Identifier: Apache-2.0
"""What nova may answer, and what may die, during which faults: pure."""

from collections import abc
import math

from tests.cloud import cloud
from tests.cloud.faults import disturbances
from tests.cloud.faults import users
from tests import patience

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
