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
import itertools
from typing import Any
import uuid

from benchmarks import commands
from benchmarks import figures
from benchmarks import fleet
from benchmarks import floor
from benchmarks import schedulers
from benchmarks import services
from benchmarks import workload
from tests.cloud import cloud
from tests.cloud import seed
from tests.cloud import sql

ZONE, OTHER_ZONE = 'az-1', 'az-2'
TENANT, OTHER_TENANT = 'a' * 32, 'b' * 32
SPECS = {fleet.SCOPE + 'ssd': 'true'}

FULL, DISABLED, MISSING = 'full', 'disabled', 'missing'
ELSEWHERE, THEIRS, SLOW = 'elsewhere', 'theirs', 'slow'
FREE = 'free'
# One third of the hosts is full; the other obstacles exclude a tenth each.
_CYCLE = (*[FULL] * 10, *[DISABLED] * 3, *[MISSING] * 3, *[ELSEWHERE] * 3,
          *[THEIRS] * 3, *[SLOW] * 3, *[FREE] * 5)
OBSTACLES = {ELSEWHERE: 'aggregate', THEIRS: 'forbidden', SLOW: 'aggregate'}
"""Obstacles that exist from the start, with the kind of their reason."""
ADDED = {FULL: 'resources', DISABLED: 'disabled', MISSING: 'missing'}
"""Obstacles that ``add_obstacles`` adds, with the kind of their reason."""

_RESERVE = (
    'UPDATE inventories SET reserved = total WHERE resource_class_id ='
    " (SELECT id FROM resource_classes WHERE name = 'VCPU')"
    ' AND resource_provider_id IN (SELECT id FROM resource_providers'
    ' WHERE name IN :hosts)')
_TRAIT = (
    'INSERT INTO resource_provider_traits (resource_provider_id, trait_id)'
    ' SELECT p.id, t.id FROM resource_providers p, traits t'
    " WHERE t.name = 'COMPUTE_STATUS_DISABLED' AND p.name IN :hosts")
_FORGET = (
    'DELETE FROM resource_provider_aggregates WHERE resource_provider_id IN'
    ' (SELECT id FROM resource_providers WHERE name IN :hosts)')
_DISABLE = (
    "UPDATE services SET disabled = 1, disabled_reason = 'new disks'"
    ' WHERE host IN :hosts')
FIGURES = (figures.WALL, figures.CPU, figures.REQUESTS, figures.PEAK)


def by_obstacle(hosts: abc.Sequence[str]) -> abc.Mapping[str, list[str]]:
    """Divide hosts by what excludes them."""
    found: dict[str, list[str]] = {name: [] for name in _CYCLE}
    for host, name in zip(hosts, itertools.cycle(_CYCLE)):
        found[name].append(host)
    return found


def obstacle_groups(hosts: abc.Sequence[str]) -> fleet.Groups:
    """Return the aggregates that the obstacles need."""
    found = by_obstacle(hosts)

    def without(name: str) -> list[str]:
        return [host for other, some in found.items() if other != name
                for host in some]

    return [({'availability_zone': ZONE}, without(ELSEWHERE)),
            ({'availability_zone': OTHER_ZONE}, found[ELSEWHERE]),
            ({'ssd': 'true'}, without(SLOW)),
            ({'filter_tenant_id': OTHER_TENANT}, found[THEIRS])]


def add_obstacles(running: cloud.Cloud, hosts: abc.Sequence[str]) -> None:
    """Add the obstacles that no aggregate has, in nova and in placement."""
    found = by_obstacle(hosts)
    for database, statement, name in (
            ('placement', _RESERVE, FULL), ('placement', _TRAIT, DISABLED),
            ('placement', _FORGET, MISSING), ('nova', _DISABLE, DISABLED)):
        sql.execute(running.config.database_url(database), statement,
                    hosts=found[name])


@dataclasses.dataclass(frozen=True)
class Request:
    """A request, and the kinds of the reasons that it meets."""

    name: str
    extra_specs: abc.Mapping[str, str]
    reasons: abc.Mapping[str, str]

    def expected(self, hosts: list[str]) -> abc.Mapping[str, str]:
        """Return each host with the kind of its reason."""
        return {host: self.reasons.get(obstacle, 'acceptable')
                for obstacle, some in by_obstacle(hosts).items()
                for host in some}


SEEDED = {name: kind for name, kind in OBSTACLES.items() if name != SLOW}
ACCEPTED = Request('most acceptable', {}, SEEDED)
FILLED = Request('filled', {}, SEEDED)
LEAVING, MEMORIES = 40, (512, 1024, 1536, 2048, 3072)
"""Servers that leave a host, and the MB of their different requests."""
EXCLUDED = Request('most excluded', SPECS, {**OBSTACLES, **ADDED})


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
            '--flavor', FILLED.name, '--project', TENANT)

        def fill() -> tuple[figures.Run, int]:
            every, document = ask('--count', 'all')
            return every, document['count']

        return self._placed(ask, fill, memories=[memory], each=each,
                            most=servers)

    def leaving(self, running: cloud.Cloud) -> list[figures.Pair]:
        """Measure servers that leave a host that has room for more."""
        host = self._hosts[0]
        for number, memory in enumerate(MEMORIES):
            flavor, request = fleet.stored(memory, TENANT)
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
                              TENANT), leave,
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
                'fill', extra_specs={}, project=TENANT, **asked)
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
            request.name.replace(' ', '-'), '--zone', ZONE,
            '--project', TENANT)
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
            zone=ZONE, project=TENANT)
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
    seeded = fleet.seeded(running, hosts, obstacle_groups(names))
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
                add_obstacles(running, names)
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
