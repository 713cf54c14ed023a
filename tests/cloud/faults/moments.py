# SPDX-License-Identifier: Apache-2.0
"""The moments of a call, as the hooks in nova-api report them."""

from collections import abc
import dataclasses
import json
import pathlib
import socketserver
import sqlite3
import threading
import time
from typing import Self

import sqlalchemy as sa

from tests import patience

# Errors of a fault that does not begin.
ERRORS = (OSError, sqlite3.Error, sa.exc.SQLAlchemyError)
# Seconds between two operations of a call.
FOLLOWS = patience.seconds(1)
# In the order of a call; the deletion of a service repeats them.
BEGIN, READY, RETURNED, DONE = 'begin', 'ready', 'returned', 'done'


@dataclasses.dataclass(frozen=True)
class Moment:
    """A moment of a call: when the hook entered and left it, monotonic."""

    name: str
    entered: float
    left: float


class Listener:
    """The socket at which the hooks of nova-api report, run by a thread.

    Each moment of a recorded call is passed on before nova-api may go on.

    :param path: of the socket
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._recording: Recording | None = None
        listener = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                listener._see(**json.loads(self.rfile.readline()))
                self.wfile.write(b'\n')

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

            def handle_error(self, _request: object, _address: object) -> None:
                # The nova-api may have been killed while it waited.
                pass

        self._server = Server(str(path), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name='moments', daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_details: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def record(self, recording: 'Recording | None') -> None:
        """Pass moments to a recording from now on, or to none."""
        self._recording = recording

    def _see(self, moment: str, at: float, method: str) -> None:
        if self._recording is not None:
            self._recording.see(moment, at)


class Recording:
    """The moments of one call.

    :param moment: the first such moment begins the fault
    :param begin: begins the fault
    """

    def __init__(self, moment: str, begin: abc.Callable[[], None]) -> None:
        self.moments: list[Moment] = []
        self.error: Exception | None = None
        self._moment = moment
        self._begin = begin
        self._changed = threading.Condition()

    def see(self, name: str, entered: float) -> None:
        """Record a moment; begin the fault if it is time."""
        if name == self._moment:
            self._moment = ''
            try:
                self._begin()
            except ERRORS as exc:
                # It is raised in the thread of the test.
                self.error = exc
        with self._changed:
            self.moments.append(Moment(name, entered, time.monotonic()))
            self._changed.notify_all()

    def wait_done(self, seconds: float) -> None:
        """Wait until the hooks have ended, but no longer than this."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while self._changed.wait_for(
                    lambda: bool(self.moments)
                    and self.moments[-1].name == DONE,
                    deadline - time.monotonic()):
                # Another operation of the same call may follow.
                if not self._changed.wait(FOLLOWS):
                    return

    def seconds(self) -> tuple[float, float, float]:
        """Return the time before, in and after nova's method."""
        return (seconds(self.moments, BEGIN, READY),
                seconds(self.moments, READY, RETURNED),
                seconds(self.moments, RETURNED, DONE))


def seconds(moments: abc.Sequence[Moment], begin: str, end: str) -> float:
    """Return the time between each such moment and the next moment.

    :param begin: ``BEGIN`` and ``READY`` enclose ``before`` of the hooks
        between, ``READY`` and ``RETURNED`` nova's method, and ``RETURNED`` and
        ``DONE`` their ``after``
    """
    return sum(after.entered - before.left
               for before, after in zip(moments, moments[1:])
               if (before.name, after.name) == (begin, end))
