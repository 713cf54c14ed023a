# SPDX-License-Identifier: Apache-2.0
"""Benchmark of this package's full sync and nova-manage's in a real cloud.

Both commands run in turn with the same keystone, placement and databases:
first with no provider in any aggregate, then with everything in sync. After
each run placement is compared with nova; a run that did not mirror everything,
or that wrote without a difference, stops the benchmark. The ratio is computed
per pair; above 1 this package is better. Single times are noisy: quote the
medians and the ratios.

exit status: 0 all targets are met, 1 a target is missed, 2 the benchmark could
not run or a run did not mirror correctly, 130 interrupted
"""

import argparse
import statistics
import sys

from benchmarks import agent_pass
from benchmarks import arguments
from benchmarks import commands
from benchmarks import figures
from benchmarks import program
from benchmarks import services
from benchmarks import table
from benchmarks import workload
from tests.cloud import cloud

PASSES = 10
LONGEST_PASS = 1.0
"""Maximum seconds of an agent's full sync of 5000 x 3 in sync."""
LINE = '%-16s  %-28s  %8s s  CPU %7s s  %4s MiB  %6s requests'


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='sync', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default, what in (
            ('hosts', 1000, 'compute hosts'),
            ('memberships', 3, 'aggregates per host'),
            ('aggregates', 20, 'aggregates'),
            ('pairs', 2, 'how often both commands run in each state')):
        parser.add_argument('--' + name, type=arguments.positive,
                            default=default, metavar='N',
                            help='%s (%d)' % (what, default))
    arguments.add_database(parser)
    parser.add_argument('--ours-only', action='store_true',
                        help='do not run nova-manage: figures without ratios')
    parser.add_argument(
        '--agent-pass', action='store_true',
        help='also measure full syncs of a running agent, in sync')
    arguments.add_output(parser)
    options = parser.parse_args(argv)
    if options.memberships > options.aggregates:
        parser.error('--memberships %d is greater than --aggregates %d' % (
            options.memberships, options.aggregates))
    return options


def tell(state: str, command: str, run: figures.Run) -> None:
    print(LINE % (state, command, '%.2f' % run.seconds,
                  '%.2f' % run.cpu_seconds, '%.0f' % run.peak_mib,
                  run.placement_requests), flush=True)


class Comparison:
    """Runs of both commands on a workload, with their figures."""

    def __init__(self, load: workload.Workload, runner: commands.Commands,
                 ours_only: bool) -> None:
        self._load = load
        self._runner = runner
        self._names = [commands.OURS] if ours_only else [
            commands.STOCK, commands.OURS]
        self.pairs: dict[str, list[figures.Pair]] = {
            figures.COLD: [], figures.WARM: []}

    def pair(self) -> None:
        """Run both commands in both states, in alternating order."""
        for state, measure in ((figures.COLD, self._cold),
                               (figures.WARM, self._warm)):
            runs = {}
            for name in self._names:
                runs[name] = measure(name)
                tell(state, name, runs[name])
            self.pairs[state].append(figures.Pair(
                runs[commands.OURS], runs.get(commands.STOCK)))
        # A B B A: gradual changes of the load affect both alike.
        self._names.reverse()

    def _cold(self, name: str) -> figures.Run:
        self._load.empty()
        run = self._runner.sync(name)
        self._load.check()
        return run

    def _warm(self, name: str) -> figures.Run:
        before = self._load.check()
        run = self._runner.sync(name)
        if self._load.check() != before:
            raise program.Void('%s wrote although nothing differed' % name)
        return run

    def rows(self, size: workload.Size) -> tuple[list[list[str]], list[str]]:
        """Return the lines of the table, and the missed targets."""
        wanted = figures.targets(size.hosts, size.memberships,
                                 size.aggregates)
        rows, missed = [], []
        for state, pairs in self.pairs.items():
            more, failed = figures.rows(state, pairs, wanted)
            rows += more
            missed += failed
        return rows, missed


def agent_rows(running: cloud.Cloud, load: workload.Workload,
               size: workload.Size) -> tuple[list[list[str]], list[str]]:
    """Measure the full syncs of a running agent.

    :returns: the lines of the table, and the missed targets
    :raises Void: when a full sync wrote although nothing differed
    """
    agent = agent_pass.Agent(running)
    try:
        before = load.check()
        seconds = agent.passes(PASSES)
        if load.check() != before:
            raise program.Void('The agent wrote although nothing differed')
    finally:
        agent.stop()
    name, missed, verdict = 'agent: full sync, s', [], figures.NONE
    if (size.hosts, size.memberships) == (5000, 3):
        good = statistics.median(seconds) <= LONGEST_PASS
        verdict = '%g or less: %s' % (LONGEST_PASS,
                                      'met' if good else 'MISSED')
        missed = [] if good else [name]
    return [[name, figures.NONE, figures.spread(seconds, 2), figures.NONE,
             verdict],
            ['agent: RSS, MiB', figures.NONE,
             figures.spread([agent.resident_mib()]), figures.NONE,
             figures.NONE]], missed


def measure(options: argparse.Namespace, chosen: services.Services
            ) -> tuple[list[table.Table], list[str]]:
    """Run the benchmark.

    :returns: the tables, and the missed targets
    """
    size = workload.Size(options.hosts, options.memberships,
                         options.aggregates)
    title = '%s hosts and memberships, %d aggregates, pairs of runs: %d' % (
        size, size.aggregates, options.pairs)
    print(title, flush=True)
    with chosen.cloud(agent_pass.INTERVAL) as running:
        load = workload.Workload(running, size)
        comparison = Comparison(load, commands.Commands(running),
                                options.ours_only)
        for _pair in range(options.pairs):
            comparison.pair()
        rows, missed = comparison.rows(size)
        if options.agent_pass:
            more, failed = agent_rows(running, load, size)
            rows += more
            missed += failed
    lines = [figures.HEADER, *rows]
    if options.ours_only:
        lines = [[line[column] for column in figures.OURS] for line in lines]
    return [table.Table(title, lines[0], lines[1:])], missed


if __name__ == '__main__':
    sys.exit(program.compare(parse(sys.argv[1:]), measure))
