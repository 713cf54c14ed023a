# SPDX-License-Identifier: Apache-2.0
"""Nova's host manager without a memory, and with a record of its filters."""

import collections
from collections import abc
import contextlib
import functools
import logging
import re
from typing import Any

from nova import context as nova_context
from nova.db.main import api as main_db
from nova.db.main import models
from nova import objects
from nova.scheduler import host_manager

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import facts
from nova_aggregate_mirror.scheduler import filters

# A pattern for each host would be compiled for each host.
_NAME = re.compile(r'[\w.-]+')

NOVAS = 'nova.scheduler.filters'
"""Package of nova's host filters."""


class _Instances(collections.UserDict[str, Any]):
    """The instances of a host, read when a filter or weigher needs them."""

    def __init__(self, load: abc.Callable[[], abc.Mapping[str, Any]]
                 ) -> None:
        self._load = load

    @functools.cached_property
    def data(self) -> dict[str, Any]:  # type: ignore[override]
        return dict(self._load())


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
        args = [*args.values()] if isinstance(args, abc.Mapping) else [*args]
        states = [state for arg in args for state in self._states.get(
            arg if isinstance(arg, str) else id(arg), ())]
        # A host may have several nodes.
        nodes = [state for state in states if state.nodename in args]
        for state in nodes or states:
            self._last[state.uuid] = record

    def about(self, state: host_manager.HostState) -> str:
        """Return the last message about a host state; empty if none is.

        A filter may also log something about each host that passes it.
        """
        if state.uuid not in self._last:
            return ''
        return _without_names(self._last[state.uuid].getMessage(), state)


def _without_names(text: str, state: host_manager.HostState) -> str:
    """Replace the host in a message, so that hosts in one state are alike."""
    return _NAME.sub(
        lambda match: explanation.HOST if match[0] == state.host else match[0],
        text.replace(str(state), state.host))


class _Recorder:
    """Runs nova's host filters one by one, over all hosts that are left."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler
        self.runs: list[facts.FilterRun] = []
        self.requested: abc.Sequence[Any] | None = None

    def get_filtered_objects(
            self, enabled: abc.Iterable[Any], objs: abc.Iterable[Any],
            spec_obj: Any, index: int = 0) -> list[Any]:
        states = self.requested = list(objs)
        for host_filter in enabled:
            if host_filter.run_filter_for_index(index):
                states = self._run(host_filter, states, spec_obj, index)
        return states

    def _run(self, host_filter: Any, states: list[Any], spec: Any, index: int
             ) -> list[Any]:
        """Run one filter; record what it rejects, and logs about that."""
        with _listening(states) as messages:
            passed = list(self._handler.get_filtered_objects(
                [host_filter], states, spec, index) or [])
        passed_ids = set(map(id, passed))
        rejected = [
            state for state in states if id(state) not in passed_ids]
        module = type(host_filter).__module__
        broken: abc.Iterable[tuple[Any, list[str]]] = ()
        if isinstance(host_filter, filters.AggregateMembershipFilter):
            broken = host_filter.broken_rules(rejected, spec)
        self.runs.append(facts.FilterRun(
            type(host_filter).__name__,
            {state.uuid: messages.about(state) for state in rejected},
            frozenset(state.uuid for state, subjects in broken if subjects),
            '' if module.startswith(NOVAS) else module))
        return passed


@contextlib.contextmanager
def _listening(states: abc.Sequence[host_manager.HostState]
               ) -> abc.Iterator[_Messages]:
    """Receive what the filters log, whatever the log level is."""
    messages = _Messages(states)
    with contextlib.ExitStack() as stack:
        for name in (NOVAS, filters.__name__):
            logger = logging.getLogger(name)
            stack.callback(logger.setLevel, logger.level)
            stack.callback(setattr, logger, 'propagate', logger.propagate)
            stack.callback(logger.removeHandler, messages)
            logger.addHandler(messages)
            logger.setLevel(logging.DEBUG)
            logger.propagate = False
        yield messages


class HostManager(host_manager.HostManager):
    """Nova's host manager: reads nova's databases now, and keeps nothing.

    It loads nova's filters and weighers as configured, reads aggregates when
    it is created, and starts no thread.
    """

    def leave_out(self, cells: abc.Collection[str]) -> None:
        """Do not read cells: they have not answered before."""
        for uuid, cell in list(self.cells.items()):
            if any(uuid in name for name in cells):
                del self.cells[uuid]
                if cell in self.enabled_cells:
                    self.enabled_cells.remove(cell)

    def filtered(self, states: abc.Sequence[host_manager.HostState], spec: Any
                 ) -> tuple[frozenset[str], list[facts.FilterRun],
                            list[host_manager.HostState]]:
        """Run nova's host filters.

        :returns: the nodes of the hosts that the request names or does not
            ignore, the result of each filter, and the hosts that pass all
        """
        handler: Any = self.filter_handler
        recorder = _Recorder(handler)
        self.filter_handler: Any = recorder
        try:
            passed = list(self.get_filtered_hosts(states, spec) or [])
        finally:
            self.filter_handler = handler
        # Nova runs no filter if the request forces a host.
        requested = passed if recorder.requested is None else (
            recorder.requested)
        return (frozenset(state.uuid for state in requested), recorder.runs,
                passed)

    def rejects(self, states: abc.Sequence[host_manager.HostState], spec: Any
                ) -> bool:
        """Check whether a host filter of nova rejects any of these hosts."""
        return any(len(list(host_filter.filter_all(states, spec) or ()))
                   < len(states) for host_filter in self.enabled_filters)

    def services(self, context: Any, cell: Any = None) -> dict[str, Any]:
        """Read the nova-compute service of each host."""
        cells = [cell] if cell else list(self.cells.values())
        services: dict[str, Any] = self._get_computes_for_cells(
            context, cells, compute_uuids=[])[1]
        return services

    def _init_instance_info(self, computes_by_cell: Any = None) -> None:
        """Do nothing: instances are read when they are needed."""

    def _get_host_states(self, context: Any, compute_nodes: Any,
                         services: Any) -> Any:
        self._loaders: dict[str, abc.Callable[[], Any]] = {}
        for cell, computes in compute_nodes.items():
            hosts = [compute.host for compute in computes]
            # The first host whose instances are needed reads those of all.
            self._loaders |= dict.fromkeys(hosts, functools.cache(
                functools.partial(self._load, context, cell, hosts)))
        return super()._get_host_states(context, compute_nodes, services)

    def _load(self, context: Any, cell: str, hosts: abc.Sequence[str]
              ) -> abc.Mapping[str, abc.Mapping[str, Any]]:
        """Return host to its instances by UUID."""
        instances: dict[str, dict[str, Any]] = {}
        with nova_context.target_cell(context, self.cells[cell]) as target:
            for uuid, host in _read_instances(target, hosts):
                instances.setdefault(host, {})[uuid] = objects.Instance(
                    target, uuid=uuid)
        return instances

    def _get_instance_info(self, context: Any, compute: Any) -> Any:
        load, host = self._loaders[compute.host], compute.host
        return _Instances(lambda: load().get(host, {}))


@main_db.pick_context_manager_reader  # type: ignore[untyped-decorator]
def _read_instances(context: Any, hosts: abc.Iterable[str]) -> list[Any]:
    """Read the instances of some hosts in one query."""
    rows: list[Any] = context.session.query(
        models.Instance.uuid, models.Instance.host).filter(
            models.Instance.deleted == 0,
            models.Instance.host.in_(sorted(set(hosts)))).all()
    return rows
