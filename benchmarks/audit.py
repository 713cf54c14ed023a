# SPDX-License-Identifier: Apache-2.0
"""``placement audit_servers`` by number of servers.

The command runs as a process on a real nova database. The servers are spread
over the hosts of 20 availability zones, each with a stored request as nova
writes it, and one in a hundred is on a host of another zone. The result is
compared with what was set up. The peak memory must not grow with the number
of servers. Nova has no command for this: the figures have no ratio but that
between the sizes.
"""

from collections import abc
import statistics
import uuid

from benchmarks import commands
from benchmarks import figures
from benchmarks import fleet
from benchmarks import services
from benchmarks import workload
from tests.cloud import cloud
from tests.cloud import seed

HOSTS, ZONES = 1000, 20
ONE_IN = 100
"""Every how many servers one is misplaced."""
MISPLACED = 7
HEADER = ('servers', 'wall, s', 'CPU, s', 'peak RSS, MiB', 'servers per s')


def zone(number: int) -> str:
    """Return the zone of a host."""
    return 'zone-%d' % (number % ZONES)


def request(name: str) -> str:
    """Return a RequestSpec for a zone, as nova stores it."""
    _flavor, spec = fleet.stored(
        512, 'project', name, {'hw:cpu_policy': 'shared'}, {
            'id': str(uuid.uuid4()), 'name': 'image',
            'properties': {'hw_disk_bus': 'virtio', 'os_distro': 'debian'}})
    return spec


class Servers:
    """Hosts in zones, and servers that are added to them."""

    def __init__(self, running: cloud.Cloud) -> None:
        self._cloud = running.config
        self._hosts = workload.Size(HOSTS, 0, 0).host_names()
        running.seed_hosts(self._hosts)
        groups = {str(uuid.uuid4()): number for number in range(ZONES)}
        seed.aggregates(self._cloud, {
            one: self._hosts[number::ZONES] for one, number in groups.items()
        }, {one: {'availability_zone': zone(number)}
            for one, number in groups.items()})
        self.count = self.misplaced = 0

    def grow(self, count: int) -> None:
        """Add servers until there are as many."""
        by_zone: dict[int, list[tuple[str, str]]] = {}
        for number in range(self.count, count):
            wrong = number % ONE_IN == 0
            self.misplaced += wrong
            by_zone.setdefault((number + wrong) % ZONES, []).append(
                (str(uuid.uuid4()), self._hosts[number % HOSTS]))
        for number, placed in sorted(by_zone.items()):
            seed.servers(self._cloud, placed, request(zone(number)))
        self.count = count


def audited(runner: commands.Commands, nova_conf: str, servers: Servers
            ) -> figures.Run:
    """Run the command."""
    run, found = runner.read(nova_conf, 'placement', 'audit_servers',
                             '--quiet', status=MISPLACED)
    seen = (found['servers'], found['misplaced'], len(found['misplacements']))
    if seen != (servers.count, servers.misplaced, servers.misplaced):
        raise services.Void(
            '%d servers, %d misplaced and %d listed instead of %d and %d' % (
                *seen, servers.count, servers.misplaced))
    return run


def row(count: int, runs: abc.Sequence[figures.Run]) -> list[str]:
    seconds = statistics.median(run.seconds for run in runs)
    return [str(count), figures.WALL.spread(runs), figures.CPU.spread(runs),
            figures.PEAK.spread(runs), '%.0f' % (count / seconds)]


def measure(sizes: abc.Sequence[int], runs: int) -> str:
    """Run the benchmark with numbers of servers, ascending."""
    measured: list[tuple[int, list[figures.Run]]] = []
    with services.running() as running:
        runner, servers = commands.Commands(running), Servers(running)
        for count in sizes:
            servers.grow(count)
            measured.append((count, [
                audited(runner, running.config.nova_conf, servers)
                for _run in range(runs)]))
    return figures.table(
        'placement audit_servers, %d hosts, runs per size: %d' % (HOSTS, runs),
        HEADER, [row(*size) for size in measured])
