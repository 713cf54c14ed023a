# SPDX-License-Identifier: Apache-2.0
"""Processes that outlive the command which started them, kept by number."""

from collections.abc import Callable
from collections.abc import Iterable
import contextlib
import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import time

import psutil

from tests.cloud import processes

POLL = 0.1
# Neutron's threads do not end when uwsgi asks them to.
STOP_TIMEOUT = 4
CLOCK_MOVES = 2


@dataclasses.dataclass
class Daemon:
    """A process in a session of its own, and how to start it again.

    :param environment: what it has besides a clean environment
    :param port: where it listens, 0 if it does not
    :param ready: the URL that answers when it is ready, or nothing
    :param folder: where it runs, or beside its log
    :param user: runs it, or nobody in particular
    :param created: when it was started, as the kernel tells it: another
        process may get its number
    """

    name: str
    argv: list[str]
    log: str
    environment: dict[str, str]
    port: int = 0
    ready: str = ''
    folder: str = ''
    user: str = ''
    pid: int = 0
    created: float = 0.0

    def start(self) -> None:
        """Start it; its output is appended to its log."""
        pathlib.Path(self.log).touch(mode=0o600)
        with open(self.log, 'ab') as log:
            process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder or os.path.dirname(self.log),
                user=self.user or None,
                env={**processes.clean_environment(), **self.environment},
                start_new_session=True)
        self.pid = process.pid
        self.created = psutil.Process(process.pid).create_time()

    def alive(self) -> bool:
        """Whether it runs."""
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            return (self.pid > 0 and is_same(process, self.created)
                    and process.status() != psutil.STATUS_ZOMBIE)
        return False

    def check(self) -> None:
        """See that it runs.

        :raises CloudError: when it does not, with the end of its log
        """
        if not self.alive():
            raise processes.CloudError(
                f'{self.name} has died; {processes.tail(self.log)}\n'
                f'The whole of it: {self.log}')

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and all that it started."""
        # As long as something of its group is left, no other process gets the
        # number; a leader that is not ours shows that nothing is.
        if self.pid and not self._replaced():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def kill(self) -> None:
        """Kill it and all that it started, as ``kill -9`` does."""
        self.signal(signal.SIGKILL)
        wait_gone([self], STOP_TIMEOUT)
        # Its children may end after it, and listen until then.
        deadline = time.monotonic() + STOP_TIMEOUT
        while (self.port and self._listens()
               and time.monotonic() < deadline):
            time.sleep(POLL)

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Wait until something has happened that it has to do.

        :param what: it did not do, if it does not
        :raises CloudError: when it dies or takes too long
        """
        deadline = time.monotonic() + processes.START_TIMEOUT
        while not done():
            self.check()
            if time.monotonic() > deadline:
                raise processes.CloudError(
                    f'{self.name} {what} within {processes.START_TIMEOUT} s; '
                    f'{processes.tail(self.log)}\nThe whole of it: {self.log}')
            time.sleep(POLL)

    def wait_ready(self) -> None:
        """Wait until it answers, or else listens, if it does either."""
        if self.ready:
            self.wait(lambda: processes.answers(self.ready),
                      'did not answer')
        elif self.port:
            self.wait(self._listens, 'did not listen')

    def _listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(
                ('127.0.0.1', self.port), processes.START_TIMEOUT):
            return True
        return False

    def _replaced(self) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            return not is_same(psutil.Process(self.pid), self.created)
        return False


def is_same(process: psutil.Process, created: float) -> bool:
    """Whether a process is the one of its number that was started then."""
    # The kernel counts from its start, which moves when clocks are set.
    return abs(process.create_time() - created) < CLOCK_MOVES


def stop(daemons: Iterable[Daemon]) -> None:
    """Ask all of them at once to end, and kill those that do not."""
    daemons = list(daemons)
    for each in daemons:
        each.signal(signal.SIGTERM)
    wait_gone(daemons, STOP_TIMEOUT)
    for each in daemons:
        # Its children may have stayed when it is gone.
        each.kill()


def wait_gone(daemons: Iterable[Daemon], timeout: float) -> None:
    """Wait until none of them runs, but not for ever."""
    deadline = time.monotonic() + timeout
    while any(each.alive() for each in daemons):
        if time.monotonic() > deadline:
            return
        time.sleep(POLL)
