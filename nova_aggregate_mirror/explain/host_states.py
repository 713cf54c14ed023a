# SPDX-License-Identifier: Apache-2.0
"""Nova's host manager without a memory.

Long because all that it changes of nova's, and checks, is here.
"""

import collections
from collections import abc
import contextlib
import functools
from typing import Any

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.objects import request_spec as spec_objects
from nova.scheduler import host_manager
from nova.scheduler import manager
from nova import servicegroup

from nova_aggregate_mirror import dates
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.explain import rehearsal
from nova_aggregate_mirror.explain import request as requests
from nova_aggregate_mirror import nova_signatures
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import cells as nova_cells

REQUIRED = 'nova-scheduler', 'nova-conductor'
"""Services without which no server gets a host."""
# Methods that are called or overridden and are not public in nova.
PARAMETERS = {
    host_manager.HostManager: {
        '_get_computes_for_cells': [
            'self', 'context', 'cells', 'compute_uuids'],
        '_get_instance_info': ['self', 'context', 'compute'],
        '_init_instance_info': ['self', 'computes_by_cell']},
    manager.SchedulerManager: {'_consume_selected_host': [
        'selected_host', 'spec_obj', 'instance_uuid']}}


def check_nova() -> None:
    """Raise UnexpectedNova if the installed nova has other internals."""
    spec = spec_objects.RequestSpec()
    with contextlib.suppress(AttributeError):
        request_spec.set_addresses(spec, [])
    nova_signatures.check(PARAMETERS, [] if request_spec.get_addresses(spec)
                          else ['RequestSpec keeps no attribute of a filter'])


class _Instances(collections.UserDict[str, Any]):
    """The instances of a host, read when a filter or weigher needs them."""

    def __init__(self, read: abc.Callable[[], Any], host: str) -> None:
        self._read, self._host = read, host

    @functools.cached_property
    def data(self) -> dict[str, Any]:  # type: ignore[override]
        context, uuids = self._read()
        return {uuid: objects.Instance(context, uuid=uuid)
                for uuid in uuids.get(self._host, ())}


@contextlib.contextmanager
def _reading(table: str) -> abc.Iterator[None]:
    """Translate what nova's objects raise for a row that they cannot read."""
    try:
        yield
    except (TypeError, ValueError) as exc:
        # Nova-scheduler fails with it when it starts.
        raise exceptions.NovaUnavailable(
            'cannot read a row: %s' % exc, 'nova itself', 'table %s' % table,
            step='correct the row that has NULL, or a text that nova does not '
            'accept') from exc


class HostManager(host_manager.HostManager):
    """Nova's host manager for one request: keeps nothing for another one.

    :param for_each: reads cells at once; placement is asked with it, too
    :raises InvalidConfiguration: a filter or weigher cannot be loaded
    """

    def __init__(self, for_each: isolation.ForEach = isolation.in_turn
                 ) -> None:
        self.for_each = for_each
        self.is_up = servicegroup.API().service_is_up
        self._readers: dict[str, abc.Callable[[], Any]] = {}
        """Host to what reads the instances of all hosts of its cell."""
        self.services: dict[str, abc.Mapping[str, Any]] = {}
        """UUID of a cell to the nova-compute service of each of its hosts."""
        self.all_services: list[Any] = []
        """Those of nova-compute, and all others."""
        self.is_partial = False
        """Whether a cell was not read, which may have one that is up."""
        self.cells_down: dict[str, exceptions.Failure] = {}
        """The cells that are not read."""
        try:
            super().__init__()
        except rehearsal.NO_PLUGIN_FAILURES:
            raise
        except nova_exception.SchedulerHostFilterNotFound as exc:
            raise exceptions.InvalidConfiguration(
                '[filter_scheduler] enabled_filters: %s' % exc) from exc
        except Exception as exc:  # It may be the operator's own code.
            raise exceptions.InvalidConfiguration(
                '[filter_scheduler] available_filters or weight_classes: %s; '
                'correct it, or run the command in the environment of '
                'nova-scheduler' % rehearsal.reason(exc)) from exc

    def refresh_cells_caches(self) -> None:
        with _reading('cell_mappings'):
            super().refresh_cells_caches()

    def _init_aggregates(self) -> None:
        with _reading('aggregates'):
            super()._init_aggregates()

    def zones(self) -> dict[str, str]:
        """Return the hosts of aggregates with a zone, each with that."""
        zones: dict[str, str] = {}
        for aggregate in self.aggs_by_id.values():
            if zone := aggregate.availability_zone:
                zones |= dict.fromkeys(aggregate.hosts, zone)
        return zones

    def states(self, context: Any, spec: Any,
               answers: candidates.Answers | None = None,
               named: abc.Iterable[str] = ()) -> list[host_manager.HostState]:
        """Read the host states of the candidates, as nova-scheduler does.

        :param answers: None for all hosts, as without a query to placement
        :param named: further compute nodes to read
        """
        uuids, allocations = set(named), list[Any]()
        for answer in answers or ():
            uuids.update(answer.summaries)
            allocations += answer.requests
        offered = candidates.by_provider(allocations)
        states = list(self.get_host_states_by_uuids(
            context, None if answers is None else sorted(uuids), spec))
        for state in states:
            state.allocation_candidates = offered.get(state.uuid, [])
        return states

    def run_filters(self, states: abc.Sequence[host_manager.HostState],
                    spec: Any, named: abc.Iterable[Any] = ()
                    ) -> tuple[frozenset[str], list[reasons.FilterRun],
                               list[host_manager.HostState]]:
        """Run nova's host filters.

        :param named: host states to run each filter for
        :returns: the nodes of the hosts that the request names or does not
            ignore, the result of each filter, and the hosts that pass all
        """
        # Without filters nova's method checks only forced and ignored hosts.
        enabled: Any = self.enabled_filters
        self.enabled_filters: Any = []
        requested = list(self.get_filtered_hosts(states, spec) or [])
        self.enabled_filters = enabled
        runs, passed = list[reasons.FilterRun](), requested
        for host_filter in [] if request_spec.forced(spec) else enabled:
            run, passed = rehearsal.run(
                self.filter_handler, host_filter, passed, spec, named)
            runs.append(run)
        return frozenset(state.uuid for state in requested), runs, passed

    def scores(self, states: abc.Sequence[host_manager.HostState], spec: Any
               ) -> abc.Mapping[str, abc.Mapping[str, float]]:
        """Run nova's weighers; return the weights of each node by weigher."""
        scores: dict[str, dict[str, float]] = {
            state.uuid: {} for state in states}
        for weigher in self.weighers:
            with rehearsal.failures_of(weigher):
                for weighed in self.weight_handler.get_weighed_objects(
                        [weigher], states, spec):
                    scores[weighed.obj.uuid][
                        type(weigher).__name__] = weighed.weight
        return scores

    def read_services(self, context: Any, cells_down: source.Down) -> None:
        """Read the services once; leave out cells that fail or are down."""
        self.cells_down = {**cells_down}
        self.is_partial = bool(cells_down)
        # Cell0 usually has the rows of the services that all cells share.
        cell0 = [cell for cell in objects.CellMappingList.get_all(context)
                 if cell.is_cell0()]
        cells = [cell for cell in self.cells.values()
                 if nova_cells.full_name(cell) not in cells_down]
        for cell, services in self._ask(
                context, [*cell0, *cells], objects.ServiceList.get_all):
            if isinstance(services, exceptions.CellUnavailable):
                self.is_partial = True
                if not cell.is_cell0():
                    name = nova_cells.full_name(cell)
                    self.cells_down[name] = services.failure
                continue
            self.services[cell.uuid] = {
                service.host: service for service in services
                if service.binary == 'nova-compute'}
            self.all_services.extend(services)
        self.cells: dict[str, Any] = {
            cell.uuid: cell for cell in cells if cell.uuid in self.services}
        self.enabled_cells = [cell for cell in self.cells.values()
                              if not cell.disabled]

    def remarks(self) -> list[str]:
        """Return which required services are down, and the unread cells."""
        remarks = list[str]()
        for binary in () if self.is_partial else REQUIRED:
            services = [service for service in self.all_services
                        if service.binary == binary]
            if any(map(self.is_up, services)):
                continue
            reports = [service.last_seen_up or service.created_at
                       for service in services]
            what = 'nova has none' if not reports else (
                'the last report is of %s' % dates.iso(
                    max(reports).timestamp()))
            remarks.append('No %s is up, %s: no server gets a host. Start it.'
                           % (binary, what))
        return remarks + [str(problem) for problem in problems.of_cells(
            self.cells_down, 'its hosts are not explained')]

    def get_compute_nodes_by_host_or_node(self, ctxt: Any, host: Any,
                                          node: Any, cell: Any = None) -> Any:
        """Return the nodes; nova's method has none of a cell that fails."""
        nodes = super().get_compute_nodes_by_host_or_node(
            ctxt, host, node, cell)
        if not nodes:
            # This raises what nova's method has caught.
            self._get_computes_for_cells(
                ctxt, [cell] if cell else self.enabled_cells, [])
        return nodes

    def _get_computes_for_cells(self, context: Any, cells: abc.Sequence[Any],
                                compute_uuids: Any) -> Any:
        """Return what nova's method does, with the services read before."""
        nodes, services, table = {}, dict[str, Any](), objects.ComputeNodeList
        query = table.get_all
        if compute_uuids is not None:
            query = functools.partial(
                table.get_all_by_uuids, compute_uuids=compute_uuids)
        for cell, computes in self._ask(context, cells, query):
            if isinstance(computes, exceptions.CellUnavailable):
                raise computes  # Nova only logs it.
            nodes[cell.uuid] = computes
            hosts = sorted({compute.host for compute in computes})
            read = functools.partial(self._read_uuids, context, cell, hosts)
            # The first host whose instances are needed reads those of all.
            self._readers |= dict.fromkeys(hosts, functools.cache(read))
            services |= self.services.get(cell.uuid, {})
        return nodes, services

    def _ask(self, context: Any, cells: abc.Iterable[Any],
             query: abc.Callable[[Any], Any]) -> list[tuple[Any, Any]]:
        """Return each cell and its answer to a query, or CellUnavailable."""
        def ask(cell: Any) -> tuple[Any, Any]:
            try:
                with requests.reading(context, cell) as target:
                    return cell, query(target)
            except exceptions.CellUnavailable as exc:
                return cell, exc

        return self.for_each(ask, cells)

    def _init_instance_info(self, computes_by_cell: Any = None) -> None:
        """Do nothing: instances are read when they are needed."""

    def _read_uuids(self, context: Any, cell: Any, hosts: abc.Sequence[str]
                    ) -> tuple[Any, abc.Mapping[str, abc.Sequence[str]]]:
        with nova_context.target_cell(context, cell) as target:
            return target, objects.InstanceList.get_uuids_by_hosts(
                target, hosts)

    def host_state_cls(self, host: str, node: str, cell: str, **options: Any
                       ) -> host_manager.HostState:
        state = super().host_state_cls(host, node, cell, **options)
        state.instances = _Instances(self._readers[host], host)
        return state

    def _get_instance_info(self, context: Any, compute: Any) -> None:
        """Leave the instances that a host state has: nova logs others."""
