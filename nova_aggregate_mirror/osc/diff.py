# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror diff``: the drift."""

import argparse
import shlex
from typing import Any

from nova_aggregate_mirror import conf
from nova_aggregate_mirror.console import arguments
from nova_aggregate_mirror.console import sync_result
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.osc import command
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync


class Diff(command.Lister):
    """List the associations that are missing or stale in placement.

    Providers that differ are read again, and nova after that, as in a sync.
    Nothing is changed.
    """

    _epilog = command.epilog(exit_status.COMPARISON)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        arguments.add_scope(parser, '<aggregate>', '<host>',
                            'name, UUID or ID')
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
        rows = sync_result.rows(result, associations.DRIFT)
        if result.select(sync_result.State.MISSING) or rows and not refused:
            # The other rows need no option; a refusal has its own step.
            pruning = ['--prune'] if not refused and result.select(
                sync_result.State.STALE) else []
            summary += '\nTo change placement, run "%s".' % _sync(
                parsed_args, *pruning)
        listing = _sync(parsed_args, '--prune', '--dry-run', '-f', 'json')
        command.tell(summary.splitlines() + result.lines('"%s"' % listing))
        self.below = sync_result.effect(row[0] for row in rows)
        return sync_result.COLUMNS, rows

    def in_table(self, columns: Any, rows: Any) -> command.Table:
        return sync_result.in_table(rows)


def _sync(parsed_args: argparse.Namespace, *options: str) -> str:
    """Return a command that syncs what was compared."""
    words = ['openstack aggregate mirror sync', *options]
    words += ['--aggregate ' + shlex.quote(name)
              for name in parsed_args.aggregates]
    words += ['--host ' + shlex.quote(host) for host in parsed_args.hosts]
    return ' '.join(words)
