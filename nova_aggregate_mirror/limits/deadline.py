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
    seconds: float = math.inf  # Given, or of the whole budget.
    is_budget: bool = False


_CURRENT = contextvars.ContextVar(
    'aggregate_mirror_deadline', default=_Deadline())


@contextlib.contextmanager
def within(seconds: float, total: float = 0.0) -> abc.Iterator[None]:
    """Bound the context's I/O; the earliest of nested deadlines applies.

    :param total: seconds of the budget, if these are the rest of one
    """
    new = _Deadline(time.monotonic() + seconds, total or seconds, total > 0)
    token = _CURRENT.set(min(_CURRENT.get(), new))
    try:
        yield
    finally:
        _CURRENT.reset(token)


class Budget:
    """Seconds that the parts of a request share.

    :param floor: seconds that the essential parts together have in any case
    :param quick: seconds that an essential part may take without using up the
        floor: such a part has waited for nobody
    """

    def __init__(self, seconds: float, floor: float = 0.0, quick: float = 0.0
                 ) -> None:
        self._seconds = self._left = seconds
        self._floor = floor
        self._quick = quick

    @contextlib.contextmanager
    def spending(self, essential: bool = False) -> abc.Iterator[None]:
        """Bound the context's I/O by what other parts have left.

        :param essential: whether it has at least what is left of the floor
        """
        shared = max(0.0, self._left)
        least = self._floor if essential else 0.0
        began = time.monotonic()
        try:
            with within(max(shared, least), self._seconds):
                yield
        finally:
            spent = time.monotonic() - began
            self._left -= spent
            # What it took beyond ``shared`` was of the floor.
            if essential and spent - shared > self._quick:
                self._floor -= spent - shared


def remaining() -> float:
    """Return the seconds left, at least 0.0; infinity without a deadline."""
    return max(0.0, _CURRENT.get().expiry - time.monotonic())


def is_silence(waited: float) -> bool:
    """Check whether so long a wait shows that a party does not answer.

    A request that begins shortly before the deadline shows nothing.
    """
    seconds = _CURRENT.get().seconds
    return seconds == math.inf or (
        seconds > 0 and waited >= min(SILENCE, seconds / 2))


def is_budget() -> bool:
    """Check whether the deadline is that of a request to nova-api."""
    return _CURRENT.get().is_budget


def allowance(ceiling: float | None) -> float | None:
    """Return the seconds a socket operation may take; None: any time."""
    seconds = remaining()
    if not seconds:
        # A socket timeout of 0 would mean non-blocking, not expired.
        raise TimeoutError('the deadline has passed')
    allowed = seconds if ceiling is None else min(seconds, ceiling)
    return None if allowed == math.inf else allowed
