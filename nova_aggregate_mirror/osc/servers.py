# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror servers``: servers in a wrong zone."""

import argparse
from collections import abc
from typing import Any

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror.console import lookup
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.osc import command
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import moving
from nova_aggregate_mirror.source import api
from nova_aggregate_mirror.source import keyed_aggregates

LIMITS = 'Only availability zones were checked. Not checked: %s.' % ', '.join(
    name for name in rules.NAMES if name != audit.ZONE)


class ListServers(command.Lister):
    """List servers on hosts outside of the availability zone they request.

    Nova-api does not show which other rules nova-scheduler enforces, so that
    only zones are checked. Nothing is changed.
    """

    _epilog = command.epilog(exit_status.AUDIT)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        cli.add_servers(parser, '<zone>', '<host>', '<project>')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        nova, servers = self.clients.nova, self.clients.servers
        aggregates = nova.all_aggregates()
        # The only one that no aggregate has: nova's for hosts in no zone.
        default_zone = min(servers.zones() - {
            aggregate.zone for aggregate in aggregates}, default='')
        zone_audit = auditor.Auditor(
            [rule for rule in rules.RULES if rule.name == audit.ZONE],
            _with_members(aggregates), zone=parsed_args.zone or '',
            default_zone=default_zone, complete=servers.with_move,
            can_unpin=servers.has(moving.UNPIN_VERSION))
        self._misplacements = list(zone_audit.run(servers.read(
            parsed_args.hosts,
            self.clients.project(parsed_args.project or ''))))
        # Nova-api leaves out the servers of a cell that is down.
        silent = api.silent_hosts(nova.services())
        if parsed_args.hosts:
            silent &= frozenset(parsed_args.hosts)
        troubles = problems.of_cells(
            api.cells_of(silent), 'their servers are not audited')
        if not silent:
            members = [aggregate.hosts for aggregate in aggregates]
            troubles = lookup.unknown_names(
                parsed_args.zone or '', zone_audit.zones, parsed_args.hosts,
                zone_audit.totals, lambda: nova.hosts().union(*members))
        cli.tell([auditor.summary(zone_audit.totals), LIMITS,
                  *map(str, troubles)])
        self.below = auditor.steps(self._misplacements)
        self.status = zone_audit.totals.status(troubles)
        return auditor.FIELDS, list(map(auditor.row, self._misplacements))

    def in_table(self, rows: Any) -> command.Table:
        cells = {misplacement.server.uuid: auditor.cells(misplacement)
                 for misplacement in self._misplacements}
        return auditor.COLUMNS, [cells[uuid] for uuid, *_others in rows]


def _with_members(aggregates: abc.Iterable[api.ListedAggregate]
                  ) -> keyed_aggregates.Aggregates:
    """Convert aggregates; since when a host is a member is not known."""
    members: dict[str, dict[str, keyed_aggregates.Since]] = {}
    for aggregate in aggregates:
        for host in aggregate.hosts:
            members.setdefault(host, {})[aggregate.key] = None
    return keyed_aggregates.Aggregates(
        {aggregate.key: aggregate.name for aggregate in aggregates},
        {aggregate.key: {constraints.ZONE: aggregate.zone}
         for aggregate in aggregates if aggregate.zone}, members)
