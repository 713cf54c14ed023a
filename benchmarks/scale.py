# SPDX-License-Identifier: Apache-2.0
"""The full sync's cost by number of hosts.

For each size a new process runs this package's source, plan and reconciler
with nova's tables in SQLite files and an in-memory placement: the figures are
the cost of this package itself. Times are CPU times, so that other load has
little effect; memory is the peak memory of the work.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import json
import subprocess
import sys
import tempfile

from benchmarks import commands
from benchmarks import services
from benchmarks import table
from tests.cloud import processes

AGGREGATES, MEMBERSHIPS = 20, 3
TIMEOUT = 3600
GROWTH = 1.5
"""Maximum ratio of the cost per host between sizes."""
HEADER = ('providers', 'read nova, s', 'plan, s', 'sync, nothing mirrored, s',
          'sync, all in sync, s', 'MiB, nothing mirrored', 'MiB, all in sync',
          'per provider')
TAIL = 2000

Result = Mapping[str, float]


def run(hosts: int) -> Result:
    """Measure a size in a new process, see ``in_memory``.

    :raises CloudError: when it fails
    """
    with tempfile.TemporaryDirectory(prefix='mirror-scale-') as directory:
        try:
            done = subprocess.run(
                [sys.executable, '-m', 'benchmarks.in_memory', str(hosts),
                 str(MEMBERSHIPS), str(AGGREGATES), directory],
                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                env={**processes.clean_environment(),
                     'PYTHONPATH': str(commands.CHECKOUT)}, timeout=TIMEOUT,
                # Only this process handles Ctrl-C, and stops the child.
                start_new_session=True)
        except subprocess.TimeoutExpired as exc:
            raise processes.CloudError(
                '%d hosts took over %d s' % (hosts, TIMEOUT)) from exc
    if done.returncode:
        raise processes.CloudError('%d hosts could not be measured:\n%s' % (
            hosts, done.stderr[-TAIL:]))
    return json.loads(done.stdout)


def cost(hosts: int, result: Result) -> tuple[float, float]:
    """Return microseconds and KiB per host, for both full syncs."""
    return (1e6 * (result['cold'] + result['warm']) / hosts,
            1024 * max(result['cold_mib'], result['warm_mib']) / hosts)


def row(hosts: int, result: Result) -> list[str]:
    return [str(hosts), *('%.*f' % (decimals, result[name])
                          for name, decimals in (
                              ('read', 2), ('plan', 2), ('cold', 2),
                              ('warm', 2), ('cold_mib', 0),
                              ('warm_mib', 0))),
            '%.0f us, %.1f KiB' % cost(hosts, result)]


def grows(costs: Sequence[tuple[float, float]]) -> bool:
    """Check whether the cost per host grows with the number of hosts.

    :param costs: costs per host, by ascending size
    """
    return any(many > GROWTH * few for figures in zip(*costs)
               for number, few in enumerate(figures)
               for many in figures[number + 1:])


def measure(_chosen: services.Services, sizes: Sequence[int]
            ) -> tuple[list[table.Table], list[str]]:
    """Run the benchmark.

    :param sizes: numbers of hosts, ascending
    """
    results = {hosts: run(hosts) for hosts in sizes}
    costs = [cost(*size) for size in results.items()]
    return [table.Table(
        'Each host in %d of %d aggregates; CPU time; nova in SQLite, '
        'placement in memory' % (MEMBERSHIPS, AGGREGATES), HEADER,
        [row(*size) for size in results.items()])], (
            ['cost per host, by number of hosts'] if grows(costs) else [])
