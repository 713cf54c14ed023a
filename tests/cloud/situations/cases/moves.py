# SPDX-License-Identifier: Apache-2.0
"""Moves of servers that find no host."""

from collections import abc

from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import servers
from tests.cloud.situations import situation

SOURCE, HOST = 'compute-1', 'compute-2'
ADD = 'openstack aggregate add host'
ENABLE = 'openstack compute service set --enable'

Rounds = abc.Iterator[situation.Round]
Situation = situation.Situation


def migrate(at: scene.Scene) -> Rounds:
    """The zone has no other host."""
    zone = furnish.zone(at, SOURCE)
    server = servers.boot(at, furnish.flavor(at), SOURCE, zone)
    yield situation.Round(
        servers.Move(at, server, ['migrate'], {'migrate': None}), HOST,
        'aggregate', 'not in zone ' + zone, ADD)


def live_migrate(at: scene.Scene) -> Rounds:
    """The other host of the zone is disabled."""
    zone = furnish.zone(at, SOURCE, HOST)
    hosts.disable(at, HOST)
    server = servers.boot(at, furnish.flavor(at), SOURCE, zone)
    yield situation.Round(
        servers.Move(at, server, ['live-migrate'], {'os-migrateLive': {
            'host': None, 'block_migration': 'auto'}}),
        HOST, 'disabled', 'disabled', ENABLE)


def evacuate(at: scene.Scene) -> Rounds:
    zone = furnish.zone(at, SOURCE)
    server = servers.boot(at, furnish.flavor(at), SOURCE, zone)
    at.later(hosts.raise_up, at, SOURCE)
    at.cloud.process(SOURCE).kill()
    hosts.set_forced_down(at, SOURCE)
    yield situation.Round(
        servers.Move(at, server, ['evacuate'], {'evacuate': {}}), HOST,
        'aggregate', 'not in zone ' + zone, ADD)


def resize(at: scene.Scene) -> Rounds:
    zone = furnish.zone(at, SOURCE, HOST)
    hosts.capacity(at, HOST, 'VCPU', 4)
    server = servers.boot(
        at, furnish.flavor(at), SOURCE, '%s:%s' % (zone, SOURCE))
    large, smaller = (furnish.flavor(at, vcpus=number) for number in (5, 4))
    yield situation.Round(
        _resize(at, server, large), HOST, 'max_unit',
        'allow at most 4 VCPU', '', 'resize to a smaller flavor',
        _resize(at, server, smaller))


def same_host(at: scene.Scene) -> Rounds:
    """The server leaves its host; the zone has no other."""
    zone = furnish.zone(at, SOURCE)
    server = servers.boot(at, furnish.flavor(at), SOURCE, zone)
    large = furnish.flavor(at, vcpus=2)
    yield situation.Round(
        _resize(at, server, large), SOURCE, 'ignored', 'the host to leave',
        '', 'add another host to the zone', takes=HOST)
    furnish.add_host(at, zone, HOST)


def _resize(at: scene.Scene, server: str, flavor: str) -> servers.Move:
    return servers.Move(at, server, ['resize', flavor],
                        {'resize': {'flavorRef': flavor}})


SITUATIONS = (
    Situation('migrate', 'Migration: the zone has no other host', migrate),
    Situation('live-migrate', 'Live migration: the other host is disabled',
              live_migrate),
    Situation('evacuate', 'Evacuation: the zone has no other host', evacuate),
    Situation('resize', 'Resize: the other host has no room', resize),
    Situation('resize-away', 'Resize: the server may not stay on its host',
              same_host))
