# SPDX-License-Identifier: Apache-2.0
"""The request filters of this package, each with its texts and keys.

Checks, audits, explanations, help texts and pages read this table. A request
filter is a line here, an entry point in setup.cfg, and a class in
``request_filters`` with its rules.
"""

from collections import abc
import dataclasses

from oslo_config import cfg

from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.source import keyed_aggregates

NAMESPACE = 'nova_aggregate_mirror.request_filters'
OPTION = '[aggregate_mirror] request_filters'
ALL_FILTERS = 'nova_aggregate_mirror.scheduler.filters.all_filters'
"""Value of nova's ``available_filters`` that installs the request filters."""
GUARD = 'AggregateMembershipFilter'
"""The host filter that checks the rules of all request filters."""
COUNTER = 'SegmentAddressesFilter'
"""The host filter that counts the addresses of a request's servers."""
DEFAULT_ZONE = 'default_availability_zone'
SEGMENT_ADDRESSES = 'segment_addresses'


@dataclasses.dataclass(frozen=True)
class Filter:
    """A request filter; texts for pages are in reStructuredText."""

    name: str
    """The name of its entry point."""
    effect: str
    """What it does to a request, as sentences."""
    host_filter: str = ''
    """Nova's host filter that checks the same rules, if there is one."""
    metadata: str = ''
    """What is compared with the metadata of aggregates, as a noun phrase."""
    phrase: str = ''
    """What is wrong with the hosts that the host filter rejects."""
    keys: keyed_aggregates.Keys = keyed_aggregates.Keys()
    """Metadata keys that ``host_filter`` reads, whatever a request has."""


FILTERS = (
    Filter(
        'tenant_isolation',
        'Hosts that are isolated for other tenants are forbidden. A tenant '
        'is not confined to its own aggregates; see :ref:`tenants`.',
        'AggregateMultiTenancyIsolation',
        '``filter_tenant_id`` in the metadata of aggregates',
        'in an aggregate for other tenants', constraints.TENANT_KEYS),
    Filter(
        'flavor_extra_specs',
        'For each extra spec that refers to aggregates, with the scope '
        '``aggregate_instance_extra_specs`` or without a scope, a host must '
        'be in an aggregate with matching metadata. Operators and lists have '
        'the same meaning as in nova.',
        'AggregateInstanceExtraSpecsFilter',
        'extra specs of the flavor',
        'without an aggregate that matches the flavor'),
    Filter(
        'image_properties',
        'Hosts whose aggregates require another value of an image property '
        'are forbidden. Nova\'s namespace and separator options apply.',
        'AggregateImagePropertiesIsolation',
        'properties of the image',
        'in an aggregate for other images',
        # Nearly all properties that nova knows begin like this.
        keyed_aggregates.Keys(prefixes=frozenset({'hw_', 'img_', 'os_'}))),
    Filter(
        'type_affinity',
        'Hosts whose aggregates list other flavors in ``instance_type`` are '
        'forbidden.',
        'AggregateTypeAffinityFilter',
        '``instance_type`` in the metadata of aggregates',
        'in an aggregate for other flavors',
        keyed_aggregates.Keys(frozenset({constraints.FLAVOR}))),
    Filter(
        DEFAULT_ZONE,
        'A request for the default zone does not land on a host of another '
        'zone, as with ``AvailabilityZoneFilter``, which nova 28 removed.'),
    Filter(
        SEGMENT_ADDRESSES,
        'Segments of a routed network without free addresses are left out; '
        'see :ref:`segment-addresses`.'))
HOST_FILTERS: abc.Mapping[str, str] = {
    row.name: row.host_filter for row in FILTERS if row.host_filter}
"""Request filters to nova's host filters that check the same rules."""


def configured(conf: cfg.ConfigOpts) -> list[str]:
    """Return the names of the configured request filters, in order."""
    return list(dict.fromkeys(conf.aggregate_mirror.request_filters))


def enabled(name: str, conf: cfg.ConfigOpts) -> bool:
    """Check whether a request filter or nova's host filter is enabled."""
    return (name in conf.aggregate_mirror.request_filters
            or HOST_FILTERS.get(name) in conf.filter_scheduler.enabled_filters)


def unchecked(plugins: abc.Mapping[str, object],
              host_filters: abc.Collection[str]) -> list[str]:
    """List the request filters with rules that no host filter checks.

    Nova's API database may fail while a query is built, a rule may not fit
    into it, and a rebuild has none.
    """
    return [name for name, plugin in plugins.items()
            if hasattr(plugin, 'rules') and GUARD not in host_filters
            and HOST_FILTERS.get(name) not in host_filters]
