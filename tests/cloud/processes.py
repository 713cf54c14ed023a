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
    """The cloud cannot be used; the message has the reason and the log."""


def interruptible() -> None:
    """Let the first SIGINT or SIGTERM raise KeyboardInterrupt.

    Later signals are ignored: the clean-up that follows is short.
    """
    def interrupt(number: int, frame: object) -> None:
        for each in INTERRUPTIONS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in INTERRUPTIONS:
        signal.signal(number, interrupt)
    # The parent may have blocked them until now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTIONS)


def child(*task: str) -> list[str]:
    """Return the command line of a task of ``tests/cloud/child.py``."""
    path = pathlib.Path(__file__).with_name('child.py')
    # -P: this folder's modules must not hide those of the services.
    return [sys.executable, '-P', str(path), *task]


def waitress(module: str, port: int, threads: int,
             frames: int = 0) -> list[str]:
    """Return the command line that serves a WSGI module with waitress.

    It needs no compiler.

    :param frames: the number of stack frames to add below the application
    """
    return child('serve', module, str(port), str(threads), str(frames))


def uwsgi(module: str, port: int, count: int, timeout: int = 60
          ) -> list[str]:
    """Return the command line that serves a WSGI module with uwsgi.

    It needs pyuwsgi, see ``benchmarks/requirements.txt``.

    :param timeout: seconds after which a request without an answer ends
    """
    return child('serve_processes', module, str(port), str(count),
                 str(timeout))


def clean_environment() -> dict[str, str]:
    """Return this process's environment without misleading variables."""
    # The machine's proxy cannot reach our loopback addresses, and another
    # cloud's OS_ variables must not leak into this cloud. Without byte code
    # every process would compile all of nova again.
    return {name: value for name, value in os.environ.items()
            if not name.startswith(('OS_', 'PYTHONPATH', 'PYTHONDONTWRITE'))
            and not name.lower().endswith('_proxy')}


def free_ports(count: int) -> list[int]:
    """Find free ports of the loopback interface.

    They lie below the range of ephemeral ports: otherwise a client could
    occupy the port of a stopped service.
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
    """Check whether a URL gives any answer other than a server error."""
    # The machine's proxy settings do not apply to the loopback interface.
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
    """Return the end of a log with its name, for people."""
    with open(log, errors='replace') as lines:
        last = lines.readlines()[-TAIL:]
    return 'the end of %s:\n%s' % (os.path.basename(log), ''.join(last))


class Process:
    """A child process in its own process group.

    It watches its standard input, which only this process holds open: when
    this process dies, for any reason, the child dies too.
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
        """Terminate it, and kill it if it does not end."""
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
        """Send a signal to this process alone, and do not wait."""
        assert self._process is not None
        self._process.send_signal(number)

    def finish(self, timeout: float = START_TIMEOUT) -> None:
        """Wait until it has finished its task.

        :param timeout: seconds that it may take
        """
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        if self._process.returncode != 0:
            raise self._failure('failed' if self._process.returncode
                                else 'took over %s s' % timeout)
        self._forget()

    def cpu_seconds(self) -> float:
        """Return the processor time so far, with that of its children."""
        assert self._process is not None
        process = psutil.Process(self._process.pid)
        times = [each.cpu_times()
                 for each in [process, *process.children(recursive=True)]]
        return sum(each.user + each.system for each in times)

    def wait_ready(self, url: str) -> None:
        """Wait until a URL gives any answer other than a server error."""
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise self._failure('died while starting')
            if answers(url):
                return
            time.sleep(0.05)
        raise self._failure('did not answer within %s s' % START_TIMEOUT)

    def _signal(self, number: signal.Signals) -> None:
        # Another process may have the pid of a process that was waited for.
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
        return CloudError('%s %s; %s' % (self.name, what, tail(self.log)))
