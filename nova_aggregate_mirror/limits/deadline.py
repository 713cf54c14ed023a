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

SILENCE = 1.0  # Seconds without an answer that count as silence.


@dataclasses.dataclass(frozen=True, order=True)
class _Deadline:
    expiry: float = math.inf  # On the monotonic clock.
    seconds: float = math.inf  # In all; for a budget, of all its parts.
    is_budget: bool = False


_CURRENT = contextvars.ContextVar(
    'aggregate_mirror_deadline', default=_Deadline())


@contextlib.contextmanager
def within(seconds: float, whole: float = 0.0) -> abc.Iterator[None]:
    """Bound the context's I/O; the earliest of nested deadlines applies.

    :param whole: seconds of the budget that has ``seconds`` left, if any
    """
    expiry = time.monotonic() + seconds
    new = _Deadline(expiry, whole or seconds, is_budget=whole > 0)
    token = _CURRENT.set(min(_CURRENT.get(), new))
    try:
        yield
    finally:
        _CURRENT.reset(token)


class Budget:
    """Seconds that the parts of a request share.

    :param floor: seconds that the essential parts together have in any case
    :param tolerance: seconds that an essential part may take beyond what is
        left without reducing the floor: too few for a wait for another party
    """

    def __init__(self, seconds: float, floor: float = 0.0,
                 tolerance: float = 0.0) -> None:
        self._seconds = self._left = seconds
        self._floor = floor
        self._tolerance = tolerance

    @contextlib.contextmanager
    def spending(self, essential: bool = False) -> abc.Iterator[None]:
        """Bound the context's I/O by what other parts have left.

        :param essential: whether this part may also use the floor
        """
        left = max(0.0, self._left)
        least = self._floor if essential else 0.0
        began = time.monotonic()
        try:
            with within(max(left, least), whole=self._seconds):
                yield
        finally:
            spent = time.monotonic() - began
            self._left -= spent
            beyond = spent - left
            if essential and beyond > self._tolerance:
                self._floor -= beyond


def remaining() -> float:
    """Return the seconds left, at least 0.0; infinity without a deadline."""
    return max(0.0, _CURRENT.get().expiry - time.monotonic())


def is_silence(waited: float) -> bool:
    """Check whether a wait of these seconds shows that a party is silent.

    A request that begins shortly before the deadline shows nothing.
    """
    seconds = _CURRENT.get().seconds
    return seconds == math.inf or (
        seconds > 0 and waited >= min(SILENCE, seconds / 2))


def is_budget() -> bool:
    """Check whether the deadline is that of a request to nova-api."""
    return _CURRENT.get().is_budget


def allowance(ceiling: float | None) -> float | None:
    """Return a socket's timeout in seconds, at most ``ceiling``, or None."""
    seconds = remaining()
    if not seconds:
        # A socket timeout of 0 would mean non-blocking, not expired.
        raise TimeoutError('the deadline has passed')
    allowed = seconds if ceiling is None else min(seconds, ceiling)
    return None if allowed == math.inf else allowed
