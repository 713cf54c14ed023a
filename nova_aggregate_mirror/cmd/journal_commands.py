# SPDX-License-Identifier: Apache-2.0
"""Commands for the journal alone: its tables, its rows and its nova."""

import argparse
import collections
from collections import abc
import sys
import time
from typing import Any

from oslo_config import cfg

from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror import commands
from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror import dates
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import nova_identity
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import terminal_tables

COLUMNS = ('id', 'host', 'state', 'detail', 'age', 'attempts', 'last_error')


def db_sync(conf: cfg.ConfigOpts) -> int:
    """Create or upgrade the journal's tables."""
    cli.tell(['The journal\'s tables are at version %s.'
              % existing.migrate(conf).version], sys.stdout)
    return exit_status.OK


def show(conf: cfg.ConfigOpts, now: abc.Callable[[], float] = time.time
         ) -> int:
    """List the operations in the journal, oldest first."""
    rows = program.journal().rows.all()
    name = existing.display_url(conf)
    cells = []
    for row in rows:
        age = '%d s' % max(0, now() - row.created_at)
        cells.append((row.id, row.dirty.host, *store.state(row), age,
                      row.attempts, row.last_error))
    if conf.command.format != 'table':
        cli.show(conf.command.format, [_document(row) for row in rows],
                 COLUMNS, cells)
    elif not rows:
        cli.tell(['The journal %s is empty: no operation is pending.' % name],
                 sys.stdout)
    else:
        cli.tell(['Journal: %s' % name], sys.stdout)
        in_table = [((host, identifier), *others) for
                    identifier, host, _state, *others, _error in cells]
        print(terminal_tables.render(
            ('host, id', 'detail', 'age', 'attempts'), in_table))
        # Each error once, with its hosts.
        hosts = collections.defaultdict[str, set[str]](set)
        for row in rows:
            if row.last_error:
                hosts[row.last_error].add(row.dirty.host)
        lines = ['%s: %s' % (plurals.some(names), error)
                 for error, names in hosts.items()]
        cli.tell(lines, sys.stdout)
    return exit_status.OK


def _document(row: journal.Row) -> dict[str, Any]:
    state, detail = store.state(row)
    return {
        'id': row.id, 'host': row.dirty.host, 'nodes': sorted(row.dirty.nodes),
        'request_id': row.dirty.request_id or None,
        'state': state, 'detail': detail,
        'created_at': dates.iso(row.created_at),
        'mirrored_at': row.mirrored_at and dates.iso(row.mirrored_at),
        'attempts': row.attempts, 'last_error': row.last_error or None}


def add_forget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('id', nargs='+', help='IDs of the rows')
    parser.add_argument('--force', action='store_true',
                        help='also delete rows whose operations may still run')


def forget(conf: cfg.ConfigOpts) -> int:
    """Delete rows from the journal although they are not mirrored.

    Their hosts are mirrored by the next full sync. A row whose operation may
    still run is kept unless --force is given; the agent closes it.
    """
    ids, journal_rows = conf.command.id, program.journal().rows
    rows = [row for row in journal_rows.all() if row.id in ids]
    running = [row for row in rows if row.running and not conf.command.force]
    closed = journal_rows.close(row.id for row in rows if row not in running)
    cli.tell(['%s forgotten' % plurals.count(closed, 'row')], sys.stdout)
    cli.tell(
        'Row %s was kept: its operation may still run. The agent closes it '
        'once its host is mirrored and [aggregate_mirror] max_call_age has '
        'passed; --force deletes it now' % row.id for row in running)
    unknown = ', '.join(sorted(set(ids) - {row.id for row in rows}))
    if unknown:
        cli.tell(['The journal has no row %s; see "%s"' % (
            unknown, commands.LIST)])
    if running:
        return exit_status.REFUSED
    return exit_status.COULD_NOT_RUN if unknown else exit_status.OK


def add_bind(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--force', action='store_true',
                        help='also bind a journal with rows, whose hosts are '
                             'mirrored as this nova has them')


def bind(conf: cfg.ConfigOpts) -> int:
    """Bind the journal to this nova, with its rows and its ledger.

    Agents bind a journal by themselves, and recognize their nova by each cell
    and by each aggregate that the journal has. This is for a nova that has
    none of them any more. Do not run it while another nova uses the journal:
    what only that nova has would be removed from placement as deleted.
    """
    program.check_configuration()
    if existing.is_missing(conf):
        print('There is no journal yet. The first agent binds it.')
        return exit_status.OK
    stored, nova = program.journal(), program.source()
    mappings = nova.cell_mappings()
    if not mappings:
        raise exceptions.InvalidConfiguration(
            'nova has no cell but cell0, which every nova has')
    try:
        nova_identity.check(
            stored.database, nova.cell_mappings, nova.aggregates)
    except exceptions.WrongNova:
        hosts = stored.rows.hosts()
        if hosts and not conf.command.force:
            cli.tell(['The journal has rows of %s. If these are hosts of this '
                      'nova, bind it with --force' % plurals.some(hosts)])
            return exit_status.REFUSED
    binding.replace(stored.database, mappings)
    cells = ', '.join(sorted(mappings.values()))
    cli.tell(['The journal belongs to this nova, with the cells %s' % cells],
             sys.stdout)
    return exit_status.OK
