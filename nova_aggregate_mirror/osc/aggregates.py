# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror list`` and ``show``: the current state."""

import argparse
import collections
import dataclasses

from nova_aggregate_mirror.osc import command
from nova_aggregate_mirror.osc import comparison

COLUMNS = ('Name', 'UUID', 'Hosts', 'In Nova', 'In Placement', 'State')
LONG = tuple(one.capitalize() for one in comparison.STATES)


class ListAggregates(command.Lister):
    """List host aggregates and whether placement is in sync with nova.

    In Nova counts the compute nodes of the member hosts, In Placement the
    resource providers of compute nodes that are in the placement aggregate.
    """

    _epilog = command.READS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--long', action='store_true',
            help='Also count the associations in each state')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        current, nova = self.compare(parsed_args)
        rows = []
        for name, uuid in sorted((name, uuid) for uuid, name
                                 in nova.aggregates.items()):
            found = comparison.associations(uuid, nova, current)
            states = collections.Counter(one.state for one in found)
            hosts = sum(uuid in aggregates
                        for aggregates in nova.members.values())
            rows.append((
                name, uuid, hosts,
                sum(one.in_nova and bool(one.provider) for one in found),
                sum(one.in_placement and bool(one.host) for one in found),
                comparison.state(found),
                *(states[one] for one in comparison.STATES
                  if parsed_args.long)))
        return COLUMNS + (LONG if parsed_args.long else ()), rows


class ShowAggregate(command.Lister):
    """Show each host and each resource provider of a host aggregate.

    A provider without a host is not a compute node that nova-api lists: shared
    storage, a network segment, or a node of a host without a mapping.
    """

    _epilog = command.READS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'aggregate', metavar='<aggregate>',
            help='Host aggregate to show (name, UUID or ID)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        [uuid] = self.clients.find([parsed_args.aggregate])
        current, nova = self.compare(parsed_args)
        return ('Host', 'Provider', 'In Nova', 'In Placement', 'State'), [
            dataclasses.astuple(one)
            for one in comparison.associations(uuid, nova, current)]
