# SPDX-License-Identifier: Apache-2.0
"""Request filters, and queries to placement, by nova-scheduler's own code."""

from collections import abc
import functools
from typing import Any
import urllib.parse

from nova.conf import CONF
from nova import exception as nova_exception
from nova.scheduler import request_filter
from nova.scheduler import utils

from nova_aggregate_mirror.explain import facts
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.explain import request as requests
from nova_aggregate_mirror.scheduler import narrowing
from nova_aggregate_mirror.scheduler import request_spec

Origin = placement_query.Origin
Origins = abc.Mapping[str | frozenset[str], Origin]
"""By condition, as returned by ``_conditions``."""

FILTERS = 'request filters'
STEP = ('change the request, or the metadata of the aggregates; see '
        '"openstack aggregate list --long"')


def queries(context: Any, request: requests.SchedulingRequest,
            manager: host_states.HostManager
            ) -> list[placement_query.PlacementQuery]:
    """Run the request filters; return the queries that nova makes.

    Nova takes the candidates of all of them; a rebuild has none.

    :param request: it has no other users, and is changed
    :raises Refusal: a request filter, or nova, refuses it
    :raises MirrorError: a service that a filter asks is unavailable
    """
    spec = request.spec
    if utils.request_is_rebuild(spec):
        return []
    try:
        with requests.neutron_translated('running the request filters'):
            origins = _run_filters(context, request)
        build = functools.partial(
            utils.resources_from_request_spec, context, spec, manager)
        resources = [build(enable_pinning_translate=True)]
        # A second query replaces dedicated processors by shared ones.
        if resources[0].cpu_pinning_requested and not (
                CONF.workarounds.disable_fallback_pcpu_query):
            resources.append(build(enable_pinning_translate=False))
    except (nova_exception.NovaException, NotImplementedError,
            ValueError) as exc:
        # Nova-scheduler fails the request in the same way.
        raise facts.Refusal(FILTERS, _reason(exc)) from exc
    find_origin = functools.partial(_origin, spec, origins)
    parse = functools.partial(urllib.parse.parse_qsl, keep_blank_values=True)
    return [placement_query.parse(parse(query.to_querystring()), find_origin)
            for query in resources]


def _run_filters(context: Any, request: requests.SchedulingRequest) -> Origins:
    """Run the request filters; return where the added conditions are from."""
    spec = request.spec
    origins: dict[str | frozenset[str], Origin] = {}
    tenant = str(request.about.get('project') or spec.project_id)
    for query_filter in request_filter.ALL_REQUEST_FILTERS:
        before = _conditions(spec)
        origin = _origin_of(query_filter, spec.availability_zone, tenant)
        try:
            query_filter(context, spec)
        except nova_exception.RequestFilterFailed as exc:
            raise facts.Refusal(FILTERS, _reason(exc), origin.step) from exc
        origins |= dict.fromkeys(_conditions(spec) - before, origin)
        if isinstance(query_filter, narrowing.Narrowing):
            for aggregates, subject in query_filter.describe(spec).items():
                if aggregates in origins:
                    origins[aggregates] = Origin(subject.replace(
                        str(spec.project_id), tenant))
    return origins


def _origin_of(query_filter: Any, zone: str, tenant: str) -> Origin:
    name = getattr(query_filter, '__name__', type(query_filter).__name__)
    return {
        'map_az_to_placement_aggregate': Origin('zone %s' % zone, True, STEP),
        'require_tenant_aggregate':
            Origin(placement_query.TENANT + tenant, step=STEP),
        'isolate_aggregates': placement_query.ISOLATED,
        'routed_networks_filter': placement_query.SEGMENTS,
        'SegmentAddresses': placement_query.FREE_SEGMENTS,
        # The rule is named, not the request filter.
        'Narrowing': Origin(step=STEP),
    }.get(name, Origin('nova, %s' % name))


def _origin(spec: request_spec.RequestSpec, origins: Origins,
            condition: placement_query.Condition) -> Origin:
    names = condition.names
    if condition.kind == placement_query.MEMBER_OF:
        return origins.get(
            names[0] if condition.forbids else frozenset(names), Origin())
    if condition.kind in placement_query.TRAITS:
        if condition.value in origins:
            return origins[condition.value]
        specs = spec.flavor.extra_specs or {}
        name = 'trait%s:%s' % (condition.group, names[0])
        return Origin('flavor' if name in specs else 'image or nova')
    return Origin('flavor' if condition.kind == placement_query.RESOURCES
                  else '')


def _conditions(spec: request_spec.RequestSpec
                ) -> frozenset[str | frozenset[str]]:
    """Return required sets of aggregates, forbidden aggregates, and traits."""
    query = request_spec.member_of(spec)
    traits = {'!' + name for name in spec.root_forbidden}.union(
        spec.root_required)
    return frozenset([*query.required, *query.forbidden, *traits])


def _reason(exc: Exception) -> str:
    """Return the reason that nova's exception has, as one line."""
    text = getattr(exc, 'kwargs', {}).get('reason') or str(exc)
    return ' '.join(str(text).split())
