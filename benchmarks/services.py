# SPDX-License-Identifier: Apache-2.0
"""A benchmark's cloud on MySQL, with placement under uwsgi."""

from collections import abc
import contextlib
import importlib.metadata
import os
import pathlib
import platform
import re

from keystoneauth1 import adapter
import psutil

from tests.cloud import cloud
from tests.cloud import config
from tests.cloud import programs
from tests.cloud import small
from tests import databases

NAMES = ('keystone', 'placement', 'nova', 'nova_api', 'nova_cell0')
PLACEMENT_PROCESSES = 4
STOCK: config.Options = {'aggregate_mirror': {'mode': 'observe'}}
"""Options that leave the mirroring to nova."""
LEFT_TO_NOVA = 'mode is observe, so that nova mirrors'
"""The end of the log message of such a nova-api at its start."""


class Void(Exception):
    """The measured work was not done correctly; the text has the reason."""


@contextlib.contextmanager
def running(nova_options: config.Options | None = None
            ) -> abc.Iterator[cloud.Cloud]:
    """Run a cloud with temporary databases."""
    url = databases.find('mysql')
    # Benchmarks may run in parallel.
    prefix = 'mirror_benchmark_%d_' % os.getpid()
    with contextlib.ExitStack() as stack:
        for name in NAMES:
            databases.execute(url, 'CREATE DATABASE ' + prefix + name)
            stack.callback(
                databases.execute, url, 'DROP DATABASE ' + prefix + name)
        yield stack.enter_context(small.running(
            '%s/%s' % (url, prefix), _serve, nova_options))


def _serve(module: str, port: int, threads: int) -> list[str]:
    if module.startswith('placement.'):
        return programs.uwsgi(module, port, PLACEMENT_PROCESSES)
    return programs.waitress(module, port, threads)


@contextlib.contextmanager
def stock_nova_api(running: cloud.Cloud,
                   server: programs.Server | None = None
                   ) -> abc.Iterator[adapter.Adapter]:
    """Run an additional nova-api in which nova mirrors, not this package."""
    with running.another_nova_api('stock', STOCK, server) as nova:
        log = pathlib.Path(running.config.path('log/stock.log'))
        if LEFT_TO_NOVA not in log.read_text(errors='replace'):
            raise Void('This package mirrors in the nova-api that is measured '
                       'as nova')
        yield nova


def description() -> dict[str, str]:
    """Return versions, and properties of the machine, by name."""
    cpuinfo = pathlib.Path('/proc/cpuinfo')
    # Some architectures have no model.
    model = re.search(r'^model name\s*: (.+)$', cpuinfo.read_text()
                      if cpuinfo.exists() else '', re.MULTILINE)
    version, = databases.execute(databases.find('mysql'), 'SELECT VERSION()')
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
        'placement under': 'uwsgi with %d processes' % PLACEMENT_PROCESSES,
        'database': 'MySQL %s' % version[0]}
