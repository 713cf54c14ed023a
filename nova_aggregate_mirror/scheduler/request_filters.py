# SPDX-License-Identifier: Apache-2.0
"""Which rules a request must keep to, one filter for each of nova's.

A request filter is an object of an entry point in
``nova_aggregate_mirror.request_filters``, made once with nova's configuration
when nova-scheduler starts. It must not touch the network, a database or a
thread: the process may still fork.
"""

from collections.abc import Iterable
import types
from typing import Protocol

from nova.scheduler.filters import (
    aggregate_multitenancy_isolation as multitenancy)
from nova.scheduler.filters import extra_specs_ops
from oslo_config import cfg

from nova_aggregate_mirror import plugins
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.source import metadata

NAMESPACE = 'nova_aggregate_mirror.request_filters'


class RequestFilter(Protocol):
    """Turns what aggregates say into the rules of one request.

    A request of which ``keys`` is empty is not concerned. ``rules`` gets the
    metadata of all aggregates that have one of the keys, or of those of one
    host, and must not depend on which.
    """

    on_rebuild: bool
    """Whether a rebuild, which stays on its host, must keep the rules too."""

    def keys(self, request: constraints.Request) -> metadata.Keys:
        """Tell which keys of aggregate metadata decide on a request."""

    def texts(self, request: constraints.Request) -> frozenset[str]:
        """Tell texts of which a matching aggregate has one in its value.

        None if a host in no restricting aggregate does not pass: otherwise
        placement can be asked less where a host is in both kinds, by the
        same key or by keys of the same beginning.
        """

    def rules(self, request: constraints.Request,
              found: constraints.Metadata) -> list[constraints.Rule]:
        """Tell what the request's host must keep to."""


class FlavorExtraSpecs:
    """AggregateInstanceExtraSpecsFilter in the query."""

    on_rebuild = False

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        pass

    def keys(self, request: constraints.Request) -> metadata.Keys:
        return metadata.Keys(frozenset(
            constraints.extra_spec_keys(request.extra_specs).values()))

    def texts(self, request: constraints.Request) -> frozenset[str]:
        return frozenset()

    def rules(self, request: constraints.Request,
              found: constraints.Metadata) -> list[constraints.Rule]:
        return constraints.flavor_extra_specs(
            request.extra_specs, found, extra_specs_ops.match)


class TenantIsolation:
    """AggregateMultiTenancyIsolation in the query."""

    on_rebuild = False

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._suffixes = _isolates_by_suffix()

    def keys(self, request: constraints.Request) -> metadata.Keys:
        return metadata.Keys(prefixes=frozenset({constraints.TENANT}))

    def texts(self, request: constraints.Request) -> frozenset[str]:
        return frozenset({request.project or ''})

    def rules(self, request: constraints.Request,
              found: constraints.Metadata) -> list[constraints.Rule]:
        return constraints.tenant_isolation(
            request.project, found, self._suffixes)


class ImageProperties:
    """AggregateImagePropertiesIsolation in the query."""

    on_rebuild = True

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf.filter_scheduler

    def keys(self, request: constraints.Request) -> metadata.Keys:
        return metadata.Keys(frozenset(self._compared(request)))

    def texts(self, request: constraints.Request) -> frozenset[str]:
        return frozenset(self._compared(request).values())

    def rules(self, request: constraints.Request,
              found: constraints.Metadata) -> list[constraints.Rule]:
        return constraints.image_properties(self._compared(request), found)

    def _compared(self, request: constraints.Request) -> dict[str, str]:
        conf = self._conf
        namespace = conf.aggregate_image_properties_isolation_namespace
        prefix = namespace and (
            namespace + conf.aggregate_image_properties_isolation_separator)
        return {name: value for name, value in request.image.items()
                if name.startswith(prefix or '')}


class TypeAffinity:
    """AggregateTypeAffinityFilter in the query."""

    on_rebuild = False

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        pass

    def keys(self, request: constraints.Request) -> metadata.Keys:
        return metadata.Keys(frozenset({constraints.FLAVOR}))

    def texts(self, request: constraints.Request) -> frozenset[str]:
        return frozenset({request.flavor})

    def rules(self, request: constraints.Request,
              found: constraints.Metadata) -> list[constraints.Rule]:
        return constraints.type_affinity(request.flavor, found)


class DefaultZone:
    """What AvailabilityZoneFilter did for the default zone, in the query.

    Nova's own request filter does it for zones that aggregates have.
    """

    on_rebuild = False

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def keys(self, request: constraints.Request) -> metadata.Keys:
        if request.zone != self._conf.default_availability_zone:
            return metadata.Keys()
        return metadata.Keys(frozenset({constraints.ZONE}))

    def texts(self, request: constraints.Request) -> frozenset[str]:
        return frozenset({request.zone})

    def rules(self, request: constraints.Request,
              found: constraints.Metadata) -> list[constraints.Rule]:
        return constraints.default_zone(request.zone, found)


def load(conf: cfg.ConfigOpts) -> list[RequestFilter]:
    """Load what ``[aggregate_mirror] request_filters`` names, in that order.

    :raises InvalidConfiguration: when one is unknown or cannot be loaded
    """
    return plugins.load(NAMESPACE, '[aggregate_mirror] request_filters',
                        conf.aggregate_mirror.request_filters, conf)


def rules(filters: Iterable[RequestFilter], request: constraints.Request,
          found: constraints.Metadata) -> list[constraints.Rule]:
    """Tell what a request's host must keep to, by all of these filters."""
    return [rule for one in filters if one.keys(request)
            for rule in one.rules(request, found)]


def _isolates_by_suffix() -> bool:
    """Whether nova's filter minds keys that begin with ``filter_tenant_id``.

    Nova 29 does not, and what is kept out here it would let in.
    """
    aggregate = types.SimpleNamespace(
        metadata={constraints.TENANT + '_1': 'somebody else'})
    nova_filter = multitenancy.AggregateMultiTenancyIsolation()
    return not nova_filter.host_passes(
        types.SimpleNamespace(aggregates=[aggregate]),
        types.SimpleNamespace(project_id='somebody'))
