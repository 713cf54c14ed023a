# SPDX-License-Identifier: Apache-2.0
"""The moments of a call, as the hooks in nova-api report them."""

import collections
from collections import abc
import contextlib
import dataclasses
import itertools
import json
import pathlib
import socketserver
import sqlite3
import threading
import time

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


class Listener(socketserver.ThreadingUnixStreamServer):
    """The socket at which the hooks of nova-api report, run by a thread.

    Each moment of a recorded call is passed on before nova-api may go on.
    """

    daemon_threads = True
    recording: 'Recording | None' = None

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(str(path), _Connection)
        threading.Thread(
            target=self.serve_forever, name='moments', daemon=True).start()

    def handle_error(self, _request: object, _address: object) -> None:
        # The nova-api may have been killed while it waited.
        pass

    def close(self) -> None:
        """End the thread."""
        self.shutdown()
        self.server_close()

    @contextlib.contextmanager
    def record(self, recording: 'Recording') -> abc.Iterator[None]:
        """Pass moments to a recording meanwhile."""
        self.recording = recording
        try:
            yield
        finally:
            self.recording = None


class _Connection(socketserver.StreamRequestHandler):

    server: Listener

    def handle(self) -> None:
        moment = json.loads(self.rfile.readline())
        if self.server.recording:
            self.server.recording.see(moment['moment'], moment['at'])
        self.wfile.write(b'\n')


class Recording:
    """The moments of one call; the first ``moment`` begins the fault."""

    def __init__(self, moment: str = '',
                 begin: abc.Callable[[], None] = lambda: None) -> None:
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
        """Return the time before, in and after nova's method.

        That is the time between each moment and the next: ``BEGIN`` and
        ``READY`` enclose ``before`` of the hooks between, ``RETURNED`` and
        ``DONE`` their ``after``.
        """
        sums: dict[tuple[str, str], float] = collections.defaultdict(float)
        for before, after in itertools.pairwise(self.moments):
            sums[before.name, after.name] += after.entered - before.left
        return sums[BEGIN, READY], sums[READY, RETURNED], sums[RETURNED, DONE]
