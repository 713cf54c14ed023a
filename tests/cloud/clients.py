# SPDX-License-Identifier: Apache-2.0
"""Command-line clients, each forked from a process that has imported it.

A client takes two seconds of processor time to import its packages, and a
fraction of that to do its work.
"""

from collections import abc
import os
import pathlib
import tempfile

from tests.cloud import forks
from tests.cloud import processes
from tests.cloud import programs
from tests import patience

TIMEOUT = patience.seconds(300)
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
    """The clients of a Python environment; not for several threads."""

    def __init__(self, programs: pathlib.Path) -> None:
        self._python = programs / 'python'
        self._forkers: dict[str, forks.Forker] = {}

    def run(self, argv: abc.Sequence[str], environment: abc.Mapping[str, str],
            directory: pathlib.Path) -> tuple[int, str, str]:
        """Run a command line of one of ``PROGRAMS`` in a directory.

        :returns: its exit status, standard output and standard error
        """
        name = argv[0]
        if name not in self._forkers:
            task = programs.child('clients', *PROGRAMS[name])
            self._forkers[name] = forks.Forker(
                [str(self._python), *task[1:]], TIMEOUT,
                env=processes.clean_environment())
        with tempfile.TemporaryDirectory() as folder:
            outputs = [os.path.join(folder, name)
                       for name in ('stdout', 'stderr')]
            try:
                answer = self._forkers[name].ask(
                    argv, environment, str(directory), outputs)
            except TimeoutError:
                self._forkers.pop(name).close()
                return 124, '', '%s: no end within %s s\n' % (argv, TIMEOUT)
            if not answer:
                self._forkers.pop(name).close()
                return 125, '', 'the process of the client has died\n'
            out, err = (pathlib.Path(path).read_text() for path in outputs)
            return int(answer), out, err

    def close(self) -> None:
        """Kill the processes and the command that runs."""
        while self._forkers:
            self._forkers.popitem()[1].close()
