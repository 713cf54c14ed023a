# SPDX-License-Identifier: Apache-2.0
"""Benchmark of ``scheduling explain`` and of the scheduling that it explains.

The command runs as a process, and a real nova-scheduler with the same
configuration schedules a server with the same request directly before or after
it. Both use the request filters, the guard and nova's filters for tenants,
images and extra specs, and take as many candidates as there are hosts
(max_placement_results). Two requests are measured: one that most hosts can
take, and one that most hosts cannot, because a third of them has no VCPU left
and a tenth each is disabled, in another zone, missing in placement, in an
aggregate for another tenant, or not in the aggregate of the flavor. The result
for each host is compared with what was set up. The ratio is the figure of the
command divided by that of nova-scheduler, per pair. Single times are noisy:
quote the medians and the ratios.

exit status: 0 all targets are met, 1 a target is missed, 2 the benchmark could
not run or a result was wrong, 130 interrupted
"""

import argparse
from collections.abc import Mapping
import dataclasses
import json
import pathlib
import statistics
import sys

from benchmarks import arguments
from benchmarks import commands
from benchmarks import figures
from benchmarks import fleet
from benchmarks import obstacles
from benchmarks import program
from benchmarks import schedulers
from benchmarks import services
from benchmarks import table
from benchmarks import workload
from tests.cloud import cloud

SIZES = (200, 5000)
LONGEST = {5000: 5}
"""Maximum ratio of the wall times, by number of hosts."""
HEADER = ('', 'scheduling explain', 'nova-scheduler', 'ratio', 'target')
FIGURES = (figures.WALL, figures.Figure('CPU, s', lambda run: run.cpu_seconds,
                                        1), figures.REQUESTS)
LINE = '%-35s  %-14s  %6.2f s  CPU %6.2f s  %4.0f MiB  %3d requests'


@dataclasses.dataclass(frozen=True)
class Request:
    """A request, and the kinds of the reasons that it meets."""

    name: str
    extra_specs: Mapping[str, str]
    reasons: Mapping[str, str]

    def expected(self, hosts: list[str]) -> Mapping[str, str]:
        """Return each host with the kind of its reason."""
        return {host: self.reasons.get(obstacle, 'acceptable')
                for obstacle, some in obstacles.by_obstacle(hosts).items()
                for host in some}


SEEDED = {name: kind for name, kind in obstacles.SEEDED.items()
          if name != obstacles.SLOW}
ACCEPTED = Request('most acceptable', {}, SEEDED)
EXCLUDED = Request('most excluded', obstacles.SPECS,
                   {**obstacles.SEEDED, **obstacles.ADDED})


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='explain', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--hosts', type=arguments.positive, nargs='+', default=SIZES,
        metavar='N', help='compute hosts (%s)' % ' '.join(map(str, SIZES)))
    parser.add_argument(
        '--pairs', type=arguments.positive, default=5, metavar='N',
        help='how often both are measured in turn (5)')
    parser.add_argument(
        '--profile', type=pathlib.Path, metavar='DIRECTORY',
        help='write a cProfile of another run of the command')
    arguments.add_database(parser)
    arguments.add_output(parser)
    options = parser.parse_args(argv)
    if min(options.hosts) < fleet.BOUND:
        parser.error('--hosts must be at least %d' % fleet.BOUND)
    if options.profile and not options.profile.is_dir():
        parser.error('--profile %s is not a directory' % options.profile)
    return options


class Comparison:
    """The command and a nova-scheduler on the same cloud.

    :param nova_conf: path of the configuration of both
    """

    def __init__(self, running: cloud.Cloud, seeded: fleet.Fleet,
                 scheduler: schedulers.Scheduler, nova_conf: str) -> None:
        self._hosts = seeded.hosts
        self._scheduler = scheduler
        self._nova_conf = nova_conf
        self._runner = commands.Commands(running)
        self._nova = running.nova()

    def pairs(self, request: Request, options: argparse.Namespace
              ) -> list[figures.Pair]:
        """Measure both in turn, in alternating order."""
        state = '%d hosts, %s' % (len(self._hosts), request.name)
        self._create_flavor(request)
        runs: dict[str, figures.Run] = {}

        def explain() -> None:
            runs['explain'] = self._explain(request)

        def schedule() -> None:
            runs['nova-scheduler'] = self._schedule(request)

        found, order = [], [explain, schedule]
        for _pair in range(options.pairs):
            for one in order:
                one()
            for name, run in sorted(runs.items()):
                print(LINE % (state, name, run.seconds, run.cpu_seconds,
                              run.peak_mib, run.placement_requests),
                      flush=True)
            found.append(figures.Pair(
                runs['nova-scheduler'], runs['explain']))
            # A B B A: gradual changes of the load affect both alike.
            order.reverse()
        if options.profile:
            self._explain(request, options.profile / (
                state.replace(', ', '-').replace(' ', '-') + '.prof'))
        return found

    def _create_flavor(self, request: Request) -> None:
        """Create the flavor that nova-scheduler's requests have."""
        name = request.name.replace(' ', '-')
        self._nova.post('/flavors', json={'flavor': {
            'id': name, 'name': name, 'ram': 512, 'vcpus': 1, 'disk': 1}})
        if request.extra_specs:
            self._nova.post('/flavors/%s/os-extra_specs' % name, json={
                'extra_specs': dict(request.extra_specs)})

    def _explain(self, request: Request, profile: pathlib.Path | None = None
                 ) -> figures.Run:
        """Run the command.

        :raises Void: when a host has a wrong reason
        """
        run, output = self._runner.run(
            commands.OURS, self._nova_conf, 'scheduling', 'explain',
            '--flavor', request.name.replace(' ', '-'), '--zone',
            obstacles.ZONE, '--project', obstacles.TENANT, '--format', 'json',
            profile=profile)
        found = {one['host']: one['kind']
                 for one in json.loads(output[output.index('{'):])['hosts']}
        wrong = sorted(host for host, kind in request.expected(
            self._hosts).items() if found.get(host) != kind)
        if wrong:
            raise program.Void(
                'the reason of %d of %d hosts is wrong, the first is %s: %s'
                % (len(wrong), len(self._hosts), wrong[0],
                   found.get(wrong[0])))
        return run

    def _schedule(self, request: Request) -> figures.Run:
        """Let nova-scheduler schedule a server.

        :raises Void: when it is scheduled to an unacceptable host
        """
        self._runner.traffic.since()
        answer = self._scheduler.schedule(
            extra_specs=dict(request.extra_specs), zone=obstacles.ZONE,
            project=obstacles.TENANT)
        requests = self._runner.traffic.since()
        self._scheduler.clean()
        if request.expected(self._hosts).get(answer['host']) != 'acceptable':
            raise program.Void('A server was scheduled to host "%s", which '
                               'is not acceptable' % answer['host'])
        return figures.Run(answer['seconds'], answer['cpu_seconds'], 0.0, 0.0,
                           requests)


def rows(state: str, pairs: list[figures.Pair], hosts: int
         ) -> tuple[list[list[str]], list[str]]:
    """Return the lines of the table for a state, and the missed targets."""
    lines, _missed = figures.rows(state, pairs, {}, FIGURES)
    lines.append(['%s: %s' % (state, figures.PEAK.name),
                  figures.PEAK.spread([pair.theirs for pair in pairs]),
                  *[figures.NONE] * 3])
    if hosts not in LONGEST:
        return lines, []
    met = statistics.median(figures.WALL.ratios(pairs)) <= LONGEST[hosts]
    lines[0][-1] = '%g or less: %s' % (
        LONGEST[hosts], figures.MET if met else 'MISSED')
    return lines, [] if met else [lines[0][0]]


def one_size(running: cloud.Cloud, hosts: int, options: argparse.Namespace
             ) -> tuple[list[list[str]], list[str]]:
    """Measure a size; return the lines of the table, and missed targets."""
    names = workload.Size(hosts, 0, 0).host_names()
    seeded = fleet.seeded(running, hosts, obstacles.groups(names))
    nova_options = schedulers.nova_conf(True, True)[schedulers.OURS]
    nova_options['scheduler'] = {'max_placement_results': str(hosts)}
    lines, missed = [], []
    with schedulers.serving(running, schedulers.OURS, nova_options) as url:
        comparison = Comparison(running, seeded, schedulers.Scheduler(
            url, running, seeded, True), running.config.path(
                schedulers.OURS + '.conf'))
        for request in (ACCEPTED, EXCLUDED):
            if request is EXCLUDED:
                obstacles.add(running, names)
            more, failed = rows(
                '%d hosts, %s' % (hosts, request.name),
                comparison.pairs(request, options), hosts)
            lines += more
            missed += failed
    return lines, missed


def measure(options: argparse.Namespace, chosen: services.Services
            ) -> tuple[list[table.Table], list[str]]:
    """Run the benchmark.

    :returns: the tables, and the missed targets
    """
    lines, missed = [], []
    for hosts in sorted(options.hosts):
        with chosen.cloud() as running:
            more, failed = one_size(running, hosts, options)
            lines += more
            missed += failed
    return [table.Table('Explaining a request, pairs: %d' % options.pairs,
                        HEADER, lines)], missed


if __name__ == '__main__':
    sys.exit(program.compare(parse(sys.argv[1:]), measure))
