# SPDX-License-Identifier: Apache-2.0
"""``nova-aggregate-mirror-manage``: syncs, the report and the journal."""

import argparse
from collections.abc import Sequence
import inspect
import sys
from typing import TypeAlias

from nova.conf import CONF
from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror.cmd import audit_servers
from nova_aggregate_mirror.cmd import build
from nova_aggregate_mirror.cmd import explain
from nova_aggregate_mirror.cmd import explain_arguments
from nova_aggregate_mirror.cmd import journal_rows
from nova_aggregate_mirror.cmd import log
from nova_aggregate_mirror.cmd import manuals
from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror.cmd import report
from nova_aggregate_mirror.cmd import sync_aggregates
from nova_aggregate_mirror.cmd import wait
import nova_aggregate_mirror.conf
from nova_aggregate_mirror.console import formats
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import migration
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.placement import client

PROGRAM = 'nova-aggregate-mirror-manage'

Subparsers: TypeAlias = (
    'argparse._SubParsersAction[argparse.ArgumentParser]')

# The commands print their own results and errors: oslo.db would add a
# traceback, keystoneauth a line.
QUIET = ['nova=WARNING', 'nova_aggregate_mirror=WARNING', 'alembic=WARNING',
         'oslo_db=CRITICAL', 'oslo_service=WARNING', 'keystoneauth=ERROR',
         # Neutronclient warns that it is deprecated; nova uses it.
         'neutronclient=ERROR', 'stevedore=ERROR']


def placement_sync_aggregates() -> int:
    """Make placement's aggregates equal to nova's host aggregates."""
    build.check_configuration()
    source = build.source()
    placement = client.Client(CONF)
    placement.check_credentials()
    asked = CONF.command
    kept = store.Journal(CONF, database=(
        engine.existing(CONF) if asked.dry_run else None))
    binding.Binding(kept.database, source).check()
    wanted, advice = sync_aggregates.choose(
        asked, CONF.aggregate_mirror, kept.history)
    return sync_aggregates.run(
        lambda stopping, display: build.mirror(
            kept, source, placement, asked.workers, stopping=stopping,
            display=display),
        kept, wanted, asked.format, asked.quiet, asked.verbose, advice=advice)


def placement_wait() -> int:
    """Wait until placement has hosts in all their aggregates."""
    build.check_configuration()
    placement = client.Client(CONF)
    placement.check_credentials()
    return wait.run(build.source(), placement, CONF.command)


def placement_audit_servers() -> int:
    """List servers whose host contradicts what was requested for them."""
    build.check_configuration()
    return audit_servers.run(
        CONF, store.Journal(CONF, engine.existing(CONF)).history if _exists()
        else None)


def show_report() -> int:
    """Write an HTML page with the differences between nova and placement."""
    build.check_configuration()
    return report.run(CONF, build.source())


def scheduling_explain() -> int:
    """Explain which hosts nova-scheduler can choose for a server, and why."""
    build.check_configuration()
    return explain.run(
        CONF, build.source(),
        store.Journal(CONF, engine.existing(CONF)).rows if _exists()
        else None)


def db_sync() -> int:
    """Create or upgrade the journal's tables."""
    database = engine.Database(CONF)
    database.migrate()
    print('The journal\'s tables are at version %s.'
          % database.schema().version)
    return 0


def db_version() -> int:
    """Print the version of the journal's tables."""
    schema = migration.Schema()
    if _exists():
        schema = engine.Database(CONF).schema()
    shown = {'version': schema.version, 'needed': migration.HEAD}
    if CONF.command.format == 'table':
        print('%s (this release needs %s)' % (
            schema.version or schema, migration.HEAD))
    else:
        formats.show(CONF.command.format, shown, tuple(shown),
                     [tuple(shown.values())])
    return 0


def journal_list() -> int:
    """List the operations in the journal, oldest first."""
    return journal_rows.show(
        _existing_journal().rows, CONF.command.format, engine.displayed(CONF))


def journal_retry() -> int:
    """Make the agent retry failed rows immediately."""
    return journal_rows.retry(_existing_journal().rows, CONF.command.id)


def journal_forget() -> int:
    """Delete rows from the journal although they are not mirrored.

    Their hosts are mirrored by the next full sync. A row whose operation may
    still run is kept unless --force is given; the agent closes it. Exit
    status: 1 if there is no row with a given ID, 2 if a row was kept.
    """
    return journal_rows.forget(
        _existing_journal().rows, CONF.command.id, CONF.command.force)


def _exists() -> bool:
    """Check whether the journal exists; an SQLite file may not exist yet.

    :raises InvalidConfiguration: when it does not exist, and the configuration
        is not that of a nova-api: nova-api may use another journal
    """
    file = engine.sqlite_file(CONF)
    if file and not file.exists():
        build.check_configuration()
        return False
    return True


def _existing_journal() -> store.Journal:
    """Open the journal without creating or migrating it; see ``_exists``."""
    _exists()
    return store.Journal(CONF, engine.existing(CONF))


def add_commands(subparsers: Subparsers) -> None:
    """Add every command with its arguments."""
    placement = subparsers.add_parser(
        'placement', help='Commands for placement').add_subparsers(
            metavar='COMMAND', required=True)
    sync = placement.add_parser(
        'sync_aggregates', help=placement_sync_aggregates.__doc__,
        description=sync_aggregates.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    sync_aggregates.add_arguments(sync)
    sync.set_defaults(run=placement_sync_aggregates)
    waiting = placement.add_parser(
        'wait', help=placement_wait.__doc__, description=wait.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    wait.add_arguments(waiting)
    waiting.set_defaults(run=placement_wait)
    audited = placement.add_parser(
        'audit_servers', help=placement_audit_servers.__doc__,
        description=audit_servers.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    audit_servers.add_arguments(audited)
    audited.set_defaults(run=placement_audit_servers)
    shown = subparsers.add_parser(
        'report', help=show_report.__doc__, description=report.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    report.add_arguments(shown)
    shown.set_defaults(run=show_report)
    scheduling = subparsers.add_parser(
        'scheduling', help='Commands for nova-scheduler').add_subparsers(
            metavar='COMMAND', required=True)
    explained = scheduling.add_parser(
        'explain', help=scheduling_explain.__doc__,
        description=explain.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    explain_arguments.add_arguments(explained)
    explained.set_defaults(run=scheduling_explain)
    tables = subparsers.add_parser(
        'db', help='Commands for the journal\'s database').add_subparsers(
            metavar='COMMAND', required=True)
    for name, run in (('sync', db_sync), ('version', db_version)):
        parser = tables.add_parser(
            name, help=run.__doc__, description=run.__doc__)
        parser.set_defaults(run=run)
    formats.add_argument(parser)
    _journal_commands(subparsers.add_parser(
        'journal', help='Commands for the rows of the journal').add_subparsers(
            metavar='COMMAND', required=True))


def _journal_commands(subparsers: Subparsers) -> None:
    parsers = {}
    for name, run in (('list', journal_list), ('retry', journal_retry),
                      ('forget', journal_forget)):
        manual = inspect.getdoc(run) or ''
        parsers[name] = subparsers.add_parser(
            name, help=manual.partition('\n')[0], description=manual)
        parsers[name].set_defaults(run=run)
    formats.add_argument(parsers['list'])
    parsers['retry'].add_argument(
        'id', nargs='*', help='IDs of the rows; all rows by default')
    parsers['forget'].add_argument(
        'id', nargs='+', help='IDs of the rows')
    parsers['forget'].add_argument(
        '--force', action='store_true',
        help='also delete rows whose operations may still run')


def _configure(argv: Sequence[str]) -> None:
    nova_aggregate_mirror.conf.register_opts(CONF)
    CONF.register_cli_opt(cfg.SubCommandOpt(
        'command', title='Commands', handler=add_commands))
    build.read_configuration(argv, PROGRAM, manuals.MANAGE)
    if not CONF.debug:
        logging.set_defaults(
            default_log_levels=logging.get_default_log_levels() + QUIET)
    log.to_stderr(CONF)
    logging.setup(CONF, 'nova')
    log.escape_controls(CONF)
    nova_aggregate_mirror.conf.check(CONF)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status, see ``program.run``."""
    def command() -> int:
        _configure(sys.argv[1:] if argv is None else argv)
        with program.printing():
            status: int = CONF.command.run()
        return status

    return program.run(PROGRAM, command)
