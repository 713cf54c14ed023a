# SPDX-License-Identifier: Apache-2.0
"""Benchmark of the full sync's cost by number of hosts.

For each size a new process runs this package's source, plan and reconciler
with nova's tables in SQLite files and an in-memory placement: the figures are
the cost of this package itself. Times are CPU times, so that other load has
little effect; memory is the peak memory of the work. With --real the full sync
also runs with a real keystone and placement, as with "python -m
benchmarks.sync --ours-only".

exit status: 0 the cost per host does not grow with their number, 1 it does, 2
the benchmark could not run, 130 interrupted
"""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
import json
import subprocess
import sys
import tempfile

from benchmarks import arguments
from benchmarks import program
from benchmarks import services
from benchmarks import sync
from benchmarks import table
from tests.cloud import processes

SIZES = (1000, 10000, 50000, 100000)
REAL = 20000
AGGREGATES = 20
TIMEOUT = 3600
GROWTH = 1.5
"""Maximum ratio of the cost per host between sizes."""
HEADER = ('providers', 'read nova, s', 'plan, s', 'sync, nothing mirrored, s',
          'sync, all in sync, s', 'MiB, nothing mirrored', 'MiB, all in sync',
          'per provider')
TAIL = 2000

Found = Mapping[str, float]


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='scale', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--sizes', type=arguments.positive, nargs='+', default=SIZES,
        metavar='N', help='compute hosts (%s)' % ' '.join(map(str, SIZES)))
    parser.add_argument(
        '--memberships', type=arguments.positive, default=3, metavar='N',
        help='aggregates per host, of %d (3)' % AGGREGATES)
    parser.add_argument(
        '--real', type=arguments.positive, nargs='?', const=REAL, metavar='N',
        help='also run with a real placement and N hosts (%d)' % REAL)
    arguments.add_output(parser)
    options = parser.parse_args(argv)
    if options.memberships > AGGREGATES:
        parser.error('--memberships %d is greater than %d' % (
            options.memberships, AGGREGATES))
    return options


def measure(hosts: int, memberships: int) -> Found:
    """Measure a size in a new process, see ``in_memory``.

    :raises CloudError: when it fails
    """
    with tempfile.TemporaryDirectory(prefix='mirror-scale-') as directory:
        try:
            done = subprocess.run(
                [sys.executable, '-m', 'benchmarks.in_memory', str(hosts),
                 str(memberships), str(AGGREGATES), directory],
                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                env=processes.clean_environment(), timeout=TIMEOUT,
                # Only this process handles Ctrl-C, and stops the child.
                start_new_session=True)
        except subprocess.TimeoutExpired as exc:
            raise processes.CloudError(
                '%d hosts took over %d s' % (hosts, TIMEOUT)) from exc
    if done.returncode:
        raise processes.CloudError('%d hosts could not be measured:\n%s' % (
            hosts, done.stderr[-TAIL:]))
    return json.loads(done.stdout)


def cost(hosts: int, found: Found) -> tuple[float, float]:
    """Return microseconds and KiB per host, for both full syncs."""
    return (1e6 * (found['cold'] + found['warm']) / hosts,
            1024 * max(found['cold_mib'], found['warm_mib']) / hosts)


def row(hosts: int, found: Found) -> list[str]:
    return [str(hosts), *('%.*f' % (decimals, found[name])
                          for name, decimals in (
                              ('read', 2), ('plan', 2), ('cold', 2),
                              ('warm', 2), ('cold_mib', 0),
                              ('warm_mib', 0))),
            '%.0f us, %.1f KiB' % cost(hosts, found)]


def growing(costs: Sequence[tuple[float, float]]) -> bool:
    """Check whether the cost per host grows with the number of hosts.

    :param costs: costs per host, by ascending size
    """
    return any(many > GROWTH * few for figures in zip(*costs)
               for number, few in enumerate(figures)
               for many in figures[number + 1:])


def run(options: argparse.Namespace) -> bool:
    """Run the benchmark.

    :returns: whether the cost per host grows
    """
    rows, costs = [], []
    for hosts in sorted(set(options.sizes)):
        found = measure(hosts, options.memberships)
        rows.append(row(hosts, found))
        costs.append(cost(hosts, found))
        print('  '.join('%s: %s' % cell for cell in zip(HEADER, rows[-1])),
              flush=True)
    tables = [table.Table(
        'Each host in %d of %d aggregates; CPU time; nova in SQLite, '
        'placement in memory' % (options.memberships, AGGREGATES),
        HEADER, rows)]
    if options.real:
        chosen = services.choose(None)
        real, _missed = sync.measure(sync.parse([
            '--hosts', str(options.real), '--pairs', '1', '--ours-only',
            '--agent-pass', '--memberships', str(options.memberships)]),
            chosen)
        tables += [each.where(str(chosen)) for each in real]
    program.publish(options, *tables)
    return growing(costs)


def main(argv: list[str]) -> int:
    options = parse(argv)

    def benchmark() -> int:
        if run(options):
            print('The cost per host grows by more than %g times' % GROWTH)
            return 1
        return 0

    return program.guarded(benchmark)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
