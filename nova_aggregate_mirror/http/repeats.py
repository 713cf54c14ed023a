# SPDX-License-Identifier: Apache-2.0
"""Repetition of a read whose answer did not come from a working service."""

from collections import abc
import contextvars
import functools
import time
from typing import ParamSpec
from typing import TypeVar

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import deadline

REPEATS = 2
IS_REPETITION = contextvars.ContextVar(
    'aggregate_mirror_repetition', default=False)

Parameters = ParamSpec('Parameters')
Result = TypeVar('Result')


def repeating(read: abc.Callable[Parameters, Result]
              ) -> abc.Callable[Parameters, Result]:
    """Let a function that reads do so again, if new connections may help.

    One of several backends behind an address may answer 5xx, 429 or with a
    page that is not the service's, and a kept connection leads to the same
    one, or is closed while the request is on its way. The deadline of the
    caller bounds all of it, and a ``Retry-After`` that does not fit in it ends
    the repetition.

    It raises the error of the last attempt that had time.
    """
    @functools.wraps(read)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        left, earlier = REPEATS, None
        while True:
            token = IS_REPETITION.set(left < REPEATS)
            try:
                return read(*args, **kwargs)
            except exceptions.MirrorError as exc:
                if exc.failure.kind == causes.OUT_OF_TIME.kind:
                    try:
                        # What took the time is the cause.
                        raise earlier or exc from None
                    finally:
                        earlier = None  # Its traceback refers to this frame.
                pause = exc.retry_after
                if not left:
                    # The caller need not pause for it once more.
                    exc.retry_after = 0.0
                if not (left and exc.is_repeatable) or (
                        pause >= deadline.remaining()):
                    raise
                earlier = exc.with_traceback(None)
            finally:
                IS_REPETITION.reset(token)
            time.sleep(pause)
            left -= 1

    return call
