# SPDX-License-Identifier: Apache-2.0
"""Processes in their own sessions, identified by pid, and their logs."""

from collections import abc
import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import time
from typing import Any

import psutil

from tests.cloud import loopback
from tests import patience

START_TIMEOUT = patience.seconds(300)
# Neutron's threads do not end when uwsgi asks them to.
STOP_TIMEOUT = patience.seconds(4)
POLL = 0.05
TAIL = 30
CLOCK_MOVES = 2
INTERRUPTIONS = frozenset({signal.SIGINT, signal.SIGTERM})


class CloudError(Exception):
    """The cloud cannot be used; the message has the reason and the log."""


def interruptible() -> None:
    """Let the first SIGINT or SIGTERM interrupt; later ones are ignored."""
    def interrupt(number: int, frame: object) -> None:
        for each in INTERRUPTIONS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in INTERRUPTIONS:
        signal.signal(number, interrupt)
    # The parent may have blocked them until now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTIONS)


def clean_environment() -> dict[str, str]:
    """Return this process's environment without misleading variables."""
    # The machine's proxy cannot reach our loopback addresses, and another
    # cloud's OS_ variables must not leak into this cloud. Without byte code
    # every process would compile all of nova again.
    variables = {name: value for name, value in os.environ.items()
                 if not name.lower().endswith('_proxy')}
    return {name: value for name, value in variables.items() if not (
        name.startswith(('OS_', 'PYTHONPATH', 'PYTHONDONTWRITE')))}


def tail(log: str) -> str:
    """Return the end of a log with its name, for people."""
    with open(log, errors='replace') as lines:
        last = lines.readlines()[-TAIL:]
    return 'the end of %s:\n%s' % (os.path.basename(log), ''.join(last))


class NewLines:
    """What is written to a log from now on."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._start = os.path.getsize(log)

    def read(self) -> str:
        """Return all of it so far."""
        with open(self._log, 'rb') as lines:
            lines.seek(self._start)
            return lines.read().decode(errors='replace')


@dataclasses.dataclass
class Process:
    """A process in its own session, and how to start it again.

    :param environment: its variables in addition to a clean environment
    :param port: where it listens; 0 if it does not
    :param ready: a URL that answers when it is ready, or ''
    :param folder: its working directory; '' is the directory of its log
    :param user: the account that runs it; '' is the current user
    :param tied: whether it watches its standard input, which only this process
        holds open: when this process dies, for any reason, it dies too
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
    tied: bool = False
    pid: int = 0
    created: float = 0.0
    _child: 'subprocess.Popen[bytes] | None' = dataclasses.field(
        default=None, init=False, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments that make an equal object."""
        return {field.name: getattr(self, field.name)
                for field in dataclasses.fields(self) if field.init}

    def start(self) -> None:
        """Start it; its output is appended to its log."""
        pathlib.Path(self.log).touch(mode=0o600)
        with open(self.log, 'ab') as log:
            self._child = subprocess.Popen(
                self.argv, stdout=log, stderr=log,
                stdin=subprocess.PIPE if self.tied else subprocess.DEVNULL,
                cwd=self.folder or os.path.dirname(self.log),
                user=self.user or None,
                env={**clean_environment(), **self.environment},
                start_new_session=True)
        self.pid = self._child.pid
        self.created = psutil.Process(self.pid).create_time()

    def alive(self) -> bool:
        """Check whether it runs."""
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            return (self.pid > 0 and is_same(process, self.created)
                    and process.status() != psutil.STATUS_ZOMBIE)
        return False

    def check(self) -> None:
        """Check that it runs."""
        if not self.alive():
            raise self._failure('has died')

    def send(self, number: signal.Signals) -> None:
        """Send a signal to this process alone."""
        os.kill(self.pid, number)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and all processes that it started."""
        # While its process group has a member, no other process gets its pid;
        # a different process with that pid means that the group is empty.
        with contextlib.suppress(psutil.NoSuchProcess):
            if not is_same(psutil.Process(self.pid), self.created):
                return
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def stop(self) -> None:
        """Terminate it, and kill it if it does not end."""
        stop([self])

    def kill(self) -> None:
        """Kill it and all processes that it started, as ``kill -9`` does."""
        self.signal(signal.SIGKILL)
        wait_gone([self])
        # Its children may end later, and listen until then.
        if self.port:
            patience.wait(lambda: not loopback.listens(self.port),
                          STOP_TIMEOUT, POLL)
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()

    def finish(self, timeout: float = START_TIMEOUT) -> None:
        """Wait until it, started by this process, has finished its task."""
        assert self._child is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(timeout)
        if self._child.returncode:
            raise self._failure('failed')
        if self._child.returncode is None:
            raise self._failure('took over %s s' % timeout)
        self.kill()

    def wait(self, done: abc.Callable[[], bool], what: str,
             poll: float = POLL) -> None:
        """Wait until it has reached a condition; ``what`` is the error."""
        deadline = time.monotonic() + START_TIMEOUT
        while not done():
            self.check()
            if time.monotonic() > deadline:
                raise self._failure('%s within %s s' % (what, START_TIMEOUT))
            time.sleep(poll)

    def wait_ready(self) -> None:
        """Wait until its URL answers or its port listens, if any."""
        if self.ready:
            self.wait(lambda: loopback.answers(self.ready), 'did not answer')
        elif self.port:
            self.wait(lambda: loopback.listens(self.port), 'did not listen')

    def cpu_seconds(self) -> float:
        """Return the processor time so far, with that of its children."""
        process = psutil.Process(self.pid)
        times = [each.cpu_times()
                 for each in [process, *process.children(recursive=True)]]
        return sum(each.user + each.system for each in times)

    def _failure(self, what: str) -> CloudError:
        return CloudError('%s %s; %s\nIts whole log: %s' % (
            self.name, what, tail(self.log), self.log))


def is_same(process: psutil.Process, created: float) -> bool:
    """Check whether a process is the process that was started at a time."""
    # The kernel counts from boot; the result moves when the clock is set.
    return abs(process.create_time() - created) < CLOCK_MOVES


def stop(processes: abc.Iterable[Process]) -> None:
    """Terminate all of them at the same time; kill those that remain."""
    processes = list(processes)
    for each in processes:
        each.signal(signal.SIGTERM)
    wait_gone(processes)
    for each in processes:
        # Its children may remain after it has ended.
        each.kill()


def wait_gone(processes: abc.Iterable[Process]) -> None:
    """Wait until none of them runs, but no longer than ``STOP_TIMEOUT``."""
    def gone() -> bool:
        return not any(each.alive() for each in processes)

    patience.wait(gone, STOP_TIMEOUT, POLL)
