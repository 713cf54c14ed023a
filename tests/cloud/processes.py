# SPDX-License-Identifier: Apache-2.0
"""Child processes that cannot outlive their parent, and their logs."""

from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import psutil

START_TIMEOUT = 120
STOP_TIMEOUT = 10
TAIL = 30
INTERRUPTIONS = frozenset({signal.SIGINT, signal.SIGTERM})


class CloudError(Exception):
    """The cloud cannot be used; the message says why and which log."""


def interruptible() -> None:
    """Let the first SIGINT or SIGTERM raise KeyboardInterrupt.

    The first alone: what follows it is the clean-up, and it is short.
    """
    def interrupt(number: int, frame: object) -> None:
        for each in INTERRUPTIONS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in INTERRUPTIONS:
        signal.signal(number, interrupt)
    # Who starts this program may have blocked them until now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTIONS)


def child(*task: str) -> list[str]:
    """The command line of a task of ``tests/cloud/child.py``."""
    path = pathlib.Path(__file__).with_name('child.py')
    # -P: this folder's modules must not hide those of the services.
    return [sys.executable, '-P', str(path), *task]


def waitress(module: str, port: int, threads: int,
             frames: int = 0) -> list[str]:
    """The command line that serves a WSGI module: no compiler needed.

    :param frames: of the stack, to lay below the application
    """
    return child('serve', module, str(port), str(threads), str(frames))


def uwsgi(module: str, port: int, count: int, timeout: int = 60
          ) -> list[str]:
    """The command line that serves a WSGI module with several processes.

    It needs pyuwsgi, see ``benchmarks/requirements.txt``.

    :param timeout: seconds after which the user of an application that does
        not answer is left without an answer
    """
    return child('serve_processes', module, str(port), str(count),
                 str(timeout))


def clean_environment() -> dict[str, str]:
    """This process's environment without what would mislead OpenStack."""
    # A proxy of the machine's owner cannot know our loopback addresses, and
    # another cloud's OS_ variables must not leak into this one.
    return {name: value for name, value in os.environ.items()
            if not name.startswith(('OS_', 'PYTHONPATH'))
            and not name.lower().endswith('_proxy')}


def free_ports(count: int) -> list[int]:
    """Find free ports of the loopback interface.

    They lie below the range from which kernels take the ports of outgoing
    connections: a client could else sit on the port of a stopped service.
    """
    ports: list[int] = []
    candidates = random.sample(range(20000, 32000), 1000)
    while len(ports) < count and candidates:
        port = candidates.pop()
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(('127.0.0.1', port))
            ports.append(port)
    if len(ports) < count:
        raise CloudError('No free port on 127.0.0.1 between 20000 and 32000')
    return ports


def answers(url: str) -> bool:
    """Whether something other than a server error answers."""
    # The machine's proxy settings are not for the loopback interface.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=10):
            return True
    except urllib.error.HTTPError as exc:
        exc.close()
        return exc.code < 500
    except OSError:
        return False


def tail(log: str) -> str:
    """The end of a log, with its name, for people."""
    with open(log, errors='replace') as lines:
        last = lines.readlines()[-TAIL:]
    return f'the end of {os.path.basename(log)}:\n{"".join(last)}'


class Process:
    """One child process in a process group of its own.

    It watches its standard input, which only this process holds open: when
    this process dies, however it dies, so does the child.
    """

    def __init__(self, name: str, argv: Sequence[str], log: str,
                 environment: Mapping[str, str]) -> None:
        self.name = name
        self.log = log
        self._argv = argv
        self._environment = {**clean_environment(), **environment}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; its output is appended to its log."""
        with open(self.log, 'ab') as log:
            self._process = subprocess.Popen(
                self._argv, stdin=subprocess.PIPE, stdout=log, stderr=log,
                cwd=os.path.dirname(self.log), env=self._environment,
                start_new_session=True)

    def stop(self) -> None:
        """Ask it to end, and kill it when it does not."""
        self._signal(signal.SIGTERM)
        self.kill()

    def kill(self) -> None:
        """Kill it and everything it started, as ``kill -9`` does."""
        self._signal(signal.SIGKILL)
        self._forget()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it alone, and do not wait for what it does."""
        assert self._process is not None
        self._process.send_signal(number)

    def finish(self, timeout: float = START_TIMEOUT) -> None:
        """Wait until it has done its task.

        :param timeout: seconds that it may take
        """
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        if self._process.returncode != 0:
            raise self._failure('failed' if self._process.returncode
                                else f'took over {timeout} s')
        self._forget()

    def cpu_seconds(self) -> float:
        """Processor time so far, of it and of all that it started."""
        assert self._process is not None
        process = psutil.Process(self._process.pid)
        times = [each.cpu_times()
                 for each in [process, *process.children(recursive=True)]]
        return sum(each.user + each.system for each in times)

    def wait_ready(self, url: str) -> None:
        """Wait until something other than a server error answers."""
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise self._failure('died while starting')
            if answers(url):
                return
            time.sleep(0.05)
        raise self._failure(f'did not answer within {START_TIMEOUT} s')

    def _signal(self, number: signal.Signals) -> None:
        # The number of a process that was waited for may be another's by now.
        if self._process is None or self._process.poll() is not None:
            return
        os.killpg(self._process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_TIMEOUT)

    def _forget(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None

    def _failure(self, what: str) -> CloudError:
        return CloudError(f'{self.name} {what}; {tail(self.log)}')
