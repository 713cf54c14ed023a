# SPDX-License-Identifier: Apache-2.0
"""Absolute deadline of a call, shared by all of its I/O.

It is stored in the current context: this needs no thread or signal and works
with native threads and greenlets.
"""

from collections.abc import Iterator
import contextlib
import contextvars
import math
import time


class _Deadline:
    """An expiry time, and whether a request has timed out before it."""

    def __init__(self, expiry: float) -> None:
        self.expiry = expiry
        self.missed = False


_CURRENT: contextvars.ContextVar[_Deadline] = contextvars.ContextVar(
    'aggregate_mirror_deadline', default=_Deadline(math.inf))


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Bound the context's I/O; the earliest of nested deadlines applies."""
    expiry = min(_CURRENT.get().expiry, time.monotonic() + seconds)
    token = _CURRENT.set(_Deadline(expiry))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def remaining() -> float:
    """Return the seconds left, at least 0.0; infinity without a deadline."""
    return max(0.0, _CURRENT.get().expiry - time.monotonic())


def missed() -> bool:
    """Check whether a request in the innermost ``within`` timed out.

    Version discovery replaces a timeout by another error, or suppresses it.
    """
    return _CURRENT.get().missed or not remaining()


@contextlib.contextmanager
def noted(*timeouts: type[Exception]) -> Iterator[None]:
    """Record for ``missed`` that one of these errors was raised inside."""
    try:
        yield
    except timeouts:
        _CURRENT.get().missed = True
        raise


def allowance(ceiling: float | None) -> float | None:
    """Return the seconds that one socket operation may take.

    :param ceiling: upper limit in seconds, or None
    :returns: None for no limit
    :raises TimeoutError: when no time is left
    """
    left = remaining()
    if not left:
        # A socket timeout of 0 would mean non-blocking, not expired.
        raise TimeoutError('the deadline has passed')
    allowed = left if ceiling is None else min(left, ceiling)
    return None if allowed == math.inf else allowed
