# SPDX-License-Identifier: Apache-2.0
"""Moves of servers that find no host, alone or not all of them together."""

from collections import abc
import json

from tests.cloud.integration import routed
from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers

SOURCE, HOST = 'compute-1', 'compute-2'
LIVE, COLD = 'live-migrate', 'migrate'
# What nova's fake driver has, see fakes.py.
_CARD = {'vendor_id': '15b3', 'product_id': '1018'}
ALIAS = json.dumps({'name': 'card', 'device_type': 'type-PCI', **_CARD})
_DEVICES = '''\
[pci]
alias = %s
device_spec = %s
''' % (ALIAS, json.dumps(_CARD))

Round, Rounds, Situation = scene.Round, scene.Rounds, scene.Situation


def _leave(at: scene.Scene, operation: str) -> Rounds:
    """The zone has no other host."""
    zone = furnish.zone(at, SOURCE)
    server = servers.boot(at, furnish.flavor(at), SOURCE, zone)
    if operation == 'evacuate':
        hosts.lose(at, SOURCE)
    yield Round(servers.Move(at, server, operation), HOST, 'aggregate',
                'not in zone ' + zone, 'openstack aggregate add host')


def live_migrate(at: scene.Scene, move: type[servers.Move] = servers.Move,
                 note: str = '') -> Rounds:
    """Live migration: the other host is disabled"""
    # A creation would find the host that the server is on.
    zone = furnish.zone(at, SOURCE, HOST)
    hosts.disable(at, HOST)
    server = servers.boot(at, furnish.flavor(at), SOURCE, zone)
    yield Round(move(at, server, LIVE), HOST, 'disabled', 'disabled',
                'openstack compute service set --enable', note=note)


def resize(at: scene.Scene, move: type[servers.Move] = servers.Move,
           step: str = '', note: str = '') -> Rounds:
    """Resize: the other host has no room"""
    # The stored request has the old flavor.
    zone = furnish.zone(at, SOURCE, HOST)
    hosts.capacity(at, HOST, 'VCPU', 4)
    server = servers.boot(
        at, furnish.flavor(at), SOURCE, '%s:%s' % (zone, SOURCE))
    large, smaller = (furnish.flavor(at, vcpus=number) for number in (5, 4))
    yield Round(servers.resize(at, server, large, move), HOST, 'max_unit',
                'allow at most 4 VCPU', step, 'resize to a smaller flavor',
                servers.resize(at, server, smaller, move), note=note)


def resize_away(at: scene.Scene) -> Rounds:
    """Resize: the server may not stay on its host"""
    zone = furnish.zone(at, SOURCE)
    server = servers.boot(at, furnish.flavor(at), SOURCE, zone)
    large = furnish.flavor(at, vcpus=2)
    yield Round(servers.resize(at, server, large), SOURCE, 'ignored',
                'the host to leave', '', 'add another host to the zone',
                takes=HOST)
    furnish.add_host(at, zone, HOST)


def gap(at: scene.Scene) -> Rounds:
    """Two servers leave a host, and there is room for one"""
    zone, wanted = furnish.zone(at, SOURCE, HOST), furnish.flavor(at, vcpus=2)
    hosts.capacity(at, HOST, 'VCPU', 3)
    booted = [_boot(at, wanted, zone) for _number in range(2)]
    yield from _move_all(at, booted, LIVE, 'resources',
                         'have fewer than 2 VCPU free',
                         'delete or move servers')


def group_room(at: scene.Scene) -> Rounds:
    """Two servers of an anti-affinity group leave a host"""
    zone, wanted = furnish.zone(at, SOURCE, HOST), furnish.flavor(at)
    group = furnish.group(at, 'anti-affinity', max_server_per_host=2)
    hints = {'group': group}
    _boot(at, wanted, zone, HOST, hints=hints)
    booted = [_boot(at, wanted, zone, hints=hints) for _number in range(2)]
    yield from _move_all(at, booted, COLD, 'filter',
                         'with a server of the same group')


def kept_apart(at: scene.Scene) -> Rounds:
    """Two servers leave a host, and one has the hint different_host"""
    # The larger one moves first.
    zone = furnish.zone(at, SOURCE, HOST)
    large, small = (furnish.flavor(at, ram=ram) for ram in (128, 64))
    first = _boot(at, large, zone)
    booted = [first, _boot(at, small, zone, hints={'different_host': first})]
    yield from _move_all(at, booted, COLD, 'filter',
                         'with a server to keep apart from')


def device(at: scene.Scene) -> Rounds:
    """Two servers leave a host, and there is one PCI device"""
    for host in (SOURCE, HOST):
        at.later(hosts.configure, at, host, '')
        hosts.configure(at, host, _DEVICES)
    nova = at.enter(at.cloud.another_nova_api(
        'nova-api-devices', {'pci': {'alias': ALIAS}}))
    zone = furnish.zone(at, SOURCE, HOST)
    wanted = furnish.flavor(at, specs={'pci_passthrough:alias': 'card:1'})
    _boot(at, wanted, zone, HOST, nova=nova)
    booted = [_boot(at, wanted, zone, nova=nova) for _number in range(2)]
    yield from _move_all(at, booted, COLD, 'filter',
                         'without a free PCI device that matches')


def units(at: scene.Scene) -> Rounds:
    """Three servers leave a host, and two child providers have a unit each"""
    zone, resource = furnish.zone(at, SOURCE, HOST), hosts.custom_name()
    for host, total in ((SOURCE, 3), (HOST, 1), (HOST, 1)):
        hosts.child(at, host, resource, total)
    wanted = furnish.consuming(at, resource)
    booted = [_boot(at, wanted, zone) for _number in range(3)]
    yield from _move_all(at, booted, LIVE, 'resources',
                         'cannot provide 1 ' + resource)


def last_address(at: scene.Scene) -> Rounds:
    """Servers are created until the segment of the zone is full"""
    network: routed.RoutedNetwork = at.enter(routed.RoutedNetwork(at))
    segment = network.segments[0]
    host, wanted = min(segment.hosts), furnish.flavor(at)
    zone = furnish.zone(at, host)
    first, second, *ports = network.fill(segment)
    for port in (first, second):
        network.delete_port(port)
    described = ['--flavor', wanted, '--zone', zone, '--network', network.id]
    found = at.explain([*described, '--count', 'all'])
    if found.document['count'] != 2:
        raise scene.Failed('two servers fit, and not: %s' % found.summary)
    values = {'networks': [{'uuid': network.id}]}
    for _number in range(2):
        servers.boot(at, wanted, host, zone, values=values)
    one_more = servers.Create(
        at, wanted, zone, values=values, explained=described)
    yield Round(one_more, host, 'aggregate',
                'not in an aggregate for segments with free addresses',
                'it is full: delete ports', 'delete a port of the segment')
    network.delete_port(ports[0])


def _boot(at: scene.Scene, flavor: str, zone: str, host: str = SOURCE,
          **values: object) -> str:
    """Create a server on a host, where it passes no filter."""
    return servers.boot(at, flavor, host, '%s:%s' % (zone, host), **values)


def _move_all(at: scene.Scene, booted: abc.Sequence[str], operation: str,
              kind: str, reason: str, step: str = '') -> Rounds:
    """Move servers, each of which fits alone; explain the last of them."""
    for server in booted:
        alone = at.explain(['--server', server, '--for', operation])
        if alone.status:
            raise scene.Failed('alone it finds none: %s' % alone.summary)
    found = at.explain(['--servers-of', SOURCE, '--for', operation])
    rows = [row for row in found.document['servers']
            if row['server'] in booted]
    destinations = [row['destination'] for row in rows]
    expected = [HOST] * (len(booted) - 1) + ['']
    if destinations != expected or rows[-1]['first'] != HOST:
        raise scene.Failed('one finds no host, and not: %s' % found.summary)
    *moved, last = [row['server'] for row in rows]
    for server in moved:
        outcome = servers.Move(at, server, operation).make()
        if outcome.hosts != {HOST}:
            raise scene.Failed('predicted %s, nova %s' % (HOST, outcome))
        if operation == COLD:
            servers.change(at, server, 'confirmResize', 'ACTIVE')
    yield Round(servers.Move(at, last, operation), HOST, kind, reason, step,
                'delete the server that was moved')
    servers.delete(at, moved[0])
    # Nova-compute reports a device that is free again once a minute.
    arguments = ['--server', last, '--for', operation]
    at.wait_until(lambda: not at.explain(arguments).status,
                  '%s has reported what is free again' % HOST)


SITUATIONS = (
    Situation('migrate', 'Migration: the zone has no other host',
              lambda at: _leave(at, 'migrate')),
    *scene.situations(live_migrate),
    Situation('evacuate', 'Evacuation: the zone has no other host',
              lambda at: _leave(at, 'evacuate')),
    *scene.situations(resize, resize_away))
TOGETHER = (
    *scene.situations(gap, group_room),
    *scene.situations(kept_apart, device, scheduler=schedulers.STOCK),
    *scene.situations(units),
    *scene.situations(last_address, scheduler=schedulers.OURS))
