# SPDX-License-Identifier: Apache-2.0
"""Entry point for nova-scheduler, and the guard: a host filter.

Nova calls ``all_filters`` when nova-scheduler starts, if ``[filter_scheduler]
available_filters`` names it.
"""

from collections import abc
from typing import Any

from nova.conf import CONF
from nova import context as nova_context
from nova import exception as nova_exception
from nova.scheduler import filters
from nova.scheduler import request_filter
from nova.scheduler import utils
from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import request_filters
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror.source import keyed_aggregates
from nova_aggregate_mirror.source import metadata

LOG = logging.getLogger(__name__)


def all_filters() -> list[type]:
    """Install the request filters; return nova's host filters and the guard.

    :raises SystemExit: when an option is invalid, after logging the reason
    """
    if refused := exceptions.failure_of(install):
        # Do not start without isolation. A traceback would hide the reason.
        LOG.critical('nova-scheduler does not start: %s', refused)
        raise SystemExit(1)
    return [AggregateMembershipFilter, SegmentAddressesFilter,
            *filters.all_filters()]


def install() -> None:
    """Check the configuration, and add the request filters to nova's own.

    A second call adds nothing.

    :raises MirrorError: an option is invalid, or nova is not supported
    """
    metadata_filters, query_filters = request_filters.load(CONF)
    if CONF.scheduler.query_placement_for_routed_network_aggregates:
        missing = exceptions.failure_of(
            lambda: auth.load(CONF, 'neutron'), exceptions.MissingCredentials)
        if missing and CONF.aggregate_mirror.missing_credentials == 'fail':
            raise missing
        if missing:
            LOG.warning('nova-scheduler cannot query neutron for the segments '
                        'of routed networks: %s', missing)
    registered = getattr(request_filter, 'ALL_REQUEST_FILTERS', None)
    if not isinstance(registered, list):
        raise exceptions.UnexpectedNova(
            'nova.scheduler.request_filter has no list ALL_REQUEST_FILTERS')
    if any(isinstance(registered_filter, request_filters.QueryFilter)
           for registered_filter in registered):
        return
    registered += query_filters
    if metadata_filters:
        registered.append(request_filters.Narrowing(
            metadata_filters, metadata.MetadataSource(),
            CONF.aggregate_mirror.max_member_of_bytes))
    if CONF.aggregate_mirror.request_filters:
        LOG.info('Requests are narrowed to host aggregates by '
                 'nova-aggregate-mirror, request filters: %s',
                 ', '.join(CONF.aggregate_mirror.request_filters))


class AggregateMembershipFilter(filters.BaseHostFilter):
    """Host filter that checks nova's own aggregate memberships.

    It repeats the query, and checks what the query could not include.
    """

    run_filter_once_per_request = True
    RUN_ON_REBUILD = True

    def __init__(self) -> None:
        self._filters, _query_filters = request_filters.load(CONF)
        self._source = metadata.MetadataSource()
        self._host_aggregates: frozenset[str] = frozenset()
        """UUIDs of nova's aggregates, as far as they were needed."""

    def filter_all(self, filter_obj_list: abc.Iterable[Any],
                   spec_obj: request_spec.RequestSpec) -> list[Any]:
        """Return the host states that the request may use."""
        offered = list(filter_obj_list)
        passing = self._passing(offered, spec_obj)
        if offered and not passing:
            request_filters.log_no_host(spec_obj, (
                'host aggregates exclude each of the %d hosts that placement '
                'and earlier filters have left' % len(offered)))
        return passing

    def _passing(self, offered: list[Any], spec_obj: request_spec.RequestSpec
                 ) -> list[Any]:
        """Return the hosts whose aggregates meet the rules and the query."""
        rebuild = request_spec.is_rebuild(spec_obj)
        if utils.request_is_rebuild(spec_obj) and not rebuild:
            LOG.warning(
                'Instance %s has the scheduler hint _nova_check_type from a '
                'user, for which nova-scheduler queries no placement and '
                'allocates no resources; host aggregates are checked',
                spec_obj.instance_uuid)
            # Nova has run no request filter; the conditions are checked below.
            try:
                request_filter.process_reqspec(
                    nova_context.get_admin_context(), spec_obj)
            except nova_exception.RequestFilterFailed:
                return []
        passing = []
        for host, subjects in self.broken_rules(offered, spec_obj):
            if subjects:
                LOG.debug('%s does not pass the rules for %s', host,
                          ', '.join(subjects))
            else:
                passing.append(host)
        if rebuild:
            # A rebuild does not query placement.
            return passing
        query = request_spec.member_of(spec_obj)
        required = self._checkable(query, passing, spec_obj)
        belonging, strays = [], set()
        for host in passing:
            uuids = _aggregates(host)
            if uuids.isdisjoint(query.forbidden) and not any(
                    map(uuids.isdisjoint, required)):
                belonging.append(host)
            else:
                strays.add(host.host)
        if strays:
            LOG.warning(
                'Instance %s is not scheduled to %s: placement and '
                'nova-scheduler do not have these hosts in the same '
                'aggregates. Placement is reconciled automatically; if this '
                'warning persists for minutes, restart nova-scheduler',
                spec_obj.instance_uuid, ', '.join(sorted(strays)))
        return belonging

    def broken_rules(self, hosts: list[Any], spec: request_spec.RequestSpec
                     ) -> abc.Iterator[tuple[Any, list[str]]]:
        """Yield each host state with the subjects of the rules it breaks."""
        request = request_spec.request(spec)
        rebuild = request_spec.is_rebuild(spec)
        applicable = [plugin for plugin in self._filters
                      if plugin.on_rebuild or not rebuild]
        # Most hosts share their set of aggregates with other hosts.
        broken: dict[frozenset[str], list[str]] = {}
        for host in hosts:
            uuids = _aggregates(host)
            if uuids not in broken:
                rules = constraints.rules(applicable, request, {
                    _key(aggregate): aggregate.metadata
                    for aggregate in host.aggregates})
                broken[uuids] = [rule.subject for rule in rules
                                 if not rule.passes(uuids)]
            yield host, broken[uuids]

    def _checkable(self, query: constraints.MemberOf, hosts: list[Any],
                   spec: request_spec.RequestSpec) -> list[frozenset[str]]:
        """Return the required groups of nova's aggregates that a host lacks.

        Other aggregates are not in the host states.
        """
        memberships = [_aggregates(host) for host in hosts]
        self._host_aggregates |= frozenset().union(*memberships)
        doubtful = [group for group in query.required
                    if any(map(group.isdisjoint, memberships))]
        unknown = frozenset().union(*doubtful) - self._host_aggregates
        failure = None
        if unknown:
            try:
                self._host_aggregates |= self._source.known(unknown)
            except exceptions.NovaUnavailable as exc:
                failure = exc
        if failure:
            LOG.warning(
                'Instance %s: could not check whether the hosts from '
                'placement are in %s; they are used: %s',
                spec.instance_uuid, ', '.join(sorted(unknown)), failure)
        return [group for group in doubtful if group <= self._host_aggregates]


class SegmentAddressesFilter(filters.BaseHostFilter):
    """Host filter that counts the addresses of servers requested together."""

    def filter_all(self, filter_obj_list: abc.Iterable[Any],
                   spec_obj: request_spec.RequestSpec) -> list[Any]:
        """Return the host states with an address for one more server."""
        offered = list(filter_obj_list)
        free = request_spec.get_addresses(spec_obj)
        return free.passing(offered) if free else offered


def _aggregates(host: Any) -> frozenset[str]:
    return frozenset(map(_key, host.aggregates))


def _key(aggregate: Any) -> str:
    return keyed_aggregates.key_of(aggregate.id, aggregate.uuid)
