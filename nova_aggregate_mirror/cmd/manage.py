# SPDX-License-Identifier: Apache-2.0
"""``nova-aggregate-mirror-manage``: syncs, the report and the journal."""

import argparse
from collections import abc
import dataclasses
import inspect
import signal
import sys
from typing import Any

from nova.conf import CONF
from oslo_config import cfg

from nova_aggregate_mirror.cmd import audit_servers
from nova_aggregate_mirror.cmd import explain
from nova_aggregate_mirror.cmd import journal_commands
from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror.cmd import report
from nova_aggregate_mirror.cmd import sync_aggregates
from nova_aggregate_mirror.cmd import wait_hosts
from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import option_values

PROGRAM = 'nova-aggregate-mirror-manage'
DESCRIPTION = ('Mirror host aggregates to placement. "COMMAND --help" has the '
               'arguments, exit statuses and an example of a command.')
# Commands print their errors; oslo.db and nova.context add tracebacks.
QUIET = ['nova=WARNING', 'nova_aggregate_mirror=WARNING', 'alembic=WARNING',
         'nova_aggregate_mirror.option_values=ERROR',
         'nova.context=CRITICAL', 'nova.scheduler.host_manager=ERROR',
         'oslo_db=CRITICAL', 'oslo_service=WARNING', 'keystoneauth=ERROR',
         # Neutronclient warns that it is deprecated; nova uses it.
         'neutronclient=ERROR', 'stevedore=ERROR']


@dataclasses.dataclass(frozen=True)
class Command:
    words: str
    """Its name, after the name of its group if it has one."""
    run: abc.Callable[[cfg.ConfigOpts], int]
    example: str = ''
    """Arguments of an example."""
    add_arguments: abc.Callable[[argparse.ArgumentParser], None] = (
        lambda parser: None)
    statuses: abc.Mapping[int, str] = dataclasses.field(default_factory=dict)
    """What its exit statuses mean; empty if only 0 is no failure."""

    @property
    def summary(self) -> str:
        return self.manual.partition('\n')[0]

    @property
    def manual(self) -> str:
        """Its help: the docstring of its function or, for ``run``, module."""
        documented: object = self.run
        if self.run.__name__ == 'run':
            documented = sys.modules[self.run.__module__]
        return inspect.getdoc(documented) or ''


COMMANDS = (
    Command(sync_aggregates.NAME, sync_aggregates.run, '--dry-run',
            sync_aggregates.add_arguments, exit_status.SYNC),
    Command('placement wait', wait_hosts.run, '--host cmp-1',
            wait_hosts.add_arguments, exit_status.COMPARISON),
    Command('placement audit_servers', audit_servers.run, '--zone az-1',
            audit_servers.add_arguments, exit_status.AUDIT),
    Command('report', report.run, '--html /var/lib/nova/report.html',
            report.add_arguments, exit_status.COMPARISON),
    Command('scheduling explain', explain.run, '--flavor m1.large',
            explain.add_arguments, exit_status.EXPLANATION),
    Command('db sync', journal_commands.db_sync),
    Command('journal list', journal_commands.show, '--format json',
            cli.add_format),
    Command('journal forget', journal_commands.forget,
            '1d9b1dca-0b0a-4d8a-8b5f-2a4e9a3c9a55',
            journal_commands.add_forget, exit_status.JOURNAL),
    Command('journal bind', journal_commands.bind, '',
            journal_commands.add_bind, exit_status.JOURNAL))


def add_commands(subparsers: Any) -> None:
    """Add the commands, in their groups."""
    groups = {'': subparsers}
    for command in COMMANDS:
        group, _space, name = command.words.rpartition(' ')
        if group not in groups:
            groups[group] = subparsers.add_parser(group).add_subparsers(
                metavar='COMMAND', required=True)
        parser = groups[group].add_parser(
            name, help=command.summary,
            description=command.manual, epilog=_epilog(command),
            formatter_class=argparse.RawDescriptionHelpFormatter)
        command.add_arguments(parser)
        parser.set_defaults(run=command.run)


def _epilog(command: Command) -> str:
    lines = ['example:', ('  %(prog)s ' + command.example).rstrip()]
    if command.statuses:
        lines += ['', 'exit status, the lowest that applies:']
    lines += ['%5d  %s' % status for status in command.statuses.items()]
    return '\n'.join(lines)


def _run() -> int:
    if program.show_help(PROGRAM, DESCRIPTION, {
            command.words: command.summary for command in COMMANDS}):
        return exit_status.OK
    # Raises SystemExit, so that no temporary file is left.
    signal.signal(signal.SIGTERM, lambda *_signal: sys.exit(
        exit_status.TERMINATED))
    CONF.register_cli_opt(cfg.SubCommandOpt(
        'command', title='Commands', handler=add_commands))
    program.read_configuration(PROGRAM, DESCRIPTION)
    # Oslo.log's default is the standard output, which has the results.
    if not (CONF.log_file or CONF.log_dir or CONF.use_journal):
        CONF.set_default('use_stderr', True)
    program.set_up_log(CONF, [] if CONF.debug else QUIET)
    option_values.check(CONF)
    try:
        return int(CONF.command.run(CONF))
    finally:
        # In any case: the option that was misspelt has its default.
        cli.tell(option_values.unknown_names(CONF))


def main() -> int:
    """Run a command; return the exit status, see ``program.run``."""
    return program.run(PROGRAM, _run)
