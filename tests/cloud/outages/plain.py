# SPDX-License-Identifier: Apache-2.0
"""A nova-api without this package, to compare the stock nova-api of a lane."""

import pathlib

from tests.cloud.integration import stock
from tests.cloud import loopback
from tests.cloud.outages import cases
from tests.cloud.outages import judge
from tests.cloud.outages import lane as lanes
from tests.cloud.outages import measure
from tests.cloud import processes
from tests.cloud import programs
from tests.cloud import services

NAME = 'plain'


def add(lane: lanes.Lane, folder: pathlib.Path) -> None:
    """Add a nova-api in an environment in which the package is missing.

    :param folder: for the environment; it has to exist
    :raises CloudError: when that environment has the package
    """
    lane.use(cases.DEFAULT_JOURNAL)
    lane.start(lanes.AGENT)
    python = stock.environment(str(lane.programs), folder)
    if stock.has_package(python):
        raise processes.CloudError('%s has the package' % python)
    path = lane.config.path
    stock.write_conf(path('%s.conf' % lanes.STOCK), path('%s.conf' % NAME))
    port, = loopback.free_ports(1)
    lane.processes[NAME] = processes.Process(
        NAME, [str(python), *programs.waitress(
            'nova.wsgi.osapi_compute', port, services.THREADS)[1:]],
        path('log/%s.log' % NAME), lane.nova_environment(NAME), port,
        'http://127.0.0.1:%d/v2.1' % port, tied=True)


def problems(measured: measure.Measured) -> list[str]:
    """Describe how the answer without the package differs from stock nova's.

    Without hooks the fault begins before the call.
    """
    stock, plain = measured.stock, measured.ours
    if (stock.status, stock.message) == (plain.status, plain.message):
        return []
    return ['stock: %s; without the package: %s' % (
        judge.described(stock), judge.described(plain))]
