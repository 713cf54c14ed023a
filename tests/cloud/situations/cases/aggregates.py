# SPDX-License-Identifier: Apache-2.0
"""Availability zones, requested hosts, drift, and isolating aggregates."""

from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers

HOST, OTHER = 'compute-1', 'compute-2'
AGENT = 'agent-1'
FOREIGN = '0123456789abcdef0123456789abcdef'
ADD = 'openstack aggregate add host'
SHOW = 'openstack aggregate show'
SYNC = scene.MANAGE + ' placement sync_aggregates'
SPEC = 'aggregate_instance_extra_specs:'
_SET = 'openstack aggregate set --property %s=fast %s'
# A property of images that nova knows.
PROPERTY = 'os_distro'
OURS, STOCK = schedulers.OURS, schedulers.STOCK

Round, Rounds, Situation = scene.Round, scene.Rounds, scene.Situation


def not_in_zone(at: scene.Scene) -> Rounds:
    """The host is not in the zone"""
    zone = furnish.zone(at, OTHER)
    hosts.capacity(at, OTHER, 'VCPU', 1)
    yield Round(furnish.creation(at, zone, vcpus=2), HOST, 'aggregate',
                'not in zone ' + zone, ADD)


def empty_zone(at: scene.Scene) -> Rounds:
    """The zone of a shelved server has no host"""
    # Nova-api itself refuses a new server in a zone without hosts.
    zone = furnish.zone(at, HOST)
    server = servers.boot(at, furnish.flavor(at), HOST, zone)
    servers.shelve(at, server)
    furnish.remove_host(at, zone, HOST)
    yield Round(servers.Move(at, server, 'unshelve'), HOST, 'aggregate',
                'not in zone ' + zone, ADD)


def missing(at: scene.Scene) -> Rounds:
    """Placement lacks a host of the zone"""
    zone = furnish.zone(at, HOST)
    hosts.member(at, HOST, furnish.uuid(at, zone), False)
    yield Round(furnish.creation(at, zone), HOST, 'missing',
                'in zone %s in nova but not in placement' % zone, SYNC)


def pending(at: scene.Scene) -> Rounds:
    """Placement was unavailable when the host was added"""
    zone = furnish.zone(at, OTHER)
    hosts.disable(at, OTHER)
    at.cloud.kill('placement')
    try:
        furnish.add_host(at, zone, HOST)
    finally:
        at.cloud.start('placement')
    yield Round(furnish.creation(at, zone), HOST, 'pending',
                'in zone %s in nova but not yet in placement' % zone,
                'the agent mirrors it', 'start the agent')
    at.later(at.cloud.kill, AGENT)
    at.cloud.start(AGENT)
    hosts.wait_member(at, hosts.provider(at, HOST), furnish.uuid(at, zone))


def stale(at: scene.Scene) -> Rounds:
    """Placement has a host in the zone that nova does not have there"""
    zone = furnish.zone(at, HOST)
    # The other host has more room.
    servers.boot(at, furnish.flavor(at, ram=100000), HOST, zone)
    hosts.member(at, OTHER, furnish.uuid(at, zone), True)
    created = furnish.creation(at, zone, explained=['--for', 'create'])
    yield Round(created, HOST, 'acceptable', 'acceptable', '',
                SYNC + ' --prune', wrong=OTHER,
                summary='finds 2 of 6 compute nodes',
                note='nova does not: ' + OTHER)


def guarded(at: scene.Scene) -> Rounds:
    """A wrong association, and the guard"""
    zone = furnish.zone(at, OTHER)
    hosts.capacity(at, OTHER, 'VCPU', 1)
    hosts.member(at, HOST, furnish.uuid(at, zone), True)
    wanted = furnish.creation(at, zone, vcpus=2)
    yield Round(wanted, HOST, 'filter',
                'in other aggregates in nova than in placement', SYNC,
                SYNC + ' --prune')
    yield Round(wanted, HOST, 'aggregate', 'not in zone ' + zone, ADD)


def stale_forbidden(at: scene.Scene) -> Rounds:
    """Drift: placement has the host in an aggregate of another tenant."""
    zone = furnish.zone(at, HOST)
    foreign = furnish.aggregate(at, OTHER, filter_tenant_id=FOREIGN)
    hosts.member(at, HOST, furnish.uuid(at, foreign), True)
    yield Round(furnish.creation(at, zone), HOST, 'stale',
                'in an aggregate in placement but not in nova', SYNC)


def default_zone(at: scene.Scene) -> Rounds:
    """The default zone is requested, and the host is in a zone"""
    name = hosts.custom_trait(at, HOST)
    zone = furnish.zone(at, HOST)
    yield Round(furnish.requiring(at, name, 'nova'), HOST, 'forbidden',
                'in an aggregate that excludes zone nova',
                'remove the host from it', 'remove the host from the zone')
    furnish.remove_host(at, zone, HOST)


def forced(at: scene.Scene) -> Rounds:
    """The host in ZONE:HOST has no room"""
    hosts.capacity(at, OTHER, 'VCPU', 1)
    large = furnish.flavor(at, vcpus=2)
    yield Round(servers.Create(at, large, 'nova:' + OTHER), HOST,
                'not_requested', 'not the requested host',
                'request another host', 'request this host',
                servers.Create(at, large, 'nova:' + HOST),
                summary='allow at most 1 VCPU for a server')


def destination(at: scene.Scene) -> Rounds:
    """The requested host is disabled"""
    hosts.disable(at, HOST)
    yield Round(furnish.creation(at, values={'host': HOST}), HOST,
                'disabled', 'disabled', 'openstack compute service set '
                '--enable', note='Nova does not store a host that was named')


def own_aggregate(at: scene.Scene) -> Rounds:
    """The host is not in the aggregate of the tenant"""
    project = str(at.nova.get_project_id())
    furnish.aggregate(at, OTHER, filter_tenant_id=project)
    hosts.disable(at, OTHER)
    yield Round(furnish.creation(at), HOST, 'aggregate',
                'not in an aggregate for tenant ' + project, ADD)


def isolated(at: scene.Scene) -> Rounds:
    """The aggregate of the host requires a trait"""
    name = hosts.custom_trait(at, HOST)
    zone = furnish.zone(at, HOST)
    furnish.aggregate(at, HOST, **{'trait:' + name: 'required'})
    yield Round(furnish.creation(at, zone), HOST, 'forbidden',
                'in an aggregate whose traits the request does not require',
                'require the traits in the flavor',
                'create the server with a flavor that requires the trait',
                furnish.requiring(at, name, zone))


def _foreign(at: scene.Scene, kind: str, reason: str, step: str) -> Rounds:
    """The host's aggregate is for another tenant."""
    zone = furnish.zone(at, HOST)
    name = furnish.aggregate(at, HOST, filter_tenant_id=FOREIGN)
    yield Round(furnish.creation(at, zone), HOST, kind, reason, step,
                'remove the host from the aggregate')
    furnish.remove_host(at, name, HOST)


def extra_spec(at: scene.Scene) -> Rounds:
    """The same with the request filter flavor_extra_specs"""
    key = at.name('key')
    furnish.aggregate(at, OTHER, **{key: 'fast'})
    hosts.disable(at, OTHER)
    yield Round(furnish.creation(at, specs={SPEC + key: 'fast'}), HOST,
                'aggregate', 'not in an aggregate for the flavor\'s extra '
                'spec ' + SPEC + key, ADD)


def no_aggregate(at: scene.Scene) -> Rounds:
    """No aggregate has the extra spec of the flavor"""
    # Placement is not queried.
    key = at.name('key')
    name = furnish.aggregate(at, HOST)
    yield Round(furnish.creation(at, specs={SPEC + key: 'fast'}), HOST,
                'refused', 'the request is refused',
                'metadata of the aggregates', _SET % (key, name),
                summary='no host aggregate matches the flavor\'s extra spec '
                + SPEC + key)


def extra_spec_filter(at: scene.Scene) -> Rounds:
    """The aggregate for the flavor has no other host."""
    key = at.name('key')
    furnish.aggregate(at, OTHER, **{key: 'fast'})
    name = furnish.aggregate(at, HOST)
    hosts.disable(at, OTHER)
    yield Round(furnish.creation(at, specs={SPEC + key: 'fast'}), HOST,
                'filter', 'without an aggregate that matches the flavor', SHOW,
                _SET % (key, name))


def _image(at: scene.Scene, kind: str, reason: str, step: str) -> Rounds:
    """The host's aggregate is for images with another value."""
    zone, wanted = furnish.zone(at, HOST), furnish.flavor(at)
    furnish.aggregate(at, HOST, **{PROPERTY: 'windows'})
    first, again = (servers.Create(
        at, wanted, zone, furnish.image(at, **{PROPERTY: value}))
        for value in ('debian', 'windows'))
    yield Round(first, HOST, kind, reason, step,
                'create the server with another image', again)


def _type(at: scene.Scene, kind: str, reason: str, step: str) -> Rounds:
    """The host's aggregate is for another flavor."""
    zone, other = furnish.zone(at, HOST), furnish.flavor(at)
    furnish.aggregate(at, HOST, instance_type=other)
    yield Round(furnish.creation(at, zone), HOST, kind, reason, step,
                'create the server with the flavor of the aggregate',
                servers.Create(at, other, zone))


def two_rules(at: scene.Scene) -> Rounds:
    """A condition that only the guard can check"""
    zone = furnish.zone(at, HOST)
    # This host keeps the query from forbidding the second aggregate.
    furnish.aggregate(at, OTHER, filter_tenant_id=at.nova.get_project_id())
    name = furnish.aggregate(at, OTHER, HOST, filter_tenant_id=FOREIGN)
    yield Round(furnish.creation(at, zone), HOST, 'filter',
                'in aggregates that exclude the request', SHOW,
                'remove the host from the aggregate')
    furnish.remove_host(at, name, HOST)


SITUATIONS = (
    *scene.situations(not_in_zone, empty_zone),
    *scene.situations(missing, stale, pending, agents=False),
    *scene.situations(guarded, scheduler=OURS, agents=False),
    Situation('stale-forbidden', 'Placement has the host in an aggregate of '
              'another tenant, and nova does not', stale_forbidden,
              OURS, agents=False),
    *scene.situations(default_zone, scheduler=OURS),
    *scene.situations(forced, destination),
    *scene.situations(own_aggregate, isolated, scheduler=STOCK),
    Situation('foreign-filter', 'The host is for another tenant: '
              'AggregateMultiTenancyIsolation', lambda at: _foreign(
                  at, 'filter', 'in an aggregate for other tenants', SHOW),
              STOCK),
    Situation('extra-spec-filter', 'The host is not in an aggregate for the '
              'flavor: AggregateInstanceExtraSpecsFilter', extra_spec_filter,
              STOCK),
    Situation('image-filter', 'The host is for other images: '
              'AggregateImagePropertiesIsolation', lambda at: _image(
                  at, 'filter', 'in an aggregate for other images', SHOW),
              STOCK),
    Situation('type-filter', 'The host is for another flavor: '
              'AggregateTypeAffinityFilter', lambda at: _type(
                  at, 'filter', 'in an aggregate for other flavors', SHOW),
              STOCK),
    Situation('foreign', 'The same with the request filter tenant_isolation',
              lambda at: _foreign(
                  at, 'forbidden', 'in an aggregate that excludes tenant',
                  'remove the host from it'), OURS),
    *scene.situations(extra_spec, no_aggregate, scheduler=OURS),
    Situation('image', 'The same with the request filter image_properties',
              lambda at: _image(
                  at, 'forbidden', 'in an aggregate that excludes the image '
                  'property ' + PROPERTY, 'it is meant for others'), OURS),
    Situation('type', 'The same with the request filter type_affinity',
              lambda at: _type(
                  at, 'forbidden', 'in an aggregate that excludes flavor',
                  'it is meant for others'), OURS),
    *scene.situations(two_rules, scheduler=OURS))
