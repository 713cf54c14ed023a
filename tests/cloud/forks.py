# SPDX-License-Identifier: Apache-2.0
"""Processes that are forked from one that has imported their modules.

A client takes two seconds of processor time to import its packages, and a
fraction of that to do its work.
"""

from collections import abc
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
from typing import Any

import psutil

from tests.cloud import processes
from tests.cloud import programs
from tests import patience

TIMEOUT = patience.seconds(300)
# By client: what ``child.clients`` imports.
CLIENTS = {
    'openstack': ('openstack.', 'openstackclient.shell',
                  'openstack.connection'),
    'nova': ('novaclient.', 'novaclient.shell'),
    'nova-aggregate-mirror-manage': (
        'nova_aggregate_mirror.', 'nova_aggregate_mirror.cmd.manage',
        'pymysql'),
    'nova-aggregate-mirror-status': (
        'nova_aggregate_mirror.', 'nova_aggregate_mirror.cmd.status',
        'pymysql')}


class Forker:
    """A process that forks another one for each request."""

    def __init__(self, argv: abc.Sequence[str], timeout: float | None = None,
                 **options: Any) -> None:
        self._mutex = threading.Lock()
        # The process ends when this end of the socket is closed.
        here, there = socket.socketpair()
        here.settimeout(timeout)
        with there:
            self._process = subprocess.Popen(
                argv, stdin=there, start_new_session=True, **options)
        self._requests = here.makefile('w')
        self._answers = here.makefile('r')

    def ask(self, *request: Any) -> str:
        """Send a request; return the answer, or '' if the process has died."""
        with self._mutex:
            self._requests.write(json.dumps(request) + '\n')
            self._requests.flush()
            return self._answers.readline()

    def close(self) -> None:
        """Kill the process, and a command that runs."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@dataclasses.dataclass
class Forked(processes.Process):
    """A process that is forked from a template."""

    template: Forker | None = None

    def start(self) -> None:
        """Start it; its output is appended to its log."""
        assert self.template is not None
        pathlib.Path(self.log).touch(mode=0o600)
        answer = self.template.ask(self.argv, self.environment, self.log)
        if not answer:
            raise processes.CloudError(
                'the process that forks others has died; see template.log')
        self.pid = int(answer)
        self.created = psutil.Process(self.pid).create_time()


class Clients:
    """The clients of a Python environment; not for several threads."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._python = folder / 'python'
        self._forkers: dict[str, Forker] = {}

    def run(self, argv: abc.Sequence[str], environment: abc.Mapping[str, str],
            directory: pathlib.Path) -> tuple[int, str, str]:
        """Run one of ``CLIENTS``; return its status and outputs."""
        name = argv[0]
        if name not in self._forkers:
            _python, *task = programs.child('clients', *CLIENTS[name])
            self._forkers[name] = Forker([str(self._python), *task], TIMEOUT,
                                         env=processes.clean_environment())
        with tempfile.TemporaryDirectory() as folder:
            outputs = [os.path.join(folder, name)
                       for name in ('stdout', 'stderr')]
            answer = ''
            with contextlib.suppress(TimeoutError):
                answer = self._forkers[name].ask(
                    argv, environment, str(directory), outputs)
            if not answer:
                self._forkers.pop(name).close()
                return 125, '', '%s has died, or not ended within %s s\n' % (
                    argv, TIMEOUT)
            out, err = (pathlib.Path(path).read_text() for path in outputs)
            return int(answer), out, err

    def close(self) -> None:
        """Kill the processes and the command that runs."""
        while self._forkers:
            self._forkers.popitem()[1].close()
