# SPDX-License-Identifier: Apache-2.0
"""Where the servers of a host would go, each move ended before the next."""

import dataclasses
import functools
from typing import Any

from nova import exception as nova_exception
from nova import objects

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import conditions
from nova_aggregate_mirror.explain import departures
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import filling
from nova_aggregate_mirror.explain import gather
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.explain import request as requests
from nova_aggregate_mirror.explain import stored
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.scheduler import moving
from nova_aggregate_mirror import source

IRONIC, RESIZED = 'ironic', 'resized'
LEFT = ('no host%s is left after %s (%s); if it goes first it takes %s, and '
        'another may find none')


def _read(context: Any, host: str) -> list[Any]:
    """Read the servers on a host, and those that a revert brings back."""
    try:
        cell = objects.HostMapping.get_by_host(context, host).cell_mapping
    except nova_exception.HostMappingNotFound as exc:
        raise exceptions.UnknownName(
            'host %s is mapped to no cell; run "nova-manage cell_v2 '
            'discover_hosts --verbose"' % host) from exc
    with requests.reading(context, cell) as target:
        nodes = objects.ComputeNodeList.get_all_by_host(target, host)
        if any(node.hypervisor_type == IRONIC for node in nodes):
            raise exceptions.UnknownName(
                'the servers of %s are of ironic, and there are no moves for '
                'them. Nova: %s' % (
                    host, nova_exception.InstanceEvacuateNotSupported()))
        servers = list(objects.InstanceList.get_by_host(
            target, host, expected_attrs=['flavor']))
        unconfirmed = objects.MigrationList.get_by_filters(
            target, {'source_compute': host, 'status': 'finished'})
        elsewhere = {migration.instance_uuid for migration in unconfirmed}
        elsewhere.difference_update(server.uuid for server in servers)
        if elsewhere:
            servers += list(objects.InstanceList.get_by_filters(
                target, {'uuid': sorted(elsewhere), 'vm_state': RESIZED,
                         'deleted': False}, expected_attrs=['flavor']))
        return servers


def _row(server: Any, operation: str) -> departures.Departure:
    """Return a server with its move, or with why there is none."""
    state = server.vm_state or ''
    row = departures.Departure(
        server.uuid, server.display_name, state,
        operation or moving.of_state(state), server.flavor.name)
    if server.task_state:
        why = 'with task %s' % server.task_state
    elif state == RESIZED:
        why = 'resize not confirmed'
    elif row.operation and state in moving.STATES[row.operation]:
        return row
    else:
        why = 'in %s' % state.upper()
    return dataclasses.replace(row, operation='', reason=why)


class Emptying:
    """The moves from one host, and what each is asked for."""

    def __init__(self, cloud: gather.Cloud, nova: source.Nova, host: str,
                 manager: host_states.HostManager) -> None:
        self._cloud, self._nova = cloud, nova
        self._host, self._manager = host, manager
        self._request = functools.partial(
            stored.of_server, cloud.context, cloud.placement)
        reader = candidates.CandidateReader(cloud.placement)
        # Servers with the same query share its response.
        self._candidates = functools.cache(reader.candidates)
        self._alone: dict[str, explanation.Answer] = {}
        """Where a server goes if it goes first, by all that decides it."""
        self._filling: filling.Filling | None = None
        self._held: dict[str, filling.Taken] = {}
        """What each server holds of the host, and of what hosts share."""
        sharing = cloud.placement.providers(required=client.SHARING)
        for provider in sorted(nova.nodes_of({host}) | sharing):
            for consumer, classes in reader.allocations(provider).items():
                amounts = self._held.setdefault(consumer, filling.Taken())
                for name, amount in classes.items():
                    amounts[provider, name] = amount

    def place(self, row: departures.Departure) -> departures.Departure:
        """Return a server with its host, or with why it has none."""
        request = self._request(row.server, row.operation)
        spec = request.spec
        queries = gather.read_queries(self._cloud, request, self._manager)
        answers = [self._candidates(tuple(query.parameters()), query.limit)
                   for query in queries]
        if self._filling is None:
            # Those of the cell, which a server does not leave.
            self._filling = filling.Filling(
                self._manager, self._manager.states(self._cloud.context, spec))
        group, servers = spec.instance_group, self._filling.servers
        if group:
            group.hosts += [servers[server] for server in group.members
                            if server in servers]
        weighed = self._filling.choose(spec, answers)
        if not weighed:
            return self._unplaced(row, spec, answers, self._filling)
        best = [choice.obj.host for choice in weighed
                if choice.weight == weighed[0].weight]
        self._filling.place(row.server, weighed[0].obj, spec, self._host)
        if row.operation != moving.EVACUATION:
            self._filling.taken.subtract(self._held.get(row.server, {}))
        return dataclasses.replace(row, destination=best[0], same_weight=best)

    def _unplaced(self, row: departures.Departure, spec: Any,
                  answers: candidates.Answers, servers: filling.Filling
                  ) -> departures.Departure:
        """Return a server with why it has no host, or has one no longer."""
        request = self._request(row.server, row.operation)
        key = _key(row, request.spec)
        if key not in self._alone:
            self._alone[key] = conditions.explain(
                gather.gather(self._cloud, self._nova, request))
        alone = self._alone[key]
        if not alone.acceptable:
            reason = 'none of %d %s takes it: %s' % (
                len(alone.verdicts), alone.noun, explanation.excluded(alone))
            return dataclasses.replace(row, reason=reason)
        first, zone = alone.acceptable[0].host, spec.availability_zone
        missing = servers.exhausted(
            spec, answers, [verdict.node for verdict in alone.acceptable])
        shortages = sorted(set(missing.values())) or ['it is not known why']
        moves = plurals.count(len(servers.servers), 'move')
        reason = LEFT % (' of zone %s' % zone if zone else '', moves,
                         ', '.join(shortages), first)
        return dataclasses.replace(row, first=first, reason=reason)


def _key(row: departures.Departure, spec: Any) -> str:
    """Return all that nova reads of a request, but for the server."""
    group = spec.instance_group
    networks = [network.network_id for network in spec.requested_networks]
    # The text of an object lacks the content of objects in it. The NUMA
    # topology follows from flavor and image.
    image = spec.image and spec.image.obj_to_primitive()
    devices = [
        {**pci.obj_to_primitive()['nova_object.data'], 'request_id': None}
        for pci in spec.pci_requests and spec.pci_requests.requests or ()]
    return str((row.operation, spec.flavor, image, spec.is_bfv, devices,
                spec.scheduler_hints, spec.availability_zone, spec.project_id,
                group and group.uuid, spec.requested_resources, networks))


def explain(cloud: gather.Cloud, host: str, operation: str, order: str
            ) -> departures.Answer:
    """Place the servers of a host.

    :param operation: one of ``moving.STATES``; empty for that of each state
    :param order: one of ``departures.ORDERS``
    :raises MirrorError: nova has no such host, or something was not read
    """
    nova = gather.read_nova(cloud, [host])
    manager = gather.manager_of(cloud, nova)
    servers = sorted(_read(cloud.context, host), key=departures.ORDERS[order])
    rows = [_row(server, operation) for server in servers]
    emptying = Emptying(cloud, nova, host, manager)
    leaving = [row for row in rows if row.operation]
    placed = list[departures.Departure]()
    for row in leaving:
        cloud.display.tell('%d of %d servers placed' % (
            len(placed), len(leaving)))
        try:
            placed.append(emptying.place(row))
        except (reasons.Refusal, exceptions.UnknownName,
                exceptions.RequestRejected,
                nova_exception.NovaException) as exc:
            # Nova fails this move, and no other.
            reason = ' '.join(str(exc).split())
            placed.append(dataclasses.replace(row, reason=reason))
    placed += [row for row in rows if not row.operation]
    return departures.Answer(host, placed, manager.remarks(),
                             cells_down=bool(manager.cells_down))
