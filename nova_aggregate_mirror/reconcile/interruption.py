# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM during a sync: the requests in hand are completed."""

from collections.abc import Iterator
import contextlib
import os
import signal
import threading

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STDERR = 2


class Interruption:
    """The first Ctrl-C or SIGTERM lets requests in hand end; a second not."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self.status = 0
        """128 and the number of the signal that came."""

    def stopping(self) -> bool:
        return self._told.is_set()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._tell)
                  for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _tell(self, number: int, _frame: object) -> None:
        if self._told.is_set():
            _shout('Interrupted; what was done until then is complete, and '
                   'of the requests on their way nobody knows: run the '
                   'command again')
            # Python would wait for the threads, and they for placement.
            os._exit(self.status)
        self.status = 128 + number
        self._told.set()
        _shout('Stopping when the requests in hand are answered; once more '
               'to stop at once')


def _shout(text: str) -> None:
    # A signal may come in the midst of a print, which bears no other one.
    os.write(STDERR, ('\n%s\n' % text).encode())
