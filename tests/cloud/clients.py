# SPDX-License-Identifier: Apache-2.0
"""Command-line clients, each forked from a process that has imported it.

A client takes two seconds of processor time to import its packages, and a
fraction of that to do its work.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile

from tests.cloud import processes
from tests.cloud import programs

TIMEOUT = 120
# By program: what ``child.clients`` imports.
PROGRAMS = {
    'openstack': ('openstack.', 'openstackclient.shell',
                  'openstack.connection'),
    'nova': ('novaclient.', 'novaclient.shell'),
    'nova-aggregate-mirror-manage': (
        'nova_aggregate_mirror.', 'nova_aggregate_mirror.cmd.manage',
        'pymysql'),
    'nova-aggregate-mirror-status': (
        'nova_aggregate_mirror.', 'nova_aggregate_mirror.cmd.status',
        'pymysql'),
}


class Clients:
    """The clients of a Python environment; not for several threads.

    :param programs: the directory of its programs
    """

    def __init__(self, programs: pathlib.Path) -> None:
        self._python = programs / 'python'
        self._clients: dict[str, Client] = {}

    def run(self, argv: Sequence[str], environment: Mapping[str, str],
            directory: pathlib.Path) -> tuple[int, str, str]:
        """Run a command line of one of ``PROGRAMS`` in a directory.

        :returns: its exit status, standard output and standard error
        """
        if argv[0] not in self._clients:
            self._clients[argv[0]] = Client(self._python, PROGRAMS[argv[0]])
        return self._clients[argv[0]].run(argv, environment, directory)

    def close(self) -> None:
        """Kill the processes and the command that runs."""
        for each in self._clients.values():
            each.close()


class Client:
    """A client, and the process that has imported it."""

    def __init__(self, python: pathlib.Path, imported: Sequence[str]) -> None:
        self._python = python
        self._imported = imported
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, argv: Sequence[str], environment: Mapping[str, str],
            directory: pathlib.Path) -> tuple[int, str, str]:
        """Run a command line in a directory.

        :returns: its exit status, standard output and standard error
        """
        if self._process is None:
            self._start()
        with tempfile.TemporaryDirectory() as folder:
            outputs = [os.path.join(folder, name)
                       for name in ('stdout', 'stderr')]
            self._requests.write(json.dumps(
                [argv, environment, str(directory), outputs]) + '\n')
            self._requests.flush()
            try:
                answer = self._answers.readline()
            except TimeoutError:
                self.close()
                return 124, '', '%s: no end within %s s\n' % (argv, TIMEOUT)
            if not answer:
                self.close()
                return 125, '', 'the process of the client has died\n'
            out, err = (pathlib.Path(path).read_text() for path in outputs)
            return int(answer), out, err

    def close(self) -> None:
        """Kill the process and the command that it runs."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _start(self) -> None:
        # The process ends when this end of the socket is closed.
        here, there = socket.socketpair()
        here.settimeout(TIMEOUT)
        with there:
            self._process = subprocess.Popen(
                [self._python,
                 *programs.child('clients', *self._imported)[1:]],
                stdin=there, start_new_session=True,
                env=processes.clean_environment())
        self._requests = here.makefile('w')
        self._answers = here.makefile('r')
