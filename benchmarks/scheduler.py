# SPDX-License-Identifier: Apache-2.0
"""Benchmark of nova-scheduler with stock filters and with this package.

A flavor is bound to an aggregate of 20 hosts by an extra spec. Two real
nova-scheduler processes with nova's select_destinations share a keystone, a
placement and nova's databases: the first with nova's default filters and
AggregateInstanceExtraSpecsFilter, the second with these and this package's
request filter and guard. They are called in turn, several times each. The
ratio is computed per pair; above 1 this package is better. Single times are
noisy: quote the medians and the ratios.

Each size is measured twice: with nova-computes that report their instances to
nova-scheduler, which is nova's default, and without, as with a message queue
per cell ([filter_scheduler] track_instance_changes).

If there are more hosts than placement may return, both are also asked for the
hosts of single-host aggregates, from the first host to the last.

exit status: 0 all targets are met, 1 a target is missed, 2 the benchmark could
not run or a run did not schedule correctly, 130 interrupted
"""

import argparse
import pathlib
import sys

from benchmarks import arguments
from benchmarks import figures
from benchmarks import fleet
from benchmarks import placing
from benchmarks import program
from benchmarks import schedulers
from benchmarks import services
from benchmarks import table
from tests.cloud import cloud

SIZES = (200, 1000, 2000)
PLACEMENT_LIMIT = 1000
"""Nova's default of max_placement_results."""
UNTRACKED = ', instances not tracked'
LINE = '%-35s  %-5s  %8s ms  CPU %7s ms  placement %6s ms  load %s'


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='scheduler', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--hosts', type=arguments.positive, nargs='+', default=SIZES,
        metavar='N', help='compute hosts (%s)' % ' '.join(map(str, SIZES)))
    for name, default, what in (
            ('pairs', 5, 'how often both are measured in turn'),
            ('calls', 5, 'requests to each nova-scheduler per pair')):
        parser.add_argument('--' + name, type=arguments.positive,
                            default=default, metavar='N',
                            help='%s (%d)' % (what, default))
    parser.add_argument(
        '--isolation', action='store_true',
        help='also enable nova\'s filters for tenant and image isolation, and '
             'this package\'s request filters for them')
    parser.add_argument(
        '--profile', type=pathlib.Path, metavar='DIRECTORY',
        help='write a cProfile of another request to each')
    arguments.add_database(parser)
    arguments.add_output(parser)
    options = parser.parse_args(argv)
    if min(options.hosts) < fleet.BOUND:
        parser.error('--hosts must be at least %d' % fleet.BOUND)
    if options.profile and not options.profile.is_dir():
        parser.error('--profile %s is not a directory' % options.profile)
    return options


def compare(running: dict[str, schedulers.Scheduler], state: str,
            options: argparse.Namespace) -> list[figures.Pair]:
    """Measure both in turn, in alternating order."""
    pairs, names = [], list(running)
    for _pair in range(options.pairs):
        runs = {}
        for name in names:
            runs[name] = running[name].measure(options.calls)
            print(LINE % (state, name, *(
                '%.0f' % (value * 1000) for value in (
                    runs[name].seconds, runs[name].cpu_seconds,
                    runs[name].placement_cpu_seconds)),
                '%.1f' % runs[name].load), flush=True)
        pairs.append(figures.Pair(runs[schedulers.OURS],
                                  runs[schedulers.STOCK]))
        # A B B A: gradual changes of the load affect both alike.
        names.reverse()
    if options.profile:
        for name, scheduler in running.items():
            scheduler.profile(options.profile / (
                '%s-%s.prof' % (name, state.replace(' ', '-'))))
    return pairs


def one_size(options: argparse.Namespace, running: cloud.Cloud,
             seeded: fleet.Fleet, tracked: bool
             ) -> tuple[list[list[str]], list[list[str]], list[str]]:
    """Measure a size.

    :returns: the lines of both tables, and the missed targets
    """
    hosts = len(seeded.nodes)
    state = '%d hosts%s' % (hosts, '' if tracked else UNTRACKED)
    with schedulers.started(running, seeded, options.isolation,
                            tracked) as both:
        pairs = compare(both, state, options)
        rows, missed = placing.rows(state, pairs, fleet.BOUND, hosts)
        if tracked and hosts > PLACEMENT_LIMIT:
            row, failed = placing.lone_row(
                state, both[schedulers.STOCK].found(),
                both[schedulers.OURS].found(), fleet.LONE)
            rows.append(row)
            missed += failed
    return rows, placing.stage_rows(state, pairs), missed


def measure(options: argparse.Namespace, chosen: services.Services
            ) -> tuple[list[table.Table], list[str]]:
    """Run the benchmark.

    :returns: the tables, and the missed targets
    """
    rows, missed, stages = [], [], []
    for hosts in sorted(options.hosts):
        with chosen.cloud() as running:
            seeded = fleet.seeded(running, hosts)
            for tracked in (True, False):
                more, parts, failed = one_size(
                    options, running, seeded, tracked)
                rows += more
                missed += failed
                if hosts == max(options.hosts):
                    stages += parts
    title = 'A flavor bound to %d hosts, pairs of %d calls: %d' % (
        fleet.BOUND, options.calls, options.pairs)
    return [table.Table(title, placing.HEADER, rows),
            table.Table('Time of a call by stage', placing.STAGES_HEADER,
                        stages)], missed


if __name__ == '__main__':
    sys.exit(program.compare(parse(sys.argv[1:]), measure))
