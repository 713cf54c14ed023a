# SPDX-License-Identifier: Apache-2.0
"""Which hosts nova-scheduler chooses for several servers of one request."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from nova.scheduler import manager as nova_manager
from oslo_utils import uuidutils

from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.placement import candidates


class _Capacity:
    """What providers can still allocate, as placement reported it."""

    def __init__(self, answers: Iterable[candidates.Candidates]) -> None:
        self._free = {
            (provider, name): figures['capacity'] - figures['used']
            for answer in answers
            for provider, summary in answer.summaries.items()
            for name, figures in summary['resources'].items()}

    def claim(self, request: Mapping[str, Any]) -> bool:
        """Take the resources of an allocation request if they are free."""
        amounts = {
            (provider, name): amount
            for provider, one in request['allocations'].items()
            for name, amount in one['resources'].items()}
        if any(self._free.get(each, 0) < amount
               for each, amount in amounts.items()):
            return False
        for each, amount in amounts.items():
            self._free[each] -= amount
        return True


def place(spec: Any, manager: host_states.HostManager, states: Sequence[Any],
          answers: Iterable[candidates.Candidates]) -> list[str]:
    """Choose a host for each server until none is left.

    Nova chooses in the same order, but at random among the best hosts if
    ``[filter_scheduler] host_subset_size`` is more than 1.

    :param spec: the request, which is changed
    :param states: every host state, which is changed as by a server on it
    :returns: a host for each server that finds one
    """
    capacity, chosen, left = _Capacity(answers), list[str](), list(states)
    servers = [uuidutils.generate_uuid() for _ in range(spec.num_instances)]
    if spec.instance_group:
        # Nova adds servers to their group before it schedules them.
        spec.instance_group.members = [*spec.instance_group.members, *servers]
    for index, server in enumerate(servers):
        spec.instance_uuid = server
        left = list(manager.get_filtered_hosts(left, spec, index) or [])
        best = [one.obj for one in manager.get_weighed_hosts(left, spec)]
        found = next((state for state in best if state.allocation_candidates
                      and capacity.claim(state.allocation_candidates[0])),
                     None)
        if found is None:
            return chosen
        # Devices are consumed on the providers that were chosen.
        mappings = found.allocation_candidates[0]['mappings']
        for group in spec.requested_resources:
            group.provider_uuids = mappings[group.requester_id]
        nova_manager.SchedulerManager._consume_selected_host(
            found, spec, instance_uuid=server)
        chosen.append(found.host)
    return chosen
