# SPDX-License-Identifier: Apache-2.0
"""Rules that nova-scheduler enforces, by its configuration."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import functools

from oslo_config import cfg

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror import plugins
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import filter_rules
from nova_aggregate_mirror.scheduler import request_filters

# The request filter with the rules of one of nova's host filters.
_FILTERS: Mapping[str, Callable[
    [cfg.ConfigOpts], request_filters.RequestFilter]] = {
    audit.TENANT: request_filters.TenantIsolation,
    audit.FLAVOR: request_filters.FlavorExtraSpecs,
    audit.IMAGE: request_filters.ImageProperties,
    audit.TYPE: request_filters.TypeAffinity}
# Placement enforces the zones of aggregates, whatever is configured; only this
# request filter enforces the zone of hosts without one.
_OF_ZONES = 'default_availability_zone'


def enforced(conf: cfg.ConfigOpts) -> list[str]:
    """Return the names of the rules that nova-scheduler enforces.

    :param conf: nova's configuration, with this package's options
    """
    own = conf.aggregate_mirror.request_filters
    enabled = conf.filter_scheduler.enabled_filters
    found = [audit.ZONE, *(
        name for name in _FILTERS
        if name in own or filter_rules.HOST_FILTERS[name] in enabled
        or (name == audit.TENANT
            and conf.scheduler.limit_tenants_to_placement_aggregate))]
    if conf.scheduler.query_placement_for_routed_network_aggregates:
        found.append(audit.SEGMENT)
    return [*found, *(name for name in own
                      if name not in found and name != _OF_ZONES)]


def load(conf: cfg.ConfigOpts, names: Collection[str], asked: bool = False
         ) -> list[tuple[str, rules.Check]]:
    """Return what checks these rules; a segment is a rule of each server.

    :param asked: whether to check the default zone, too, if nova-scheduler
        does not enforce it
    :raises InvalidConfiguration: when a plugin cannot be loaded
    """
    found: list[tuple[str, rules.Check]] = []
    for name in names:
        if name == audit.ZONE:
            known = asked or _OF_ZONES in (
                conf.aggregate_mirror.request_filters)
            found.append((name, functools.partial(
                rules.zone,
                default=conf.default_availability_zone if known else '')))
        elif name in _FILTERS:
            plugin = _FILTERS[name]
            limited = (name == audit.TENANT and conf.scheduler
                       .limit_tenants_to_placement_aggregate)
            if limited:
                found.append((name, functools.partial(
                    _tenant, always=conf.scheduler
                    .placement_aggregate_required_for_tenants)))
            if not limited or name in conf.aggregate_mirror.request_filters \
                    or filter_rules.HOST_FILTERS[name] in (
                        conf.filter_scheduler.enabled_filters):
                found.append((name, _check(plugin(conf))))
        elif name != audit.SEGMENT:
            found += [(name, _check(one)) for one in plugins.load(
                request_filters.NAMESPACE,
                '[aggregate_mirror] request_filters', [name], conf)]
    return found


def _tenant(request: constraints.ServerRequest, metadata: constraints.Metadata,
            always: bool) -> list[constraints.Rule]:
    return filter_rules.tenant_aggregate(request.project, metadata, always)


def _check(plugin: request_filters.RequestFilter) -> rules.Check:
    def check(request: constraints.ServerRequest,
              metadata: constraints.Metadata) -> list[constraints.Rule]:
        return request_filters.rules([plugin], request, metadata)

    return check
