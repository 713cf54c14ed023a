# SPDX-License-Identifier: Apache-2.0
"""Availability zones, requested hosts, and drift of placement."""

from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers
from tests.cloud.situations import situation

HOST, OTHER = 'compute-1', 'compute-2'
AGENT = 'agent-1'
ADD = 'openstack aggregate add host'
SYNC = scene.MANAGE + ' placement sync_aggregates'

Rounds = situation.Rounds
Situation = situation.Situation


def not_in_zone(at: scene.Scene) -> Rounds:
    """The only host of the zone has no room."""
    zone = furnish.zone(at, OTHER)
    hosts.capacity(at, OTHER, 'VCPU', 1)
    yield situation.Round(
        furnish.creation(at, zone, vcpus=2), HOST, 'aggregate',
        'not in zone ' + zone, ADD)


def empty_zone(at: scene.Scene) -> Rounds:
    """A shelved server's zone has lost its only host.

    Nova-api itself refuses a new server in a zone without hosts.
    """
    zone = furnish.zone(at, HOST)
    server = servers.boot(at, furnish.flavor(at), HOST, zone)
    servers.shelve(at, server)
    furnish.remove_host(at, zone, HOST)
    yield situation.Round(
        servers.Move(at, server, 'unshelve'),
        HOST, 'aggregate', 'not in zone ' + zone, ADD)


def missing(at: scene.Scene) -> Rounds:
    """Drift: placement does not have the host in the zone."""
    zone = furnish.zone(at, HOST)
    hosts.member(at, HOST, furnish.uuid(at, zone), False)
    yield situation.Round(
        furnish.creation(at, zone), HOST, 'missing',
        'in zone %s in nova but not in placement' % zone, SYNC)


def pending(at: scene.Scene) -> Rounds:
    """The host was added while placement was stopped."""
    zone = furnish.zone(at, OTHER)
    hosts.disable(at, OTHER)
    at.cloud.kill('placement')
    try:
        furnish.add_host(at, zone, HOST)
    finally:
        at.cloud.start('placement')
    yield situation.Round(
        furnish.creation(at, zone), HOST, 'pending',
        'in zone %s in nova but not yet in placement' % zone,
        'the agent mirrors it', 'start the agent')
    at.later(at.cloud.kill, AGENT)
    at.cloud.start(AGENT)
    hosts.wait_member(at, hosts.provider(at, HOST), furnish.uuid(at, zone))


def stale(at: scene.Scene) -> Rounds:
    """Drift: a server lands on a host that is not in its zone."""
    zone = furnish.zone(at, HOST)
    # The other host has more room.
    servers.boot(at, furnish.flavor(at, ram=100000), HOST, zone)
    hosts.member(at, OTHER, furnish.uuid(at, zone), True)
    created = servers.Create(
        at, furnish.flavor(at), zone, explained=['--for', 'create'])
    yield situation.Round(
        created, HOST, 'acceptable', 'acceptable', '',
        SYNC + ' --prune', wrong=OTHER,
        summary='finds 2 of 6 compute nodes',
        note='nova does not: ' + OTHER)


def guarded(at: scene.Scene) -> Rounds:
    """The same drift, and the guard keeps the server off that host."""
    zone = furnish.zone(at, OTHER)
    hosts.capacity(at, OTHER, 'VCPU', 1)
    hosts.member(at, HOST, furnish.uuid(at, zone), True)
    wanted = furnish.creation(at, zone, vcpus=2)
    yield situation.Round(
        wanted, HOST, 'filter',
        'in other aggregates in nova than in placement', SYNC,
        SYNC + ' --prune')
    yield situation.Round(
        wanted, HOST, 'aggregate', 'not in zone ' + zone, ADD)


def stale_forbidden(at: scene.Scene) -> Rounds:
    """Drift: placement has the host in an aggregate of another tenant."""
    zone = furnish.zone(at, HOST)
    foreign = furnish.aggregate(at, OTHER, filter_tenant_id=FOREIGN)
    hosts.member(at, HOST, furnish.uuid(at, foreign), True)
    yield situation.Round(
        furnish.creation(at, zone), HOST, 'stale',
        'in an aggregate in placement but not in nova', SYNC)


def default_zone(at: scene.Scene) -> Rounds:
    """The request is for the zone of hosts without a zone."""
    name = hosts.custom_trait(at)
    hosts.add_trait(at, HOST, name)
    zone = furnish.zone(at, HOST)
    yield situation.Round(
        servers.Create(at, furnish.requiring(at, name), 'nova'), HOST,
        'forbidden',
        'in an aggregate that excludes zone nova', 'remove the host from it',
        'remove the host from the zone')
    furnish.remove_host(at, zone, HOST)


def forced(at: scene.Scene) -> Rounds:
    """The administrator names a host in the zone, and it has no room."""
    hosts.capacity(at, OTHER, 'VCPU', 1)
    large = furnish.flavor(at, vcpus=2)
    yield situation.Round(
        servers.Create(at, large, 'nova:' + OTHER), HOST, 'not_requested',
        'not the requested host', 'request another host',
        'request this host', servers.Create(at, large, 'nova:' + HOST),
        summary='allow at most 1 VCPU for a server')


def destination(at: scene.Scene) -> Rounds:
    """The administrator requests a disabled host (API 2.74)."""
    hosts.disable(at, HOST)
    yield situation.Round(
        servers.Create(at, furnish.flavor(at), values={'host': HOST}), HOST,
        'disabled', 'disabled', 'openstack compute service set --enable',
        note='Nova does not store a host that was named')


FOREIGN = '0123456789abcdef0123456789abcdef'

SITUATIONS = (
    Situation('not-in-zone', 'The host is not in the zone', not_in_zone),
    Situation('empty-zone', 'The zone of a shelved server has no host',
              empty_zone),
    Situation('missing', 'Placement lacks a host of the zone', missing,
              agents=False),
    Situation('stale', 'Placement has a host in the zone that nova does not '
              'have there', stale, agents=False),
    Situation('pending', 'Placement was unavailable when the host was added',
              pending, agents=False),
    Situation('guarded', 'A wrong association, and the guard', guarded,
              schedulers.OURS, agents=False),
    Situation('stale-forbidden', 'Placement has the host in an aggregate of '
              'another tenant, and nova does not', stale_forbidden,
              schedulers.OURS, agents=False),
    Situation('default-zone', 'The default zone is requested, and the host '
              'is in a zone', default_zone, schedulers.OURS),
    Situation('forced', 'The host in ZONE:HOST has no room', forced),
    Situation('destination', 'The requested host is disabled', destination))
