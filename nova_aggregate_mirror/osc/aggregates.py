# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror list`` and ``show``: the current state."""

import argparse
import collections
from collections import abc
from typing import Any

from nova_aggregate_mirror.console import arguments
from nova_aggregate_mirror.console import sync_result
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.osc import command
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import outcome

State = associations.State

COLUMNS = ('Name', 'UUID', 'Hosts', 'In Nova', 'In Placement', 'State')
STATES = (State.MISSING, State.STALE, State.FOREIGN_AGGREGATE, State.DISPUTED,
          State.UNKNOWN, State.NO_NODE, State.PENDING)
"""States of an aggregate that is not in sync, the most important first."""


class ListAggregates(command.Lister):
    """List host aggregates and whether placement is in sync with nova.

    In Nova counts the compute nodes of the member hosts, In Placement the
    resource providers of compute nodes that are in the placement aggregate.
    """

    _epilog = command.epilog(exit_status.LISTING)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        arguments.add_foreign(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        sync = self.compare(parsed_args.foreign)
        names = {**sync.nova.aggregates}
        unread = sync_result.failed(sync, outcome.UNREAD)
        by_aggregate = collections.defaultdict(list)
        for association in sync_result.complete(sync):
            by_aggregate[association.aggregate_uuid].append(association)
            # It has no name, and a table has no column of UUIDs.
            if association.state is State.FOREIGN_AGGREGATE and (
                    parsed_args.formatter != 'table'):
                names.setdefault(association.aggregate_uuid, '')
        rows = []
        for name, uuid in sorted((name, uuid) for uuid, name in names.items()):
            hosts = [host for host, aggregates in sync.nova.members.items()
                     if uuid in aggregates]
            in_nova = [association for association in by_aggregate[uuid]
                       if association.in_nova and association.provider]
            in_placement = [association for association in by_aggregate[uuid]
                            if association.in_placement and association.hosts]
            states = {association.state for association in by_aggregate[uuid]}
            if uuid in unread:
                states.add(State.UNKNOWN)
            rows.append((name, uuid, len(hosts), len(in_nova),
                         len(in_placement), state(states)))
        if not rows:
            command.tell(['Nova has no aggregate'])
        self.below = sync_result.effect(row[-1] for row in rows)
        return COLUMNS, rows

    def in_table(self, columns: Any, rows: Any) -> command.Table:
        name, _uuid, *others = columns
        return (name, *others), [
            (name, *others) for name, _uuid, *others in rows]


def state(states: abc.Set[State]) -> str:
    """Return the state of an aggregate; what a sync repairs comes first."""
    return next((state.value for state in STATES if state in states),
                State.IN_SYNC.value)


class ShowAggregate(command.Lister):
    """Show each host and each resource provider of a host aggregate.

    A provider without a host is not a compute node that nova-api lists: shared
    storage, a network segment, or a node of a host without a mapping.
    """

    _epilog = command.epilog(exit_status.LISTING)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('aggregate', metavar='<aggregate>',
                            help='Host aggregate to show (name, UUID or ID)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        [uuid] = self.clients.aggregates([parsed_args.aggregate])
        sync = self.compare()
        rows = [(association.host, association.provider,
                 association.state.value)
                for association in sync_result.complete(sync)
                if association.aggregate_uuid == uuid]
        if not rows and uuid not in sync_result.failed(sync, outcome.UNREAD):
            command.tell(['Aggregate %s has no host in nova, and no provider '
                          'in placement' % parsed_args.aggregate])
        self.below = sync_result.effect(row[-1] for row in rows)
        return ('Host', 'Provider', 'State'), rows
