# SPDX-License-Identifier: Apache-2.0
"""Make placement's aggregates equal to nova's host aggregates.

The hosts of operations in the journal are converged. For all other hosts,
missing associations are added, and associations that nova does not have are
removed, including those of deleted aggregates. Until a full sync is in the
history, stale associations are only listed unless --prune is given. A failure
does not end the run: changes and failures are reported at the end.
Associations that are not nova's are never changed: aggregates that were never
host aggregates, and providers that are no compute nodes, unless their
aggregate was deleted.
"""

import argparse
import sys
import time

from oslo_config import cfg

from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror.console import syncs
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.journal import nova_identity
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.reconcile import sync_history
from nova_aggregate_mirror import terminal_tables

NAME = 'placement sync_aggregates'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('--dry-run', action='store_true',
        help='only list the changes; the exit status is 7 if there are any')
    cli.add_scope(parser, 'NAME_OR_UUID', 'HOST', 'a deleted one by its UUID')
    add('--prune', action=argparse.BooleanOptionalAction, default=None,
        help='also remove associations that nova does not have, including '
             'those of deleted aggregates, or only add; the default is '
             '[aggregate_mirror] prune, and no removal until a full sync is '
             'in the history')
    add('--force', action='store_true',
        help='remove even more than [aggregate_mirror] max_removed_share '
             'allows, and even if nova has no compute node in any aggregate')
    cli.add_foreign(parser)
    cli.add_format(parser)
    add('--quiet', action='store_true', help='print no progress')


def run(conf: cfg.ConfigOpts) -> int:
    """Sync, print the result, and return the exit status."""
    program.check_configuration()
    options = conf.command
    source, placement = program.source(), program.placement()
    journal, notices = _open_journal(conf)
    database = journal.database
    nova_identity.check(database, source.cell_mappings, source.aggregates)
    request, note = _request(conf, database)
    start = time.monotonic()
    sync = syncs.run(
        lambda stopping, display: program.mirror(
            journal, source, placement, stopping=stopping, display=display),
        journal.rows.all(), request, options.quiet)
    # Before the output, which may be a pipe that its reader has closed.
    try:
        sync_history.note(database, NAME, time.monotonic() - start, sync)
    except exceptions.JournalUnavailable as exc:
        notices.append('This sync is not recorded in the history: %s' % exc)
    is_table, rows = options.format == 'table', syncs.rows(sync)
    cli.tell(syncs.summary(sync, note), sys.stdout if is_table else sys.stderr)
    if not is_table:
        cli.show(options.format, syncs.document(sync), syncs.COLUMNS, rows)
    elif rows:
        print(terminal_tables.render(*syncs.in_table(rows)))
        if options.dry_run:
            cli.tell(syncs.effect(row[0] for row in rows), sys.stdout)
    cli.tell([*sync.lines(), *notices])
    return sync.status()


def _open_journal(conf: cfg.ConfigOpts) -> tuple[store.Journal, list[str]]:
    """Open the journal; a dry run can do without one that was never used.

    :returns: the journal, and lines about what a real sync would lack
    """
    if not conf.command.dry_run:
        return store.Journal(conf), []
    try:
        return store.Journal(conf, existing.open_existing(conf)), []
    except exceptions.JournalUnavailable as exc:
        if not existing.is_missing(conf):
            raise
        return store.Journal(conf, existing.open_empty(conf)), [
            'Without --dry-run, this cannot begin: %s' % exc]


def _request(conf: cfg.ConfigOpts, database: engine.Database
             ) -> tuple[full_sync.Request, str]:
    """Return the request, and a note about stale associations."""
    options, configuration = conf.command, conf.aggregate_mirror
    prune, note = options.prune, result.PRUNE
    if prune is None and configuration.prune:
        prune = any(entry.compared for entry in full_syncs.newest(database))
        if not prune:
            note = ('no full sync that mirrors is in the history of this '
                    'journal yet; check the list, then run the command with '
                    '--prune')
    return cli.request(
        options, bool(prune), configuration.max_removed_share), note
