# SPDX-License-Identifier: Apache-2.0
"""Per-process back-off after placement failures."""

from collections.abc import Callable
import time

from nova_aggregate_mirror import exceptions

REFUSED_PAUSE = 1.0
"""Seconds without a try after one that failed at once: about as long as the
agent takes to see that placement is back."""


class Breaker:
    """Keeps calls from waiting for what has just failed.

    :param now: seconds that only grow
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._hung = self._refused = (0.0, '')
        """Until when, and why."""

    def begin(self, error: exceptions.MirrorError, began: float,
              backoff: float) -> None:
        """Pause if the next call would fail in the same way.

        :param error: of a try
        :param began: when that was
        :param backoff: seconds for which a placement that hangs is left alone
        """
        now = self.now()
        if not isinstance(error, (exceptions.DeadlineExceeded,
                                  *exceptions.STALE_ENDPOINT)):
            return
        # A refusal may take long, too: no route, or a proxy that waits.
        if (isinstance(error, exceptions.DeadlineExceeded)
                or now - began > REFUSED_PAUSE):
            self._hung = now + backoff, str(error)
        else:
            # Each try would ask keystone for a token.
            self._refused = now + min(backoff, REFUSED_PAUSE), str(error)

    def check(self, recorded: bool) -> None:
        """Check that placement may be asked now.

        :param recorded: whether the journal has the operation. What it does
            not have is tried once, but for a placement that hangs: that would
            occupy every worker.
        :raises NotTried: why not
        """
        for until, why in (self._hung, self._refused)[:1 + recorded]:
            if self.now() < until:
                raise exceptions.NotTried('not tried, because %s' % why)
