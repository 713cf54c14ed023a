# SPDX-License-Identifier: Apache-2.0
"""Servers on the hosts that nova-scheduler chooses, one after the other."""

import collections
from collections import abc
import dataclasses
import datetime
import itertools
from typing import Any

from nova.conf import CONF
from nova import objects
from nova.scheduler import manager as nova_manager
from oslo_utils import timeutils
from oslo_utils import uuidutils

from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.explain import rehearsal
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import reconcile
from nova_aggregate_mirror.scheduler import filters
from nova_aggregate_mirror.scheduler import request_spec

Taken = collections.Counter[tuple[str, str]]
"""Amounts by provider and resource class."""


def amounts(request: abc.Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Return the amounts that an allocation request takes, as ``Taken``."""
    taken = {}
    for provider, allocation in request['allocations'].items():
        for name, amount in allocation['resources'].items():
            taken[provider, name] = amount
    return taken


class Filling:
    """Host states, from which one server after the other is taken.

    They are read once: nova's ``update`` would forget what was consumed.
    """

    def __init__(self, manager: host_states.HostManager,
                 states: abc.Iterable[Any]) -> None:
        self._manager, self._states = manager, list(states)
        self._addresses = filters.SegmentAddressesFilter()
        self._time = timeutils.utcnow()
        self.taken = Taken()
        """What servers took, or gave back, which placement has not seen."""
        self.servers: dict[str, str] = {}
        """Each server that was placed, to its host."""

    def choose(self, spec: request_spec.RequestSpec,
               answers: candidates.Answers) -> list[Any]:
        """Return the weighed hosts that pass, the best first.

        :raises Refusal: one of nova's filters or weighers fails
        """
        self._stop_time()
        offered = candidates.by_provider(itertools.chain(
            *map(self._fitting, answers)))
        states = []
        for state in self._addresses.filter_all(self._states, spec):
            if state.uuid in offered:
                # A filter may leave out some of them.
                state.allocation_candidates = offered[state.uuid]
                states.append(state)
        manager = self._manager
        try:
            with rehearsal.failures_of(manager):
                passed = list(manager.get_filtered_hosts(states, spec) or ())
                return list(manager.get_weighed_hosts(passed, spec))
        except reasons.Refusal:
            # One after the other, the one that fails is named.
            *_runs, passed = manager.run_filters(states, spec)
            manager.scores(passed, spec)
            raise

    def _lacking(self, request: abc.Mapping[str, Any],
                 summaries: abc.Mapping[str, Any]) -> set[str]:
        """Return the resource classes of which a request asks too much."""
        classes = set()
        for (provider, name), amount in amounts(request).items():
            figures = summaries[provider]['resources'][name]
            used = figures['used'] + self.taken[provider, name]
            if amount > figures['capacity'] - used:
                classes.add(name)
        return classes

    def _fitting(self, answer: candidates.Candidates) -> abc.Iterator[Any]:
        """Return the candidates that are still free, up to the limit."""
        fitting = (request for request in answer.requests
                   if not self._lacking(request, answer.summaries))
        return itertools.islice(fitting, answer.limit)

    def place(self, server: str, state: Any, spec: request_spec.RequestSpec,
              source: str = '') -> None:
        """Let a server be on a host, and no longer on its source, if any."""
        candidate = state.allocation_candidates[0]
        self.taken.update(amounts(candidate))
        self.servers[server] = state.host
        # A vCenter moves a server within its cluster, which is one host.
        if state.host == source:
            return
        if source:
            for other in self._states:
                if other.host == source:
                    other.instances.pop(server, None)
            state.instances[server] = objects.Instance(uuid=server)
        # As nova-scheduler does it.
        for group in spec.requested_resources:
            group.provider_uuids = candidate['mappings'][group.requester_id]
        nova_manager.SchedulerManager._consume_selected_host(
            state, spec, instance_uuid=server)
        # The move ends before the next server is asked for.
        state.num_io_ops -= 1

    def fill(self, spec: request_spec.RequestSpec, answers: candidates.Answers,
             display: reconcile.Progress) -> None:
        """Create servers until none finds a host."""
        group, topology = spec.instance_group, spec.numa_topology
        for number in range(1, explanation.MAX_SERVERS + 1):
            # The server before this one was fitted to the cells of its host.
            spec.numa_topology = topology and topology.obj_clone()
            server = spec.instance_uuid = uuidutils.generate_uuid()
            if group:
                # Nova adds a server to its group before it schedules it.
                group.members = [*group.members, server]
            weighed = self.choose(spec, answers)
            if not weighed:
                return
            self.place(server, weighed[0].obj, spec)
            display.tell(plurals.count(number, 'server') + ' placed')

    def place_at_once(self, spec: request_spec.RequestSpec,
                      answers: candidates.Answers) -> None:
        """Choose a host for each server of a request while one is left.

        Nova asks placement once, and takes the first candidate of a host.
        """
        states = self._states
        summaries: dict[str, abc.Mapping[str, Any]] = {}
        for answer in answers:
            summaries |= answer.summaries
        servers = [uuidutils.generate_uuid()
                   for _ in range(spec.num_instances)]
        if spec.instance_group:
            # Nova adds servers to their group before it schedules them.
            spec.instance_group.members = [
                *spec.instance_group.members, *servers]
        for index, server in enumerate(servers):
            spec.instance_uuid = server
            filtered = self._manager.get_filtered_hosts(states, spec, index)
            states = list(filtered or [])
            for weighed in self._manager.get_weighed_hosts(states, spec):
                state = weighed.obj
                if state.allocation_candidates and not self._lacking(
                        state.allocation_candidates[0], summaries):
                    break
            else:
                return
            self.place(server, state, spec)
            # Nova builds the servers of one request at the same time.
            state.num_io_ops += 1

    def exhausted(self, spec: request_spec.RequestSpec,
                  answers: candidates.Answers, nodes: abc.Collection[str]
                  ) -> dict[str, str]:
        """Return why nodes that found room at first take no further server.

        :returns: node to the resource classes that ran out, or host filter
        """
        missing: dict[str, list[set[str]]] = {}
        for answer in answers:
            for request in answer.requests:
                classes = self._lacking(request, answer.summaries)
                for provider in request['allocations']:
                    missing.setdefault(provider, []).append(classes)
        shortages = {}
        for node in nodes:
            if node in missing and all(missing[node]):
                classes = set().union(*missing[node])
                shortages[node] = ', '.join(sorted(classes))
        left = [state for state in self._states
                if state.uuid in nodes and state.uuid not in shortages]
        _nodes, runs, _passed = self._manager.run_filters(left, spec)
        for run in runs:
            shortages |= dict.fromkeys(run.rejected, run.name)
        free = {state.uuid for state in self._addresses.filter_all(left, spec)}
        return shortages | {state.uuid: 'addresses' for state in left
                            if state.uuid not in free}

    def _stop_time(self) -> None:
        """Let the last reports of nova-computes be as old as at the start."""
        passed = timeutils.utcnow() - self._time
        if passed < datetime.timedelta(seconds=1):
            return
        self._time += passed
        for state in self._states:
            service = state.service
            reported = service['last_seen_up'] or service['created_at']
            state.service = {**service, 'last_seen_up': reported + passed}


def fill(servers: Filling, spec: request_spec.RequestSpec,
         facts: reasons.Facts, display: reconcile.Progress
         ) -> explanation.Answer:
    """Place servers until none fits, or until Ctrl-C."""
    answers = facts.funnel.answers if facts.funnel else ()
    interrupted = False
    try:
        servers.fill(spec, answers, display)
    except KeyboardInterrupt:
        interrupted = True
    hosts = list(servers.servers.values())
    shortages = servers.exhausted(spec, answers, facts.scores.keys())
    shortages |= dict.fromkeys(facts.unmapped & facts.scores.keys(),
                               'no host mapping')
    zones = collections.Counter(sorted(
        facts.zones.get(host, CONF.default_availability_zone)
        for host in hosts))
    return dataclasses.replace(
        facts.answer, fills=True, count=len(hosts), placed=hosts, zones=zones,
        interrupted=interrupted,
        ran_out=collections.Counter(shortages.values()))
