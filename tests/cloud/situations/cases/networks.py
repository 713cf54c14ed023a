# SPDX-License-Identifier: Apache-2.0
"""Routed networks: segments that a host does not reach, or that are full."""

from tests.cloud.integration import routed
from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers

ADDRESS = 'IPV4_ADDRESS'

Round, Rounds = scene.Round, scene.Rounds


def other_segment(at: scene.Scene) -> Rounds:
    """The host does not reach the segment of the port"""
    network = at.enter(routed.RoutedNetwork(at))
    first, second = network.segments
    host = min(second.hosts)
    zone, wanted = furnish.zone(at, host), furnish.flavor(at)
    port, another = network.port(first), network.port(second)
    yield Round(_create(at, wanted, zone, port), host, 'aggregate',
                'not in an aggregate for segments of the networks',
                'or a port or network of its segment',
                'use a port of the segment of the host',
                _create(at, wanted, zone, another))


def full_segment(at: scene.Scene) -> Rounds:
    """No segment has a free address, and the flavor requests one"""
    network = at.enter(routed.RoutedNetwork(at, (30, 30)))
    wanted = furnish.consuming(at, ADDRESS)
    for each in network.segments:
        hosts.change_traits(at, each.id, {'MISC_SHARES_VIA_AGGREGATE'}, set())
    values = {'networks': [{'uuid': network.id}]}
    # Each of the segments has two addresses.
    others = [servers.boot(at, wanted, values=values) for _server in range(4)]
    host = servers.read(at, others[0])[servers.HOST]
    for each in network.segments:
        if host in each.hosts:
            hosts.disable(at, *sorted(each.hosts - {host}))
    yield Round(_create(at, wanted, '', network.port()), host, 'resources',
                'cannot provide 1 ' + ADDRESS, 'shared with it',
                'delete a server of the segment')
    servers.delete(at, others[0])


def full_segments(at: scene.Scene) -> Rounds:
    """No segment has a free address, with the request filter"""
    network = at.enter(routed.RoutedNetwork(at, (30, 30)))
    ports = [network.fill(each) for each in network.segments]
    host = min(network.segments[0].hosts)
    wanted = _create(at, furnish.flavor(at), furnish.zone(at, host),
                     network.port())
    failure = 'no segment of network %s has enough free addresses' % network.id
    yield Round(wanted, '', summary=failure, takes=host,
                action='delete a port of the segment')
    network.delete_port(ports[0][0])


def full_zone(at: scene.Scene) -> Rounds:
    """The segment of the zone has no free address, with the request filter"""
    network = at.enter(routed.RoutedNetwork(at))
    host = min(network.segments[0].hosts)
    ports = network.fill(network.segments[0])
    wanted = _create(at, furnish.flavor(at), furnish.zone(at, host),
                     network.port())
    yield Round(wanted, host, 'aggregate',
                'not in an aggregate for segments with free addresses',
                'it is full: delete ports', 'delete a port of the segment')
    network.delete_port(ports[0])


def _create(at: scene.Scene, flavor: str, zone: str, port: str
            ) -> servers.Create:
    return servers.Create(
        at, flavor, zone, values={'networks': [{'port': port}]},
        explained=['--port', port])


SITUATIONS = (
    *scene.situations(other_segment, full_segment),
    *scene.situations(full_segments, full_zone, scheduler=schedulers.OURS))
