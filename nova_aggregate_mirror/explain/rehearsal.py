# SPDX-License-Identifier: Apache-2.0
"""What nova-scheduler does with a request, step by step and without claims.

Nova's own code runs: its request filters and those of this package, the query
to placement as nova builds it, and nova's host filters and weighers.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any
import urllib.parse

from nova.conf import CONF
from nova import exception as nova_exception
from nova.scheduler import host_manager
from nova.scheduler import request_filter
from nova.scheduler import utils

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.explain import network_requests
from nova_aggregate_mirror.explain import query
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.placement import candidates
from nova_aggregate_mirror.scheduler import narrowing
from nova_aggregate_mirror.scheduler import request_spec


class NoHost(Exception):
    """Nova refuses the request before it queries placement: the reason."""


@dataclasses.dataclass(frozen=True)
class _Asked:
    """The conditions that a request filter can add."""

    required: tuple[frozenset[str], ...]
    forbidden: frozenset[str]
    traits: frozenset[str]

    @classmethod
    def of(cls, spec: request_spec.RequestSpec) -> '_Asked':
        found = request_spec.member_of(spec)
        return cls(found.required, found.forbidden, frozenset(
            [*spec.root_required, *('!' + name for name
                                    in spec.root_forbidden)]))


class Rehearsal:
    """The scheduling of one request.

    :param context: nova's context of an administrator
    :param spec: a request without other users; it is changed
    """

    def __init__(self, context: Any, spec: request_spec.RequestSpec,
                 manager: host_states.HostManager) -> None:
        self._context = context
        self._spec = spec
        self._manager = manager
        self._asked_by: dict[str, str] = {}
        self._sets: dict[frozenset[str], str] = {}
        self.omitted = 0
        """Conditions for which the query of this package had no room."""

    @property
    def rebuild(self) -> bool:
        """Whether nova does not query placement for the request."""
        return bool(utils.request_is_rebuild(self._spec))

    @property
    def cell(self) -> Any:
        """The mapping of the cell that the server has to stay in, or None."""
        destination = self._spec.requested_destination
        if destination and 'cell' in destination and (
                not destination.allow_cross_cell_move):
            return destination.cell
        return None

    def ignores(self, host: str) -> bool:
        """Check whether the request leaves out a host; nova ignores case."""
        return host.lower() in {
            one.lower() for one in self._spec.ignore_hosts or ()}

    def queries(self) -> list[query.Query]:
        """Run the request filters; return the queries that nova makes.

        Nova takes the candidates of all of them.

        :raises NoHost: when a request filter, or nova, refuses the request
        :raises MirrorError: when a service that a filter asks is unavailable
        """
        try:
            with network_requests.translated('running the request filters'):
                for one in request_filter.ALL_REQUEST_FILTERS:
                    self._run(one)
            found = self._resources(pinning=True)
            resources = [found]
            # A second query replaces dedicated processors by shared ones.
            if found.cpu_pinning_requested and not (
                    CONF.workarounds.disable_fallback_pcpu_query):
                resources.append(self._resources(pinning=False))
        except (nova_exception.NovaException, NotImplementedError,
                ValueError) as exc:
            # Nova-scheduler fails the request in the same way.
            raise NoHost(_reason(exc)) from exc
        return [query.parse(self._parameters(one), self._source)
                for one in resources]

    def states(self, answers: Iterable[candidates.Candidates]
               ) -> list[host_manager.HostState]:
        """Read the host states of the candidates, as nova-scheduler does."""
        uuids: set[str] = set()
        requests: dict[str, list[Any]] = {}
        for answer in answers:
            uuids |= answer.providers
            for one in answer.requests:
                for provider in one['allocations']:
                    requests.setdefault(provider, []).append(one)
        states = list(self._manager.get_host_states_by_uuids(
            self._context, None if self.rebuild else sorted(uuids),
            self._spec))
        for state in states:
            state.allocation_candidates = list(requests.get(state.uuid, []))
        return states

    def filtered(self, states: Sequence[host_manager.HostState]
                 ) -> tuple[Sequence[host_states.Filtered],
                            Mapping[str, float]]:
        """Run the host filters and the weighers of nova.

        :returns: what each filter has done, and the nodes that pass all of
            them with their weights, the best first
        """
        steps, passed = self._manager.filtered(states, self._spec)
        return steps, {one.obj.uuid: one.weight for one in
                       self._manager.get_weighed_hosts(passed, self._spec)}

    def _run(self, one: Any) -> None:
        """Run a request filter, and note the conditions that it adds."""
        before = _Asked.of(self._spec)
        one(self._context, self._spec)
        after = _Asked.of(self._spec)
        name = _words(one, self._spec)
        for group in {*after.required} - {*before.required}:
            self._sets[group] = name
        for uuid in after.forbidden - before.forbidden:
            self._asked_by[uuid] = name
        for trait in after.traits - before.traits:
            self._asked_by[trait] = name
        if isinstance(one, narrowing.Narrowing):
            self._name(one.subjects(self._spec))
            self.omitted += one.omitted(self._spec)

    def _name(self, subjects: Mapping[str | frozenset[str], str]) -> None:
        """Name the rules behind the conditions of this package's filter."""
        for what, subject in subjects.items():
            if isinstance(what, str):
                if what in self._asked_by:
                    self._asked_by[what] = subject
            elif what in self._sets:
                self._sets[what] = subject

    def _resources(self, pinning: bool) -> Any:
        return utils.resources_from_request_spec(
            self._context, self._spec, self._manager,
            enable_pinning_translate=pinning)

    def _parameters(self, resources: Any) -> list[tuple[str, str]]:
        """Parse nova's query; split what different filters forbid."""
        found = []
        for key, value in urllib.parse.parse_qsl(
                resources.to_querystring(), keep_blank_values=True):
            if key.startswith(query.MEMBER_OF) and value.startswith('!in:'):
                by: dict[str, list[str]] = {}
                for uuid in value.removeprefix('!in:').split(','):
                    by.setdefault(self._asked_by.get(uuid, ''), []).append(
                        uuid)
                found += [(key, '!in:' + ','.join(uuids))
                          for _name, uuids in sorted(by.items())]
            else:
                found.append((key, value))
        return found

    def _source(self, condition: explanation.Condition) -> str:
        """Return what has added a condition to the query."""
        names = query.names(condition)
        if query.kind(condition) == query.MEMBER_OF:
            if query.forbids(condition):
                return self._asked_by.get(names[0], '')
            return self._sets.get(frozenset(names), '')
        if query.kind(condition) in (query.REQUIRED, query.ROOT):
            return self._asked_by.get(condition.value) or self._by_user(
                condition)
        return 'flavor' if query.kind(condition) == query.RESOURCES else ''

    def _by_user(self, condition: explanation.Condition) -> str:
        specs = self._spec.flavor.extra_specs or {}
        name = 'trait%s:%s' % (query.group(condition),
                               query.names(condition)[0])
        return 'flavor' if name in specs else 'image or nova'


def _words(one: Any, spec: request_spec.RequestSpec) -> str:
    """Name a request filter by what it stands for."""
    name = getattr(one, '__name__', type(one).__name__)
    return {
        'map_az_to_placement_aggregate':
            'zone %s' % spec.availability_zone,
        'require_tenant_aggregate': 'tenant %s' % spec.project_id,
        'isolate_aggregates': reasons.ISOLATED,
        'routed_networks_filter': reasons.SEGMENTS,
        'SegmentAddresses': reasons.FREE_SEGMENTS,
    }.get(name, 'nova, %s' % name)


def _reason(exc: Exception) -> str:
    """Return the reason that nova's exception has, as one line."""
    text = getattr(exc, 'kwargs', {}).get('reason') or str(exc)
    return ' '.join(str(text).split())
