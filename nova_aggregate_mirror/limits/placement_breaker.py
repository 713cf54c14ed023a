# SPDX-License-Identifier: Apache-2.0
"""Per-process back-off after placement failures."""

from collections import abc
import time

from nova_aggregate_mirror import exceptions

REFUSED_PAUSE = 1.0
"""Seconds of back-off after an immediate failure: about the time that the
agent takes to detect that placement is available again."""


class PlacementBreaker:
    """Back-off of this process after a failed call to placement.

    :param seconds: of back-off after a call that hung
    """

    def __init__(self, seconds: float,
                 now: abc.Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._seconds = seconds
        self._hung = self._refused = 0.0, exceptions.Failure('', '')
        """When the back-off expires, and its reason."""

    def begin(self, error: exceptions.MirrorError | None, began: float
              ) -> None:
        """Start the back-off if the next call would fail in the same way.

        :param error: why placement could not be asked, if so
        :param began: when the call began, on the clock ``now``
        """
        now = self.now()
        # An answer, however slow, keeps no other call waiting for long.
        if error is None or isinstance(error, exceptions.OutOfTime) or (
                not error.is_outage):
            return
        # A refusal may be slow, too: no route to the host, or a slow proxy.
        if (isinstance(error, exceptions.DeadlineExceeded)
                or now - began > REFUSED_PAUSE):
            self._hung = now + self._seconds, error.failure
        else:
            # Each further call would request a token from keystone.
            self._refused = now + min(
                self._seconds, REFUSED_PAUSE), error.failure

    def check(self, recorded: bool) -> None:
        """Check that no back-off applies to a call to placement.

        :param recorded: whether the operation is in the journal; if not, it is
            attempted unless placement hung, which would occupy every worker
        :raises NotTried: during the back-off, with its reason
        """
        backoffs = [self._hung, self._refused] if recorded else [self._hung]
        for until, failure in backoffs:
            if self.now() < until:
                raise exceptions.NotTried(
                    'is not tried again yet: it %s' % failure.observation,
                    failure.party, failure.occasion, step=failure.step)
