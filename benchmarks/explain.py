# SPDX-License-Identifier: Apache-2.0
"""``scheduling explain`` and the scheduling that it explains.

The command runs as a process, and a real nova-scheduler with the same
configuration schedules a server with the same request directly before or after
it. Both use the request filters, the guard and nova's filters for tenants,
images and extra specs, and take as many candidates as there are hosts
(max_placement_results). Two requests are measured: one that most hosts can
take, and one that most hosts cannot, because a third of them has no VCPU left
and a tenth each is disabled, in another zone, missing in placement, in an
aggregate for another tenant, or not in the aggregate of the flavor. The result
for each host is compared with what was set up. The ratio is nova-scheduler's
figure divided by that of the command, per pair. The bare requests are those of
the command that only read.

With ``--count all``, what the command takes beyond one explanation is compared
with nova's own filters and weighers for the same servers, one by one; with
``--servers-of`` with these and nova's queries of each further request.
"""

from collections import abc
import dataclasses
import functools
from typing import Any
import uuid

from benchmarks import commands
from benchmarks import figures
from benchmarks import fleet
from benchmarks import floor
from benchmarks import obstacles
from benchmarks import schedulers
from benchmarks import services
from benchmarks import workload
from tests.cloud import cloud
from tests.cloud import seed

FIGURES = (figures.WALL, figures.CPU, figures.REQUESTS, figures.PEAK)


@dataclasses.dataclass(frozen=True)
class Request:
    """A request, and the kinds of the reasons that it meets."""

    name: str
    extra_specs: abc.Mapping[str, str]
    reasons: abc.Mapping[str, str]

    def expected(self, hosts: list[str]) -> abc.Mapping[str, str]:
        """Return each host with the kind of its reason."""
        return {host: self.reasons.get(obstacle, 'acceptable')
                for obstacle, some in obstacles.by_obstacle(hosts).items()
                for host in some}


SEEDED = {name: kind for name, kind in obstacles.SEEDED.items()
          if name != obstacles.SLOW}
ACCEPTED = Request('most acceptable', {}, SEEDED)
FILLED = Request('filled', {}, SEEDED)
LEAVING, MEMORIES = 40, (512, 1024, 1536, 2048, 3072)
"""Servers that leave a host, and the MB of their different requests."""
EXCLUDED = Request('most excluded', obstacles.SPECS,
                   {**obstacles.SEEDED, **obstacles.ADDED})


class Comparison:
    """The command and a nova-scheduler on the same cloud."""

    def __init__(self, running: cloud.Cloud, seeded: fleet.Fleet,
                 scheduler: schedulers.Scheduler, nova_conf: str) -> None:
        self._hosts = seeded.hosts
        self._scheduler = scheduler
        self._nova_conf = nova_conf
        self._runner = commands.Commands(running)
        self._floor = floor.Floor(running)
        self._log = running.state.log('placement')
        self._nova = running.nova()

    def pairs(self, request: Request, count: int) -> list[figures.Pair]:
        """Measure both and the bare requests in turn."""
        self._create_flavor(request)
        log = floor.Traffic(self._log)
        explain = functools.partial(self._explain, request)
        explain()
        return figures.alternate(
            count, explain, functools.partial(self._schedule, request),
            functools.partial(self._floor.repeat, log.since()))

    def fillings(self, servers: int) -> list[figures.Pair]:
        """Measure servers until all hosts are full, at least two each."""
        each = max(2, servers // len(self._hosts))
        memory = fleet.MEMORY_MB // each
        self._create_flavor(FILLED, memory)
        ask = functools.partial(
            self._runner.read, self._nova_conf, 'scheduling', 'explain',
            '--flavor', FILLED.name, '--project', obstacles.TENANT)

        def fill() -> tuple[figures.Run, int]:
            every, document = ask('--count', 'all')
            return every, document['count']

        return self._placed(ask, fill, memories=[memory], each=each,
                            most=servers)

    def leaving(self, running: cloud.Cloud) -> list[figures.Pair]:
        """Measure servers that leave a host that has room for more."""
        host = self._hosts[0]
        for number, memory in enumerate(MEMORIES):
            flavor, request = fleet.stored(memory, obstacles.TENANT)
            seed.servers(running.config, [
                (str(uuid.uuid4()), host) for _server in range(
                    number, LEAVING, len(MEMORIES))], request, flavor=flavor)
        run = functools.partial(
            self._runner.read, self._nova_conf, 'scheduling', 'explain')

        def leave() -> tuple[figures.Run, int]:
            every, document = run('--servers-of', host)
            return every, sum(bool(row['destination'])
                              for row in document['servers'])

        return self._placed(
            functools.partial(run, '--flavor', FILLED.name, '--project',
                              obstacles.TENANT), leave,
            memories=MEMORIES, each=LEAVING, most=LEAVING)

    def _placed(self, explain: abc.Callable[[], tuple[figures.Run, Any]],
                place: abc.Callable[[], tuple[figures.Run, int]],
                **asked: Any) -> list[figures.Pair]:
        """Measure a command beyond one explanation, and nova's ``fill``."""
        placed = set[int]()

        def ours() -> figures.Run:
            one, _document = explain()
            every, count = place()
            placed.add(count)
            return dataclasses.replace(
                every, seconds=every.seconds - one.seconds,
                cpu_seconds=every.cpu_seconds - one.cpu_seconds)

        def nova() -> figures.Run:
            answer = self._scheduler.ask(
                'fill', extra_specs={}, project=obstacles.TENANT, **asked)
            self._scheduler.ask('clean')
            placed.add(answer['placed'])
            return figures.Run(answer['seconds'], answer['cpu_seconds'], 0.0,
                               figures.UNKNOWN, 0)

        explain()
        pairs = figures.alternate(1, ours, nova, lambda: None)
        if len(placed) != 1:
            raise services.Void('The command and nova placed not as many '
                                'servers: %s' % sorted(placed))
        return pairs

    def _create_flavor(self, request: Request, memory_mb: int = 512) -> None:
        """Create the flavor that nova-scheduler's requests have."""
        name = request.name.replace(' ', '-')
        self._nova.post('/flavors', json={'flavor': {
            'id': name, 'name': name, 'ram': memory_mb, 'vcpus': 1,
            'disk': 1}})
        if request.extra_specs:
            self._nova.post('/flavors/%s/os-extra_specs' % name, json={
                'extra_specs': dict(request.extra_specs)})

    def _explain(self, request: Request) -> figures.Run:
        """Run the command."""
        run, document = self._runner.read(
            self._nova_conf, 'scheduling', 'explain', '--flavor',
            request.name.replace(' ', '-'), '--zone', obstacles.ZONE,
            '--project', obstacles.TENANT)
        # Why they are full is known of those whose inventories are read.
        found = {row['host']: row['kind'].replace('reserved', 'resources')
                 for row in document['hosts']}
        wrong = sorted(host for host, kind in request.expected(
            self._hosts).items() if found.get(host) != kind)
        if wrong:
            raise services.Void(
                'the reason of %d of %d hosts is wrong, the first is %s: %s'
                % (len(wrong), len(self._hosts), wrong[0],
                   found.get(wrong[0])))
        return run

    def _schedule(self, request: Request) -> figures.Run:
        """Let nova-scheduler schedule a server."""
        self._runner.traffic.since()
        answer = self._scheduler.ask(
            'schedule', extra_specs=dict(request.extra_specs),
            zone=obstacles.ZONE, project=obstacles.TENANT)
        requests = len(self._runner.traffic.since())
        self._scheduler.ask('clean')
        if request.expected(self._hosts).get(answer['host']) != 'acceptable':
            raise services.Void(
                'A server was scheduled to host "%s", which is not acceptable'
                % answer['host'])
        return figures.Run(answer['seconds'], answer['cpu_seconds'], 0.0,
                           figures.UNKNOWN, requests)


def _measure_size(running: cloud.Cloud, hosts: int, pairs: int, servers: int,
                  lines: figures.Lines) -> None:
    names = workload.Size(hosts, 0, 0).host_names()
    seeded = fleet.seeded(running, hosts, obstacles.groups(names))
    options = schedulers.nova_conf(True, isolation=True)[schedulers.OURS]
    options['scheduler'] = {'max_placement_results': str(hosts)}
    with schedulers.serving(running, schedulers.OURS, options) as url:
        comparison = Comparison(running, seeded, schedulers.Scheduler(
            url, running, seeded, True), running.config.path(
                schedulers.OURS + '.conf'))
        if hosts <= servers // 2:
            lines.compare('%d hosts, filled' % hosts,
                          comparison.fillings(servers), FIGURES)
            lines.compare('%d hosts, %d servers leave one' % (hosts, LEAVING),
                          comparison.leaving(running), FIGURES)
        for request in (ACCEPTED, EXCLUDED):
            if request is EXCLUDED:
                obstacles.add(running, names)
            lines.compare('%d hosts, %s' % (hosts, request.name),
                          comparison.pairs(request, pairs), FIGURES)


def measure(sizes: abc.Sequence[int], pairs: int, servers: int) -> str:
    """Run the benchmark.

    :param servers: for how many the hosts have room, if each has two or more
    """
    lines = figures.Lines('nova-scheduler', 'scheduling explain')
    for hosts in sizes:
        with services.running() as running:
            _measure_size(running, hosts, pairs, servers, lines)
    return lines.table('Explaining a request, pairs: %d' % pairs)
