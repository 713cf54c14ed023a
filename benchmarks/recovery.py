# SPDX-License-Identifier: Apache-2.0
"""Time how long placement differs from nova after an outage of placement.

While placement is away every host is added to an aggregate through a real
nova-api: once through one with this package, whose agent runs, and once
through one with stock nova. What stock nova answers then does not matter: the
hosts are members in nova with both, or the benchmark ends. Placement comes
back, and the clock starts at its first answer. With this package it stops when
placement equals nova: nobody does anything. Stock nova has nothing that
repairs by itself, so "nova-manage placement sync_aggregates" is run at that
very moment, as if an operator had waited for it, and the clock stops when the
command ends. Then placement must equal nova with both.

All options are the defaults. The ratio is taken pair by pair, and above 1 this
package is better. Machines are noisy: quote the medians and the ratios, not a
single time.

exit status: 0 no target is missed, 1 one is, 2 it could not run or a run did
not do its work, 130 interrupted
"""

import argparse
from collections.abc import Callable
from collections.abc import Sequence
import sys

try:
    from benchmarks import arguments
    from benchmarks import figures
    from benchmarks import outage
    from benchmarks import program
    from benchmarks import services
    from benchmarks import table
    from benchmarks import workload
except ImportError as exc:
    sys.exit('%s; run this in the environment that ./tools/demo makes: '
             '.venv-demo/bin/python -m benchmarks.recovery' % exc)

HEADER = ('', 'stock nova, then nova-manage', 'this package', 'ratio',
          'target')
ANSWERED = 'add-host answered %d'
FIGURES = (
    figures.Figure('add-host while placement is away, ms',
                   lambda run: run.calls.milliseconds),
    figures.Figure('the slowest of these, ms', lambda run: run.calls.slowest),
    figures.Figure('until placement equals nova, s',
                   lambda run: run.seconds, 1),
    figures.Figure('CPU of placement, s',
                   lambda run: run.placement_cpu_seconds, 1),
    figures.Figure('placement requests', lambda run: run.placement_requests),
    figures.Figure('hosts that the journal mirrored',
                   lambda run: run.by_journal))
LINE = '%-5s  add-host %4.0f ms %s  equal after %6.1f s'


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='recovery', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default, what in (
            ('hosts', 1000, 'compute hosts, each added to one aggregate'),
            ('aggregates', 20, 'aggregates'),
            ('pairs', 2, 'how often both go through an outage')):
        parser.add_argument('--' + name, type=arguments.positive,
                            default=default, metavar='N',
                            help='%s (%d)' % (what, default))
    arguments.add_database(parser)
    arguments.add_outputs(parser)
    return parser.parse_args(argv)


def _answered(status: int) -> Callable[[outage.Run], float]:
    return lambda run: run.calls.statuses.get(status, 0)


def rows(pairs: Sequence[figures.Pair], hosts: int
         ) -> tuple[list[list[str]], list[str]]:
    """The lines of the table, and the target if it is missed."""
    state, name = '%d hosts' % hosts, ANSWERED % outage.OK
    statuses = sorted({outage.OK}.union(*(
        run.calls.statuses for pair in pairs
        for run in (pair.theirs, pair.ours))))
    lines, _missed = figures.rows(state, pairs, {}, [figures.Figure(
        ANSWERED % status, _answered(status)) for status in statuses])
    good = all(_answered(outage.OK)(pair.ours) == hosts for pair in pairs)
    for line in lines:
        # How many calls is no ratio.
        line[-2] = figures.NONE
        if line[0].endswith(name):
            line[-1] = 'all %d: %s' % (hosts, 'met' if good else 'MISSED')
    more, _missed = figures.rows(state, pairs, {}, FIGURES)
    return lines + more, [] if good else ['%s: %s' % (state, name)]


def measure(options: argparse.Namespace, chosen: services.Services
            ) -> tuple[list[table.Table], list[str]]:
    """Do what the command line says; the target if it is missed."""
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
            # A B B A: whatever drifts meanwhile weighs on both alike.
            both.reverse()
    lines, missed = rows(pairs, options.hosts)
    return [table.Table(
        '%d hosts added while placement was away, %d clients at once, pairs '
        'of outages: %d' % (options.hosts, outage.CLIENTS, options.pairs),
        HEADER, lines)], missed


if __name__ == '__main__':
    sys.exit(program.compare(parse(sys.argv[1:]), measure))
