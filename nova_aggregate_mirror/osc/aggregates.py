# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror``: list, show, diff, sync and wait.

Long because most commands display the result of the same comparison.
"""

import argparse
import collections
from collections import abc
import shlex
import sys
from typing import Any

from osc_lib.command import command as osc_command

from nova_aggregate_mirror import conf
from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror.console import syncs
from nova_aggregate_mirror.console import wait_run
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.osc import command
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.source import api

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
        cli.add_foreign(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        sync = self.compare(parsed_args.foreign)
        names = {**sync.nova.aggregates}
        unread = syncs.failed(sync, outcome.UNREAD)
        by_aggregate = collections.defaultdict(list)
        for association in syncs.complete(sync):
            by_aggregate[association.aggregate_uuid].append(association)
            # A foreign aggregate has no name, and a table no column of UUIDs.
            if association.state is State.FOREIGN_AGGREGATE and (
                    parsed_args.formatter != 'table'):
                names.setdefault(association.aggregate_uuid, '')
        rows = []
        for name, uuid in sorted((name, uuid) for uuid, name in names.items()):
            hosts = sum(uuid in uuids for uuids in sync.nova.members.values())
            in_nova = [association for association in by_aggregate[uuid]
                       if association.in_nova and association.provider]
            in_placement = [association for association in by_aggregate[uuid]
                            if association.in_placement and association.hosts]
            states = {association.state for association in by_aggregate[uuid]}
            if uuid in unread:
                states.add(State.UNKNOWN)
            rows.append((name, uuid, hosts, len(in_nova), len(in_placement),
                         state(states)))
        if not rows:
            cli.tell(['Nova has no aggregate'])
        self.below = syncs.effect(row[-1] for row in rows)
        return COLUMNS, rows

    def in_table(self, rows: Any) -> command.Table:
        name, _uuid, *others = COLUMNS
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
                for association in syncs.complete(sync)
                if association.aggregate_uuid == uuid]
        if not rows and uuid not in syncs.failed(sync, outcome.UNREAD):
            cli.tell(['Aggregate %s has no host in nova, and no provider '
                      'in placement' % parsed_args.aggregate])
        self.below = syncs.effect(row[-1] for row in rows)
        return ('Host', 'Provider', 'State'), rows


class Diff(command.Lister):
    """List the associations that are missing or stale in placement.

    Providers that differ are read again, and nova after that, as in a sync.
    Nothing is changed.
    """

    in_table = staticmethod(syncs.in_table)
    _epilog = command.epilog(exit_status.COMPARISON)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        cli.add_scope(parser, '<aggregate>', '<host>', 'name, UUID or ID')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        result = self.sync(full_sync.Request(
            conf.MAX_REMOVED_SHARE, write=False,
            hosts=frozenset(parsed_args.hosts),
            aggregates=self.clients.aggregates(parsed_args.aggregates)))
        summary, refused = result.summary(), result.refused
        if result.not_compared:
            # An empty list would mean that nothing differs.
            raise (exceptions.Stopped(summary) if summary
                   else result.not_compared)
        rows = syncs.rows(result, associations.DRIFT)
        if result.select(State.MISSING) or rows and not refused:
            # Stale rows need --prune; removals that are refused have a step.
            pruning = ['--prune'] if not refused and result.select(
                State.STALE) else []
            summary += '\nTo change placement, run "%s".' % _sync_command(
                parsed_args, *pruning)
        listing = '"%s"' % _sync_command(
            parsed_args, '--prune', '--dry-run', '-f', 'json')
        cli.tell(summary.splitlines() + result.lines(listing))
        self.below = syncs.effect(row[0] for row in rows)
        return syncs.COLUMNS, rows


def _sync_command(parsed_args: argparse.Namespace, *options: str) -> str:
    """Return a command that syncs what was compared."""
    words = ['openstack aggregate mirror sync', *options]
    words += ['--aggregate ' + shlex.quote(name)
              for name in parsed_args.aggregates]
    words += ['--host ' + shlex.quote(host) for host in parsed_args.hosts]
    return ' '.join(words)


class Sync(command.Lister):
    """Make placement's aggregates equal to nova's host aggregates.

    Missing associations are added, and with --prune stale associations are
    removed. Associations that are not nova's are never changed: aggregates
    that are no host aggregates, and providers that are no compute nodes.
    """

    in_table = staticmethod(syncs.in_table)
    _epilog = command.epilog(exit_status.SYNC)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        cli.add_scope(parser, '<aggregate>', '<host>', 'name, UUID or ID')
        add = parser.add_argument
        add('--dry-run', action='store_true', help='Only list the changes')
        add('--prune', action='store_true',
            help='Also remove associations that nova does not have; not those '
                 'of deleted aggregates, which nova-api no longer lists')
        add('--force', action='store_true',
            help='With --prune: remove even more than %d %%%% of the '
                 'associations, and even if nova has no compute node in any '
                 'aggregate' % (100 * conf.MAX_REMOVED_SHARE))
        cli.add_foreign(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        parsed_args.aggregates = self.clients.aggregates(
            parsed_args.aggregates)
        self._result = self.sync(cli.request(
            parsed_args, parsed_args.prune, conf.MAX_REMOVED_SHARE))
        cli.tell([*syncs.summary(self._result, never=syncs.UNKNOWN),
                  *self._result.lines()])
        rows = syncs.rows(self._result)
        if parsed_args.dry_run:
            self.below = syncs.effect(row[0] for row in rows)
        return syncs.COLUMNS, rows

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Any, data: Any) -> int:
        """Print the rows; JSON and YAML are a document with everything."""
        if parsed_args.formatter not in cli.DOCUMENTS:
            return super().produce_output(parsed_args, column_names, data)
        print(cli.document(
            parsed_args.formatter, syncs.document(self._result)), end='')
        return 0


class Wait(osc_command.Command):
    """Wait until placement has hosts in all their aggregates.

    Every compute node of the host must have a resource provider that is in
    each aggregate that nova has for the host. Add the host to its aggregates
    first. Nothing is changed without --enable.
    """

    status = exit_status.OK
    # Cliff annotates it by its default, None.
    _epilog: str = command.epilog(  # type: ignore[assignment]
        exit_status.WAIT)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'hosts', metavar='<host>', nargs='+', help='Host to wait for')
        wait_run.add_timeout(parser, '<seconds>')
        parser.add_argument(
            '--enable', action='store_true',
            help='Then enable the compute services of the hosts, unless '
                 'nova-compute disabled one itself (disabled_reason AUTO:)')
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        return command.run(self, parsed_args, super().run)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        clients = command.clients_of(self.app)
        self.status = wait_run.run(
            clients.nova, clients.placement, frozenset(parsed_args.hosts),
            parsed_args.timeout, 'openstack aggregate mirror sync --host')
        if parsed_args.enable and self.status == exit_status.OK:
            self.status = _enable(clients.nova, parsed_args.hosts)


def _enable(nova: api.ApiSource, hosts: abc.Iterable[str]) -> int:
    """Enable the compute services of hosts; return the exit status."""
    # Nova-api shows no ID of a service in a cell that is down.
    services = {service.host: service for service in nova.services()
                if service.id}
    statuses: set[int] = set()
    for host in sorted(set(hosts)):
        service = services.get(host)
        status, text = exit_status.OK, 'nova-compute is enabled'
        try:
            if service is None:
                status = exit_status.NO_NODE
                text = 'not enabled; nova-api does not show its nova-compute'
            # By nova-compute, such as its libvirt driver without libvirt.
            elif service.disabled_reason.startswith('AUTO:'):
                status = exit_status.REFUSED
                text = ('not enabled; nova-compute disabled it, and enables '
                        'it itself: %s' % service.disabled_reason)
            elif service.status != 'enabled':
                nova.enable(service)
        except exceptions.MirrorError as exc:
            status, text = exit_status.of(exc), 'not enabled: %s' % exc
        cli.tell(['Host %s: %s' % (host, text)],
                 sys.stderr if status else sys.stdout)
        statuses.add(status)
    return min(statuses - {exit_status.OK}, default=exit_status.OK)
