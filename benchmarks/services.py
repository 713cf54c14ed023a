# SPDX-License-Identifier: Apache-2.0
"""Databases and servers of a benchmark's cloud."""

from collections.abc import Iterator
import contextlib
import dataclasses
import importlib.metadata
import importlib.util
import platform
import sys

from benchmarks import arguments
from benchmarks import commands
from benchmarks import databases
from benchmarks import machine
from tests.cloud import cloud
from tests.cloud import config
from tests.cloud import programs
from tests.cloud import small

PLACEMENT_PROCESSES = 4


@dataclasses.dataclass(frozen=True)
class Services:
    """Configuration of the clouds of a benchmark run."""

    database: str
    """``sqlite``, or the URL of a database server."""
    server: programs.Server
    placement: str
    """Description of placement's server."""

    @contextlib.contextmanager
    def cloud(self, nova_options: config.Options | None = None
              ) -> Iterator[cloud.Cloud]:
        """Run a cloud with temporary databases."""
        with databases.made(self.database) as database, \
                small.running(
                    database, self.server, nova_options) as running:
            yield running

    def versions(self) -> dict[str, str]:
        """Return the software versions by name."""
        return {**{name: importlib.metadata.version(name)
                   for name in ('nova', 'openstack-placement')},
                'Python': platform.python_version(),
                'placement under': self.placement,
                'database': databases.version(self.database)}

    def __str__(self) -> str:
        """Describe the environment of the figures."""
        found = self.versions()
        placement, database = found.pop('placement under'), found.pop(
            'database')
        return '%s; placement under %s on %s; %d cores with a load of %s ' \
            'before' % (', '.join('%s %s' % each for each in found.items()),
                        placement, database, machine.cores(), machine.load())


def choose(database: str | None) -> Services:
    """Choose the services of this run, and print them.

    :param database: value of the command line; None to detect a server
    :raises CloudError: when the installed package differs from this checkout
    """
    commands.check_installed()
    machine.warn_if_busy()
    url = database or databases.find()
    chosen = Services(url, *_server(url))
    print(chosen, flush=True)
    return chosen


def _server(database: str) -> tuple[programs.Server, str]:
    """Return the cloud's server, and a description of placement's."""
    if database == arguments.SQLITE:
        return programs.waitress, 'waitress with 1 thread'
    if importlib.util.find_spec('pyuwsgi') is None:
        print('pyuwsgi is not installed, so that placement has a single '
              'process: pip install -r benchmarks/requirements.txt',
              file=sys.stderr)
        return programs.waitress, 'waitress with 4 threads'

    def serve(module: str, port: int, threads: int) -> list[str]:
        if module.startswith('placement.'):
            return programs.uwsgi(module, port, PLACEMENT_PROCESSES)
        return programs.waitress(module, port, threads)

    return serve, 'uwsgi with %d processes' % PLACEMENT_PROCESSES
