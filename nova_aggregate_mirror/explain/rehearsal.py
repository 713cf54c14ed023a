# SPDX-License-Identifier: Apache-2.0
"""Runs of nova's request filters, and of its host filters with their logs.

Long because each filter, which may be a plugin, is run by nova's own code.
"""

from collections import abc
import contextlib
import functools
import logging
import re
from typing import Any
import urllib.parse

from nova.conf import CONF
from nova import exception as nova_exception
from nova.objects import instance_pci_requests
from nova.scheduler import filters as nova_filters
from nova.scheduler import host_manager
from nova.scheduler import request_filter
from nova.scheduler import utils
from oslo_config import cfg

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.explain import request as requests
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.scheduler import filters
from nova_aggregate_mirror.scheduler import request_filters
from nova_aggregate_mirror.scheduler import request_spec

# Of nova's databases and configuration: no plugin is at fault.
NO_PLUGIN_FAILURES = (
    exceptions.MirrorError, *engines.LIBRARY_ERRORS, cfg.Error)
# A pattern for each host would be compiled for each host.
_NAME = re.compile(r'([\w.-]+)')
NOVA_FILTERS = 'nova.scheduler.filters'
Origin = placement_query.Origin
Origins = abc.Mapping[str | frozenset[str], Origin]
"""By condition, as returned by ``_conditions``."""
STEP = ('change the request, or the metadata of the aggregates; see '
        '"openstack aggregate list --long"')
OMITTED = ('Aggregate conditions that did not fit into the query to '
           'placement: %d. Only host filters check them, on the hosts that '
           'placement returns; raise [aggregate_mirror] max_member_of_bytes.')


def reason(exc: Exception) -> str:
    """Return the class and the text of an exception, without a traceback."""
    # Oslo.utils appends one to its text about a class that does not exist.
    text, _bracket, _traceback = str(exc).partition(" (['Traceback")
    text = errors.without_secrets(' '.join(text.split()))
    return '%s: %s' % (type(exc).__name__, text)


@contextlib.contextmanager
def failures_of(plugin: Any) -> abc.Iterator[None]:
    """Raise Refusal if a filter or weigher fails by a fault of its own."""
    try:
        yield
    except NO_PLUGIN_FAILURES:
        raise
    except Exception as exc:  # It may be the operator's own code.
        name = type(plugin).__name__
        raise reasons.refusal(
            'plugin_failed', name, module=type(plugin).__module__,
            reason='%s raises %s' % (name, reason(exc))) from exc


class _Messages(logging.Handler):
    """Keeps the last log record about each host state."""

    def __init__(self, states: abc.Iterable[host_manager.HostState]) -> None:
        super().__init__(logging.DEBUG)
        self._last: dict[str, logging.LogRecord] = {}
        self._states: dict[Any, list[host_manager.HostState]] = {}
        for state in states:
            for key in (id(state), state.host):
                self._states.setdefault(key, []).append(state)

    def emit(self, record: logging.LogRecord) -> None:
        args: Any = record.args or ()
        if isinstance(args, abc.Mapping):
            record.args = {name: _readable(arg) for name, arg in args.items()}
            args = [*record.args.values()]
        states: list[Any] = []
        for arg in args:
            key = arg if isinstance(arg, str) else id(arg)
            states += self._states.get(key, ())
        # Of a host with several nodes the message may name one.
        of_node = [state for state in states if state.nodename in args]
        for state in of_node or states:
            self._last[state.uuid] = record

    def last_message(self, state: host_manager.HostState) -> str:
        """Return the last message about a host state; empty without one.

        It has ``HOST`` for the host's name: hosts in one state are alike.
        """
        if state.uuid not in self._last:
            return ''
        message = self._last[state.uuid].getMessage()
        parts = _NAME.split(message.replace(str(state), state.host))
        return ''.join(explanation.HOST if part == state.host else part
                       for part in parts)


def _readable(arg: Any) -> Any:
    """Return requests of PCI devices as their numbers and aliases."""
    if not isinstance(arg, instance_pci_requests.InstancePCIRequests):
        return arg
    texts = []
    for request in arg.requests:
        # Those of ports have no alias.
        name = request.alias_name or 'for port %s' % request.requester_id
        texts.append('%d %s' % (request.count, name))
    return ', '.join(texts)


def run(handler: Any, host_filter: Any, states: list[Any], spec: Any,
        named: abc.Iterable[Any]) -> tuple[reasons.FilterRun, list[Any]]:
    """Run a filter; return what it rejects and logs, and what passes.

    :param named: hosts to run it for, whatever other filters say
    """
    uuids = {state.uuid for state in states}
    others = [state for state in named if state.uuid not in uuids]
    if isinstance(host_filter, nova_filters.CandidateFilterMixin):
        # Such a filter passes only candidates.
        others = [state for state in others if state.allocation_candidates]
    with listening([*states, *others]) as messages:
        with failures_of(host_filter):
            passed = list(handler.get_filtered_objects(
                [host_filter], states, spec) or [])
        # Nova does not filter the others, so that no failure counts.
        passing = others
        with contextlib.suppress(reasons.Refusal), failures_of(host_filter):
            passing = list(host_filter.filter_all(others, spec) or ())
    uuids = {state.uuid for state in [*passed, *passing]}
    rejected = [state for state in [*states, *others]
                if state.uuid not in uuids]
    broken_rules: frozenset[str] = frozenset()
    if isinstance(host_filter, filters.AggregateMembershipFilter):
        pairs = host_filter.broken_rules(rejected, spec)
        broken_rules = frozenset(state.uuid for state, rules in pairs if rules)
    logged = {state.uuid: messages.last_message(state) for state in rejected}
    return reasons.FilterRun(type(host_filter).__name__, logged, broken_rules,
                             type(host_filter).__module__), passed


@contextlib.contextmanager
def listening(states: abc.Sequence[host_manager.HostState]
              ) -> abc.Iterator[_Messages]:
    """Receive what the filters log, whatever the log level is."""
    messages = _Messages(states)
    with contextlib.ExitStack() as stack:
        for name in (NOVA_FILTERS, filters.__name__):
            logger = logging.getLogger(name)
            stack.callback(logger.setLevel, logger.level)
            stack.callback(setattr, logger, 'propagate', logger.propagate)
            stack.callback(logger.removeHandler, messages)
            logger.addHandler(messages)
            logger.setLevel(logging.DEBUG)
            logger.propagate = False
        yield messages


def queries(context: Any, request: requests.SchedulingRequest,
            manager: host_manager.HostManager) -> placement_query.Queries:
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
        raise _refusal(exc) from exc
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
            raise _refusal(exc, origin.step) from exc
        origins |= dict.fromkeys(_conditions(spec) - before, origin)
        if isinstance(query_filter, request_filters.Narrowing):
            rules, _added, omitted = query_filter.narrow(spec)
            if omitted:
                request.notes.append(OMITTED % omitted)
            # Of several rules with a condition, the first is its origin.
            for rule in reversed(rules):
                subject = rule.subject.replace(str(spec.project_id), tenant)
                origins |= dict.fromkeys(
                    rule.conditions & origins.keys(), Origin(subject))
    return origins


def _origin_of(query_filter: Any, zone: str, tenant: str) -> Origin:
    name = getattr(query_filter, '__name__', type(query_filter).__name__)
    return {
        'map_az_to_placement_aggregate':
            Origin('zone %s' % zone, zone=True, step=STEP),
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


def _refusal(exc: Exception, step: str = '') -> reasons.Refusal:
    """Return a refusal for the reason that nova's exception has."""
    why = getattr(exc, 'kwargs', {}).get('reason') or str(exc)
    return reasons.Refusal('request filters', ' '.join(str(why).split()), step)
