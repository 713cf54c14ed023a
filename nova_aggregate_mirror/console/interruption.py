# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM during a command: requests in flight are completed."""

from collections import abc
import contextlib
import os
import signal

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STDERR = 2
ABANDONED = ('Interrupted; the result of requests in flight is unknown: run '
             'the command again')


class Interruption:
    """Handler of signals: the first stops gracefully, the second at once."""

    def __init__(self) -> None:
        self.status = 0
        """128 plus the number of the received signal; 0 without any."""

    def stopping(self) -> bool:
        return bool(self.status)

    @contextlib.contextmanager
    def watched(self) -> abc.Iterator[None]:
        """Handle the signals inside; restore the previous handlers after."""
        before = {number: signal.signal(number, self._handle)
                  for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, number: int, _frame: object) -> None:
        if self.status:
            _shout(ABANDONED)
            # A normal exit waits for the threads, and they for placement.
            os._exit(self.status)
        self.status = 128 + number
        _shout('Stopping after the requests in flight complete; interrupt '
               'again to stop immediately')


def _shout(text: str) -> None:
    # print() is not reentrant, and a signal may arrive during another print.
    # Ctrl-C may have ended the reader, too.
    with contextlib.suppress(OSError):
        os.write(STDERR, ('\n%s\n' % text).encode())
