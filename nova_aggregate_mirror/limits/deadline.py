# SPDX-License-Identifier: Apache-2.0
"""One absolute deadline for everything that a call does.

It belongs to the current context, so that no thread or signal is needed and
native threads and greenlets are bounded alike.
"""

from collections.abc import Iterator
import contextlib
import contextvars
import math
import time


class _Deadline:
    """When time is up, and whether a request already waited in vain."""

    def __init__(self, expiry: float) -> None:
        self.expiry = expiry
        self.missed = False


_CURRENT: contextvars.ContextVar[_Deadline] = contextvars.ContextVar(
    'aggregate_mirror_deadline', default=_Deadline(math.inf))


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Bound everything inside; of nested deadlines the earliest holds."""
    expiry = min(_CURRENT.get().expiry, time.monotonic() + seconds)
    token = _CURRENT.set(_Deadline(expiry))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def remaining() -> float:
    """Seconds left, 0.0 when none are, infinity when there is no deadline."""
    return max(0.0, _CURRENT.get().expiry - time.monotonic())


def missed() -> bool:
    """Tell whether a request of the innermost ``within`` timed out.

    Version discovery hides a timeout behind another error, or behind none.
    """
    return _CURRENT.get().missed or not remaining()


@contextlib.contextmanager
def noted(*timeouts: type[Exception]) -> Iterator[None]:
    """Remember for ``missed`` when one of these errors is raised inside."""
    try:
        yield
    except timeouts:
        _CURRENT.get().missed = True
        raise


def allowance(ceiling: float | None) -> float | None:
    """Seconds that one socket operation may take; None is without limit.

    :raises TimeoutError: no time is left.
    """
    left = remaining()
    if not left:
        # A socket timeout of 0 would mean "do not block", not "give up".
        raise TimeoutError('the deadline has passed')
    allowed = left if ceiling is None else min(left, ceiling)
    return None if allowed == math.inf else allowed
