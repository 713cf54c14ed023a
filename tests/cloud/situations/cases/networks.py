# SPDX-License-Identifier: Apache-2.0
"""Routed networks: segments that a host does not reach, or that are full."""

from tests.cloud.integration import routed
from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers

SHARING = 'MISC_SHARES_VIA_AGGREGATE'
ADDRESS = 'IPV4_ADDRESS'

Rounds = scene.Rounds
Situation = scene.Situation


def other_segment(at: scene.Scene) -> Rounds:
    """The port's address is in a segment that the zone does not reach."""
    network = at.enter(routed.RoutedNetwork(at))
    first, second = network.segments
    host = min(second.hosts)
    zone, wanted = furnish.zone(at, host), furnish.flavor(at)
    port, another = network.port(first), network.port(second)
    yield scene.Round(_create(at, wanted, zone, port), host, 'aggregate',
                      'not in an aggregate for segments of the networks',
                      'or a port or network of its segment',
                      'use a port of the segment of the host',
                      _create(at, wanted, zone, another))


def full(at: scene.Scene) -> Rounds:
    """All addresses of the segments are in use, and the flavor counts them."""
    network = at.enter(routed.RoutedNetwork(at, (30, 30)))
    wanted = furnish.consuming(at, ADDRESS)
    for each in network.segments:
        hosts.change_traits(at, each.id, {SHARING}, set())
    values, others = {'networks': [{'uuid': network.id}]}, []
    for each in network.segments:
        others += [servers.boot(at, wanted, values=values)
                   for _address in each.cidr.hosts()]
    host = servers.read(at, others[0])[servers.HOST]
    for each in network.segments:
        if host in each.hosts:
            rest = sorted(each.hosts - {host})
            hosts.disable(at, *rest)
    port = network.port()
    yield scene.Round(_create(at, wanted, '', port), host, 'resources',
                      'cannot provide 1 ' + ADDRESS, 'shared with it',
                      'delete a server of the segment')
    servers.delete(at, others[0])


def full_by_count(at: scene.Scene) -> Rounds:
    """The ports of the segments have all addresses, and neutron counts."""
    network = at.enter(routed.RoutedNetwork(at, (30, 30)))
    ports = [network.fill(each) for each in network.segments]
    host = min(network.segments[0].hosts)
    zone, wanted = furnish.zone(at, host), furnish.flavor(at)
    port = network.port()
    failure = 'no segment of network %s has enough free addresses' % network.id
    yield scene.Round(_create(at, wanted, zone, port), '', summary=failure,
                      takes=host, action='delete a port of the segment')
    network.delete_port(ports[0][0])


def full_with_others(at: scene.Scene) -> Rounds:
    """The segment that the zone reaches is full, and another is not."""
    network = at.enter(routed.RoutedNetwork(at))
    first, _second = network.segments
    host = min(first.hosts)
    zone, wanted = furnish.zone(at, host), furnish.flavor(at)
    ports, port = network.fill(first), network.port()
    yield scene.Round(
        _create(at, wanted, zone, port), host, 'aggregate',
        'not in an aggregate for segments with free addresses',
        'it is full: delete ports', 'delete a port of the segment')
    network.delete_port(ports[0])


def _create(at: scene.Scene, flavor: str, zone: str, port: str
            ) -> servers.Create:
    return servers.Create(
        at, flavor, zone, values={'networks': [{'port': port}]},
        explained=['--port', port])


SITUATIONS = (
    Situation('other-segment', 'The host does not reach the segment of the '
              'port', other_segment),
    Situation('full-segment', 'No segment has a free address, and the flavor '
              'requests one', full),
    Situation('full-segments', 'No segment has a free address, with the '
              'request filter', full_by_count, schedulers.OURS),
    Situation('full-zone', 'The segment of the zone has no free address, with '
              'the request filter', full_with_others, schedulers.OURS))
