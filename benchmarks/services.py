# SPDX-License-Identifier: Apache-2.0
"""Databases and servers of a benchmark's cloud."""

from collections.abc import Iterator
import contextlib
import dataclasses
import importlib.metadata
import os
import pathlib
import platform
import re

import psutil

from benchmarks import parts
from tests.cloud import cloud
from tests.cloud import config
from tests.cloud import programs
from tests.cloud import small
from tests import databases

NAMES = ('keystone', 'placement', 'nova', 'nova_api', 'nova_cell0', 'journal')
PLACEMENT_PROCESSES = 4


class Void(Exception):
    """The measured work was not done correctly; the text has the reason."""


@dataclasses.dataclass(frozen=True)
class Services:
    """Configuration of the clouds of a benchmark run.

    :param database: ``sqlite``, or the URL of a database server
    """

    database: str

    @contextlib.contextmanager
    def cloud(self, nova_options: config.Options | None = None
              ) -> Iterator[cloud.Cloud]:
        """Run a cloud with temporary databases."""
        with contextlib.ExitStack() as stack:
            url = self.database
            if url != parts.SQLITE:
                # Benchmarks may run in parallel.
                prefix = 'mirror_benchmark_%d_' % os.getpid()
                for name in NAMES:
                    databases.execute(url, 'CREATE DATABASE ' + prefix + name)
                    stack.callback(databases.execute, url,
                                   'DROP DATABASE ' + prefix + name)
                url = '%s/%s' % (url, prefix)
            yield stack.enter_context(
                small.running(url, self._serve, nova_options))

    def description(self) -> dict[str, str]:
        """Return versions, and properties of the machine, by name."""
        cpuinfo = pathlib.Path('/proc/cpuinfo')
        # Some architectures have no model.
        model = re.search(r'^model name\s*: (.+)$', cpuinfo.read_text()
                          if cpuinfo.exists() else '', re.MULTILINE)
        on_server = self.database != parts.SQLITE
        return {
            'processor': ' '.join(
                model[1].split()) if model else platform.machine(),
            'cores': str(os.cpu_count()),
            'memory': '%.0f GiB' % (psutil.virtual_memory().total / 2 ** 30),
            # The suffix of the version identifies the build.
            'kernel': '%s %s' % (platform.system(), '.'.join(
                platform.release().split('-')[0].split('.')[:2])),
            **{name: importlib.metadata.version(name)
               for name in ('nova', 'openstack-placement')},
            'Python': platform.python_version(),
            'placement under': 'uwsgi with %d processes' % (
                PLACEMENT_PROCESSES) if on_server else 'waitress',
            'database': 'MySQL %s' % databases.execute(
                self.database, 'SELECT VERSION()')[0][0]
            if on_server else 'SQLite'}

    def _serve(self, module: str, port: int, threads: int) -> list[str]:
        if (module.startswith('placement.')
                and self.database != parts.SQLITE):
            return programs.uwsgi(module, port, PLACEMENT_PROCESSES)
        return programs.waitress(module, port, threads)
