# SPDX-License-Identifier: Apache-2.0
"""Benchmark of the recovery after an outage of placement.

While placement is unavailable, every host is added to an aggregate through a
real nova-api: first with this package and a running agent, then with stock
nova. Stock nova's responses are ignored: the benchmark fails unless the hosts
are members in nova in both cases. The measurement starts at placement's first
response after the outage. With this package it ends when placement is in sync
with nova, without any action. Stock nova has no automatic repair, so that
"nova-manage placement sync_aggregates" is run immediately, as if an operator
had waited for it, and the measurement ends with the command. Placement must
then be in sync with nova in both cases.

All options have their defaults. The ratio is computed per pair; above 1 this
package is better. Single times are noisy: quote the medians and the ratios.

exit status: 0 all targets are met, 1 a target is missed, 2 the benchmark could
not run or a run did not mirror correctly, 130 interrupted
"""

import argparse
from collections.abc import Callable
from collections.abc import Sequence
import sys

from benchmarks import arguments
from benchmarks import figures
from benchmarks import outage
from benchmarks import program
from benchmarks import services
from benchmarks import table
from benchmarks import workload

HEADER = ('', 'stock nova, then nova-manage', 'this package', 'ratio',
          'target')
ANSWERED = 'add-host answered %d'
FIGURES = (
    figures.Figure('add-host during the outage, ms',
                   lambda run: run.calls.milliseconds),
    figures.Figure('slowest add-host, ms', lambda run: run.calls.slowest),
    figures.Figure('until placement is in sync, s',
                   lambda run: run.seconds, 1),
    figures.Figure('CPU of placement, s',
                   lambda run: run.placement_cpu_seconds, 1),
    figures.Figure('placement requests', lambda run: run.placement_requests),
    figures.Figure('hosts mirrored by the journal',
                   lambda run: run.by_journal))
LINE = '%-5s  add-host %4.0f ms %s  in sync after %6.1f s'


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='recovery', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default, what in (
            ('hosts', 1000, 'compute hosts, each added to an aggregate'),
            ('aggregates', 20, 'aggregates'),
            ('pairs', 2, 'number of outages for each')):
        parser.add_argument('--' + name, type=arguments.positive,
                            default=default, metavar='N',
                            help='%s (%d)' % (what, default))
    arguments.add_database(parser)
    arguments.add_output(parser)
    return parser.parse_args(argv)


def _answered(status: int) -> Callable[[outage.Run], float]:
    return lambda run: run.calls.statuses.get(status, 0)


def rows(pairs: Sequence[figures.Pair], hosts: int
         ) -> tuple[list[list[str]], list[str]]:
    """Return the lines of the table, and the missed targets."""
    state, name = '%d hosts' % hosts, ANSWERED % outage.OK
    statuses = sorted({outage.OK}.union(*(
        run.calls.statuses for pair in pairs
        for run in (pair.theirs, pair.ours))))
    lines, _missed = figures.rows(state, pairs, {}, [figures.Figure(
        ANSWERED % status, _answered(status)) for status in statuses])
    good = all(_answered(outage.OK)(pair.ours) == hosts for pair in pairs)
    for line in lines:
        # Numbers of calls have no ratio.
        line[-2] = figures.NONE
        if line[0].endswith(name):
            line[-1] = 'all %d: %s' % (hosts, 'met' if good else 'MISSED')
    more, _missed = figures.rows(state, pairs, {}, FIGURES)
    return lines + more, [] if good else ['%s: %s' % (state, name)]


def measure(options: argparse.Namespace, chosen: services.Services
            ) -> tuple[list[table.Table], list[str]]:
    """Run the benchmark.

    :returns: the tables, and the missed targets
    """
    pairs = []
    with chosen.cloud() as running:
        trial = outage.Outage(running, workload.Size(
            options.hosts, 1, options.aggregates))
        both = [('stock', trial.stock), ('ours', trial.ours)]
        for _pair in range(options.pairs):
            runs = {}
            for name, play in both:
                run = runs[name] = play()
                print(LINE % (name, run.calls.milliseconds,
                              dict(run.calls.statuses), run.seconds),
                      flush=True)
            pairs.append(figures.Pair(runs['ours'], runs['stock']))
            # A B B A: gradual changes of the load affect both alike.
            both.reverse()
    lines, missed = rows(pairs, options.hosts)
    return [table.Table(
        '%d hosts added during an outage of placement, %d parallel clients, '
        'pairs of outages: %d' % (
            options.hosts, outage.CLIENTS, options.pairs),
        HEADER, lines)], missed


if __name__ == '__main__':
    sys.exit(program.compare(parse(sys.argv[1:]), measure))
