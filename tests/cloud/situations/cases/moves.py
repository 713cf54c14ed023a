# SPDX-License-Identifier: Apache-2.0
"""Moves of servers that find no host."""

from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import servers
from tests.cloud.situations import situation

SOURCE, HOST = 'compute-1', 'compute-2'
ADD = 'openstack aggregate add host'
ENABLE = 'openstack compute service set --enable'

Rounds = situation.Rounds
Situation = situation.Situation


def _leave(at: scene.Scene, operation: str) -> Rounds:
    """The zone has no other host."""
    zone = furnish.zone(at, SOURCE)
    server = servers.boot(at, furnish.flavor(at), SOURCE, zone)
    if operation == 'evacuate':
        hosts.lose(at, SOURCE)
    yield situation.Round(
        servers.Move(at, server, operation), HOST, 'aggregate',
        'not in zone ' + zone, ADD)


def live_migrate(at: scene.Scene, move: type[servers.Move] = servers.Move,
                 note: str = '') -> Rounds:
    """The other host of the zone is disabled.

    A creation would find the host that the server is on.
    """
    zone = furnish.zone(at, SOURCE, HOST)
    hosts.disable(at, HOST)
    server = servers.boot(at, furnish.flavor(at), SOURCE, zone)
    yield situation.Round(
        move(at, server, 'live-migrate'), HOST, 'disabled', 'disabled', ENABLE,
        note=note)


def resize(at: scene.Scene, move: type[servers.Move] = servers.Move,
           step: str = '', note: str = '') -> Rounds:
    """The stored request has the old flavor."""
    zone = furnish.zone(at, SOURCE, HOST)
    hosts.capacity(at, HOST, 'VCPU', 4)
    server = servers.boot(
        at, furnish.flavor(at), SOURCE, '%s:%s' % (zone, SOURCE))
    large, smaller = (furnish.flavor(at, vcpus=number) for number in (5, 4))
    yield situation.Round(
        servers.resize(at, server, large, move), HOST, 'max_unit',
        'allow at most 4 VCPU', step, 'resize to a smaller flavor',
        servers.resize(at, server, smaller, move), note=note)


def same_host(at: scene.Scene) -> Rounds:
    """The server leaves its host; the zone has no other."""
    zone = furnish.zone(at, SOURCE)
    server = servers.boot(at, furnish.flavor(at), SOURCE, zone)
    large = furnish.flavor(at, vcpus=2)
    yield situation.Round(
        servers.resize(at, server, large), SOURCE, 'ignored',
        'the host to leave', '', 'add another host to the zone', takes=HOST)
    furnish.add_host(at, zone, HOST)


SITUATIONS = (
    Situation('migrate', 'Migration: the zone has no other host',
              lambda at: _leave(at, 'migrate')),
    Situation('live-migrate', 'Live migration: the other host is disabled',
              live_migrate),
    Situation('evacuate', 'Evacuation: the zone has no other host',
              lambda at: _leave(at, 'evacuate')),
    Situation('resize', 'Resize: the other host has no room', resize),
    Situation('resize-away', 'Resize: the server may not stay on its host',
              same_host))
