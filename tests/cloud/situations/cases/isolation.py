# SPDX-License-Identifier: Apache-2.0
"""Aggregates for tenants, flavors and images: in queries, and in filters."""

from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers
from tests.cloud.situations import situation

HOST, OTHER = 'compute-1', 'compute-2'
FOREIGN = '0123456789abcdef0123456789abcdef'
ADD = 'openstack aggregate add host'
SHOW = 'openstack aggregate show'
SPEC = 'aggregate_instance_extra_specs:'
_SET = 'openstack aggregate set --property %s=fast %s'
# A property of images that nova knows.
PROPERTY = 'os_distro'

Rounds = situation.Rounds
Situation = situation.Situation


def own_aggregate(at: scene.Scene) -> Rounds:
    """Nova confines the tenant to its aggregate, whose host is disabled."""
    project = str(at.nova.get_project_id())
    furnish.aggregate(at, OTHER, filter_tenant_id=project)
    hosts.disable(at, OTHER)
    yield situation.Round(
        servers.Create(at, furnish.flavor(at)), HOST, 'aggregate',
        'not in an aggregate for tenant ' + project, ADD)


def isolated(at: scene.Scene) -> Rounds:
    """An aggregate requires a trait that the flavor does not require."""
    name = hosts.custom_trait(at)
    hosts.add_trait(at, HOST, name)
    zone = furnish.zone(at, HOST)
    furnish.aggregate(at, HOST, **{'trait:' + name: 'required'})
    wanted = furnish.flavor(at)
    yield situation.Round(
        servers.Create(at, wanted, zone), HOST, 'forbidden',
        'in an aggregate whose traits the request does not require',
        'require the traits in the flavor',
        'create the server with a flavor that requires the trait',
        servers.Create(at, furnish.requiring(at, name), zone))


def _foreign(at: scene.Scene, kind: str, reason: str, step: str) -> Rounds:
    """The host's aggregate is for another tenant."""
    zone = furnish.zone(at, HOST)
    name = furnish.aggregate(at, HOST, filter_tenant_id=FOREIGN)
    yield situation.Round(
        furnish.creation(at, zone), HOST, kind, reason, step,
        'remove the host from the aggregate')
    furnish.remove_host(at, name, HOST)


def foreign(at: scene.Scene) -> Rounds:
    return _foreign(at, 'forbidden', 'in an aggregate that excludes tenant',
                    'remove the host from it')


def _fast(at: scene.Scene, key: str) -> servers.Create:
    """Return the creation of a server whose flavor has an extra spec."""
    return servers.Create(at, furnish.flavor(at, specs={SPEC + key: 'fast'}))


def extra_spec(at: scene.Scene) -> Rounds:
    """The only host of the aggregate is disabled."""
    key = at.name('key')
    furnish.aggregate(at, OTHER, **{key: 'fast'})
    hosts.disable(at, OTHER)
    yield situation.Round(
        _fast(at, key), HOST, 'aggregate',
        'not in an aggregate for the flavor\'s extra spec ' + SPEC + key, ADD)


def no_aggregate(at: scene.Scene) -> Rounds:
    """No aggregate has what the flavor requires: placement is not queried."""
    key = at.name('key')
    name = furnish.aggregate(at, HOST)
    yield situation.Round(
        _fast(at, key), HOST, 'refused', 'the request is refused',
        'metadata of the aggregates', _SET % (key, name),
        summary='no host aggregate matches the flavor\'s extra spec ' + SPEC
        + key)


def extra_spec_filter(at: scene.Scene) -> Rounds:
    key = at.name('key')
    furnish.aggregate(at, OTHER, **{key: 'fast'})
    name = furnish.aggregate(at, HOST)
    hosts.disable(at, OTHER)
    yield situation.Round(
        _fast(at, key), HOST, 'filter',
        'without an aggregate that matches the flavor', SHOW,
        _SET % (key, name))


def _image(at: scene.Scene, kind: str, reason: str, step: str) -> Rounds:
    """The host's aggregate is for images with another value."""
    zone = furnish.zone(at, HOST)
    furnish.aggregate(at, HOST, **{PROPERTY: 'windows'})
    wanted = furnish.flavor(at)
    yield situation.Round(
        servers.Create(at, wanted, zone,
                       furnish.image(at, **{PROPERTY: 'debian'})),
        HOST, kind, reason, step, 'create the server with another image',
        servers.Create(at, wanted, zone,
                       furnish.image(at, **{PROPERTY: 'windows'})))


def image(at: scene.Scene) -> Rounds:
    return _image(at, 'forbidden', 'in an aggregate that excludes the image '
                  'property ' + PROPERTY, 'it is meant for others')


def _type(at: scene.Scene, kind: str, reason: str, step: str) -> Rounds:
    """The host's aggregate is for another flavor."""
    zone = furnish.zone(at, HOST)
    wanted, other = furnish.flavor(at), furnish.flavor(at)
    furnish.aggregate(at, HOST, instance_type=other)
    yield situation.Round(
        servers.Create(at, wanted, zone), HOST, kind, reason, step,
        'create the server with the flavor of the aggregate',
        servers.Create(at, other, zone))


def type_affinity(at: scene.Scene) -> Rounds:
    return _type(at, 'forbidden', 'in an aggregate that excludes flavor',
                 'it is meant for others')


def two_rules(at: scene.Scene) -> Rounds:
    """A host in a matching and in a restricting aggregate: for the guard."""
    zone = furnish.zone(at, HOST)
    project = str(at.nova.get_project_id())
    # This host keeps the query from forbidding the second aggregate.
    furnish.aggregate(at, OTHER, filter_tenant_id=project)
    name = furnish.aggregate(at, OTHER, HOST, filter_tenant_id=FOREIGN)
    yield situation.Round(
        furnish.creation(at, zone), HOST, 'filter',
        'in aggregates that exclude the request', SHOW,
        'remove the host from the aggregate')
    furnish.remove_host(at, name, HOST)


OURS, STOCK = schedulers.OURS, schedulers.STOCK

SITUATIONS = (
    Situation('own-aggregate', 'The host is not in the aggregate of the '
              'tenant', own_aggregate, STOCK),
    Situation('isolated', 'The aggregate of the host requires a trait',
              isolated, STOCK),
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
              foreign, OURS),
    Situation('extra-spec', 'The same with the request filter '
              'flavor_extra_specs', extra_spec, OURS),
    Situation('no-aggregate', 'No aggregate has the extra spec of the flavor',
              no_aggregate, OURS),
    Situation('image', 'The same with the request filter image_properties',
              image, OURS),
    Situation('type', 'The same with the request filter type_affinity',
              type_affinity, OURS),
    Situation('two-rules', 'A condition that only the guard can check',
              two_rules, OURS))
