# SPDX-License-Identifier: Apache-2.0
"""Base class of the commands: clients, errors and exit status."""

import argparse
from collections import abc
import dataclasses
import sys
from typing import Any
from typing import cast

from osc_lib.command import command

from nova_aggregate_mirror.audit import api_servers
from nova_aggregate_mirror import causes
from nova_aggregate_mirror import conf
from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror.console import lookup
from nova_aggregate_mirror.console import syncs
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.http import transport
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import connection
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror import printable
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.source import api
from nova_aggregate_mirror.source import keyed_aggregates
from nova_aggregate_mirror import terminal_tables

Table = tuple[tuple[str, ...], list[tuple[Any, ...]]]
# Hosts converged together: nova-api takes as long to list some nodes as all.
BATCH = 1000
TIMEOUT = 120.0
"""Seconds per request. Nova-api waits up to 60 seconds for each cell."""
PLACEMENT = causes.openstack_client(
    'placement', 'give your user the role admin, or another that may do this')
OVERRIDE = ('placement_endpoint_override of the openstack client, in '
            'clouds.yaml')


class Clients:
    """Clients for the cloud, region and account of an SDK connection."""

    def __init__(self, sdk: Any) -> None:
        config = sdk.config
        self._sdk = sdk
        self.placement = client.Client(placement_access(sdk))
        nova = api.Api(
            sdk.session, TIMEOUT, config.get_region_name('compute'),
            config.get_interface('compute') or 'public',
            config.get_endpoint('compute'))
        self.nova = api.ApiSource(nova)
        self.servers = api_servers.ApiServers(nova)

    def project(self, name: str) -> str:
        keystone = causes.openstack_client(resources.PROJECT.service)
        return lookup.resource(lambda: self._sdk.identity, lambda: keystone,
                               resources.PROJECT, name, TIMEOUT)

    def aggregates(self, names: abc.Collection[str]) -> frozenset[str]:
        """Return the UUIDs of aggregates given by name, UUID or ID.

        :raises UnknownName: no or several aggregates match, or it has no UUID
        """
        aggregates = self.nova.all_aggregates() if names else []
        return frozenset(_uuid(name, aggregates) for name in names)


def placement_access(sdk: Any, timeout: float = TIMEOUT) -> connection.Access:
    """Return the access to placement with clouds.yaml and the catalog.

    :param sdk: the connection; its session is bounded by deadlines from now
        on, for all its users
    """
    transport.bound(sdk.session)
    party = PLACEMENT
    if sdk.config.get_endpoint('placement'):
        # The catalog, and what selects from it, has no effect.
        party = dataclasses.replace(
            party, address=OVERRIDE, selection=OVERRIDE)
    return connection.Access(lambda: sdk, lambda: party, lambda: timeout)


def _uuid(name: str, aggregates: abc.Iterable[api.ListedAggregate]) -> str:
    """Return the UUID of the only aggregate with a name, UUID or ID."""
    matching = {
        aggregate.key: aggregate for aggregate in aggregates
        if name in (aggregate.name, aggregate.uuid, str(aggregate.id))}
    key = lookup.single('nova', 'aggregate', name, sorted(matching))
    if not keyed_aggregates.has_uuid(key):
        invalid = matching[key]
        raise exceptions.UnknownName(invalid.problem, step=invalid.step)
    return key


class Lister(command.Lister):
    """Command that prints a list in any format, and has an exit status."""

    status = exit_status.OK
    below: abc.Sequence[str] = ()
    """Lines below a table."""
    in_table: abc.Callable[[Any], Table] | None = None
    """Returns the columns and rows for a terminal, where a cell may be a tuple
    of lines; without it, a table has all columns."""
    # Cliff annotates it by its default, None.
    _epilog: str = ''  # type: ignore[assignment]

    def run(self, parsed_args: argparse.Namespace) -> int:
        return run(self, parsed_args, super().run)

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Any, data: Any) -> int:
        """Print the rows; JSON and YAML have escapes of their own."""
        if parsed_args.formatter == 'table' and not (
                parsed_args.columns or parsed_args.max_width):
            # A table without rows would be an empty line.
            if not data:
                return 0
            # As a formatter: cliff sorts the rows before it calls that.
            self.formatter = cast(Any, self)
        elif parsed_args.formatter not in cli.DOCUMENTS:
            data = [[printable.line(cell) if isinstance(cell, str) else cell
                     for cell in row] for row in data]
        status = super().produce_output(parsed_args, column_names, data)
        if parsed_args.formatter == 'table':
            cli.tell(self.below, self.app.stdout)
        return status

    def emit_list(self, columns: Any, rows: Any, stdout: Any, *_more: Any
                  ) -> None:
        """Print a table that fits the terminal, as a formatter of cliff."""
        table = self.in_table(rows) if self.in_table else (columns, rows)
        print(terminal_tables.render(*table), file=stdout)

    @property
    def clients(self) -> Clients:
        return clients_of(self.app)

    def sync(self, request: full_sync.Request) -> result.Result:
        """Run a sync without a journal, and set the exit status."""
        # 0 with --quiet, 1 by default, more with --verbose.
        level = self.app.options.verbose_level
        quiet = level == 0 or level == 1 and not sys.stderr.isatty()
        sync = syncs.run(
            lambda stopping, display: reconciler.Reconciler(
                journal.Ledger(), self.clients.nova, self.clients.placement,
                for_each=workers.in_threads(conf.SYNC_WORKERS, stopping),
                display=display, batch=BATCH), (), request, quiet)
        self.status = sync.status()
        return sync

    def compare(self, foreign: bool = False) -> result.Result:
        """Return what a sync would do; print what could not be read."""
        sync = self.sync(full_sync.Request(
            full_sync.UNLIMITED, write=False, foreign=foreign))
        self.status = sync.interruption
        if sync.not_compared:
            raise sync.not_compared
        cli.tell([*syncs.foreign(sync, syncs.UNKNOWN),
                  *sync.lines('"openstack aggregate mirror sync --dry-run '
                              '-f json"')])
        statuses = {problem.status for problem in sync.problems}
        if exit_status.NOT_READ in statuses:
            self.status = self.status or exit_status.NOT_READ
        if sync.nova.cells_down:
            self.status = self.status or exit_status.NO_NODE
        return sync


def run(command: Any, parsed_args: argparse.Namespace,
        action: abc.Callable[[argparse.Namespace], object]) -> int:
    """Run the action of a command; return its exit status."""
    try:
        # An empty argument is a variable of a script that is not set.
        for name, value in vars(parsed_args).items():
            if '' in (value if isinstance(value, list) else [value]):
                raise exceptions.InvalidConfiguration(
                    'the argument %s has no value' % name.rstrip('s'))
        action(parsed_args)
    except exceptions.MirrorError as exc:
        cli.tell([str(exc)])
        # The status of an interruption, which was set before, stays.
        command.status = command.status or exit_status.of(exc)
    return int(command.status)


def epilog(statuses: abc.Mapping[int, str]) -> str:
    """Return the part of a manual about exit statuses."""
    # Nova-api shows no host mappings: no command finds that one is missing.
    meanings = {1: 'the client itself could not authenticate', **statuses}
    meanings.pop(exit_status.NOT_MAPPED, '')
    texts = ['%d %s' % status for status in sorted(meanings.items())]
    return 'Exit status, the lowest that applies: %s.' % '; '.join(texts)


def clients_of(app: Any) -> Clients:
    """Return the clients of the openstack client, which creates them once."""
    return cast(Clients, app.client_manager.aggregate_mirror)
