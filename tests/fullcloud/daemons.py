# SPDX-License-Identifier: Apache-2.0
"""Processes that outlive the command that started them, identified by pid."""

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
    """A process in its own session, and how to start it again.

    :param environment: its variables in addition to a clean environment
    :param port: where it listens; 0 if it does not
    :param ready: a URL that answers when it is ready, or ''
    :param folder: its working directory; '' is the directory of its log
    :param user: the account that runs it; '' is the current user
    :param created: its start time as reported by the kernel, because another
        process may get its pid
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
        """Check whether it runs."""
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            return (self.pid > 0 and is_same(process, self.created)
                    and process.status() != psutil.STATUS_ZOMBIE)
        return False

    def check(self) -> None:
        """Check that it runs.

        :raises CloudError: when it does not, with the end of its log
        """
        if not self.alive():
            raise processes.CloudError(
                '%s has died; %s\n'
                'The whole of it: %s'
                % (self.name, processes.tail(self.log), self.log))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and all processes that it started."""
        # While its process group has a member, no other process gets its pid;
        # a different process with that pid means that the group is empty.
        if self.pid and not self._replaced():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def kill(self) -> None:
        """Kill it and all processes that it started, as ``kill -9`` does."""
        self.signal(signal.SIGKILL)
        wait_gone([self], STOP_TIMEOUT)
        # Its children may end later, and listen until then.
        deadline = time.monotonic() + STOP_TIMEOUT
        while (self.port and self._listens()
               and time.monotonic() < deadline):
            time.sleep(POLL)

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Wait until it has reached a condition.

        :param what: the error text if it does not, such as ``did not answer``
        :raises CloudError: when it dies or takes too long
        """
        deadline = time.monotonic() + processes.START_TIMEOUT
        while not done():
            self.check()
            if time.monotonic() > deadline:
                raise processes.CloudError(
                    '%s %s within %s s; %s\nThe whole of it: %s' % (
                        self.name, what, processes.START_TIMEOUT,
                        processes.tail(self.log), self.log))
            time.sleep(POLL)

    def wait_ready(self) -> None:
        """Wait until its URL answers or its port listens, if any."""
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
    """Check whether a process is the process that was started at a time."""
    # The kernel counts from boot; the result moves when the clock is set.
    return abs(process.create_time() - created) < CLOCK_MOVES


def stop(daemons: Iterable[Daemon]) -> None:
    """Terminate all of them at the same time; kill those that remain."""
    daemons = list(daemons)
    for each in daemons:
        each.signal(signal.SIGTERM)
    wait_gone(daemons, STOP_TIMEOUT)
    for each in daemons:
        # Its children may remain after it has ended.
        each.kill()


def wait_gone(daemons: Iterable[Daemon], timeout: float) -> None:
    """Wait until none of them runs, or until the timeout."""
    deadline = time.monotonic() + timeout
    while any(each.alive() for each in daemons):
        if time.monotonic() > deadline:
            return
        time.sleep(POLL)
