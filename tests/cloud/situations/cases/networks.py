# SPDX-License-Identifier: Apache-2.0
"""Routed networks: segments that a host does not reach, or that are full."""

from collections.abc import Iterator

from tests.cloud.integration import routed
from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import servers
from tests.cloud.situations import situation

SHARING = 'MISC_SHARES_VIA_AGGREGATE'
ADDRESS = 'IPV4_ADDRESS'

Rounds = Iterator[situation.Round]
Situation = situation.Situation


def other_segment(at: scene.Scene) -> Rounds:
    """The port's address is in a segment that the zone does not reach."""
    network = _network(at)
    first, second = network.segments
    host = min(second.hosts)
    zone, wanted = furnish.zone(at, host), furnish.flavor(at)
    port, another = network.port(first), network.port(second)
    yield situation.Round(
        _create(at, wanted, zone, port), host, 'aggregate',
        'not in an aggregate for segments of the networks',
        'or a port or network of its segment',
        'use a port of the segment of the host',
        _create(at, wanted, zone, another))


def full(at: scene.Scene) -> Rounds:
    """All addresses of the segments are in use, and the flavor counts them."""
    network = _network(at, bits=30)
    wanted = furnish.flavor(at, specs={'resources:' + ADDRESS: '1'})
    for each in network.segments:
        network.write(each, 'traits', [SHARING])
    others = [servers.boot(at, wanted, values={
        'networks': [{'uuid': network.id}]})
        for each in network.segments for _address in each.cidr.hosts()]
    host = servers.host(at, others[0])
    for each in network.segments:
        if host in each.hosts:
            hosts.disable(at, *sorted(each.hosts - {host}))
    port = network.port()
    yield situation.Round(
        _create(at, wanted, '', port), host, 'resources',
        'cannot provide 1 ' + ADDRESS, 'shared with it',
        'delete a server of the segment')
    servers.delete(at, others[0])


def _network(at: scene.Scene, bits: int = 29) -> routed.RoutedNetwork:
    made: routed.RoutedNetwork = at.enter(
        routed.RoutedNetwork(at.cloud, at.wait_until, bits))
    return made


def _create(at: scene.Scene, flavor: str, zone: str, port: str
            ) -> servers.Create:
    return servers.Create(
        at, flavor, zone, values={'networks': [{'port': port}]},
        explained=['--port', port])


SITUATIONS = (
    Situation('other-segment', 'The host does not reach the segment of the '
              'port', other_segment),
    Situation('full-segment', 'No segment has a free address', full))
