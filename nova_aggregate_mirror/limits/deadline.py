# SPDX-License-Identifier: Apache-2.0
"""Absolute deadline of a call, shared by all of its I/O.

It is stored in the current context: this needs no thread or signal and works
with native threads and greenlets.
"""

from collections import abc
import contextlib
import contextvars
import dataclasses
import math
import time


# Seconds without an answer after which a party counts as silent.
SILENCE = 1.0


@dataclasses.dataclass
class _Deadline:
    """An expiry time, and whether a request has timed out before it."""

    expiry: float = math.inf
    seconds: float = math.inf
    is_budget: bool = False
    missed: bool = False


_CURRENT: contextvars.ContextVar[_Deadline | None] = contextvars.ContextVar(
    'aggregate_mirror_deadline', default=None)


def _current() -> _Deadline:
    return _CURRENT.get() or _Deadline()


@contextlib.contextmanager
def within(seconds: float, total: float = 0.0) -> abc.Iterator[None]:
    """Bound the context's I/O; the earliest of nested deadlines applies.

    :param total: what was given in all, if these are the rest of it
    """
    current, expiry = _current(), time.monotonic() + seconds
    new = _Deadline(expiry, total or seconds, is_budget=total > 0)
    if current.expiry < expiry:
        new = _Deadline(current.expiry, current.seconds, current.is_budget)
    token = _CURRENT.set(new)
    try:
        yield
    finally:
        _CURRENT.reset(token)


class Budget:
    """Seconds that the parts of a request share.

    :param floor: seconds that the essential parts together have in any case
    :param quick: seconds that an essential part may take without using up the
        floor: however many there are, none of them has waited
    """

    def __init__(self, seconds: float, floor: float = 0.0, quick: float = 0.0
                 ) -> None:
        self._seconds = self._left = seconds
        self._floor = floor
        self._quick = quick

    @contextlib.contextmanager
    def spending(self, essential: bool = False) -> abc.Iterator[None]:
        """Bound the context's I/O by what other parts have left.

        :param essential: whether this part has at least what is left of the
            floor
        """
        shared = max(0.0, self._left)
        began = time.monotonic()
        try:
            with within(max(shared, self._floor * essential), self._seconds):
                yield
        finally:
            spent = time.monotonic() - began
            self._left -= spent
            if essential and spent - shared > self._quick:
                self._floor = max(0.0, self._floor - spent + shared)


def remaining() -> float:
    """Return the seconds left, at least 0.0; infinity without a deadline."""
    return max(0.0, _current().expiry - time.monotonic())


def require() -> None:
    """Check that a deadline bounds the context's I/O.

    :raises RuntimeError: there is none, which is an error of this program
    """
    if remaining() == math.inf:
        raise RuntimeError('a request was made without a deadline')


def missed() -> bool:
    """Check whether a request in the innermost ``within`` timed out.

    Version discovery replaces a timeout by another error, or suppresses it.
    """
    return _current().missed or not remaining()


def is_silence(waited: float) -> bool:
    """Check whether so long a wait shows that a party does not answer.

    A request that begins shortly before the deadline shows nothing.
    """
    seconds = _current().seconds
    return seconds == math.inf or waited >= min(SILENCE, seconds / 2) > 0


def is_budget() -> bool:
    """Check whether the deadline is that of a request to nova-api."""
    return _current().is_budget


@contextlib.contextmanager
def noted(*timeouts: type[Exception]) -> abc.Iterator[None]:
    """Record for ``missed`` that one of these errors was raised inside."""
    try:
        yield
    except timeouts:
        _current().missed = True
        raise


def allowance(ceiling: float | None) -> float | None:
    """Return the seconds that one socket operation may take."""
    seconds = remaining()
    if not seconds:
        # A socket timeout of 0 would mean non-blocking, not expired.
        raise TimeoutError('the deadline has passed')
    allowed = seconds if ceiling is None else min(seconds, ceiling)
    return None if allowed == math.inf else allowed
