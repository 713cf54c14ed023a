# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror sync``: the repair of drift."""

import argparse
from typing import Any

from nova_aggregate_mirror import conf
from nova_aggregate_mirror.console import arguments
from nova_aggregate_mirror.console import formats
from nova_aggregate_mirror.console import sync_result
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.osc import command


class Sync(command.Lister):
    """Make placement's aggregates equal to nova's host aggregates.

    Missing associations are added, and with --prune stale associations are
    removed. Associations that are not nova's are never changed: aggregates
    that are no host aggregates, and providers that are no compute nodes.
    """

    _epilog = command.epilog(exit_status.SYNC)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        arguments.add_scope(parser, '<aggregate>', '<host>',
                            'name, UUID or ID')
        parser.add_argument('--dry-run', action='store_true',
                            help='Only list the changes')
        parser.add_argument(
            '--prune', action='store_true',
            help='Also remove associations that nova does not have; not those '
                 'of deleted aggregates, which nova-api no longer lists')
        parser.add_argument(
            '--force', action='store_true',
            help='With --prune: remove even more than %d %%%% of the '
                 'associations, and even if nova has no compute node in any '
                 'aggregate' % (100 * conf.MAX_REMOVED_SHARE))
        arguments.add_foreign(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        parsed_args.aggregates = self.clients.aggregates(
            parsed_args.aggregates)
        self._result = self.sync(arguments.request(
            parsed_args, parsed_args.prune, conf.MAX_REMOVED_SHARE))
        command.tell([
            *sync_result.summary(self._result, never=sync_result.UNKNOWN),
            *self._result.lines()])
        rows = sync_result.rows(self._result)
        if parsed_args.dry_run:
            self.below = sync_result.effect(row[0] for row in rows)
        return sync_result.COLUMNS, rows

    def in_table(self, columns: Any, rows: Any) -> command.Table:
        return sync_result.in_table(rows)

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Any, data: Any) -> int:
        """Print the rows; JSON and YAML are a document with everything."""
        if parsed_args.formatter not in formats.DOCUMENTS:
            return super().produce_output(parsed_args, column_names, data)
        print(formats.document(
            parsed_args.formatter, sync_result.document(self._result)), end='')
        return 0
