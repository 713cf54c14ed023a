# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror diff`` and ``sync``: what differs, and cure."""

import argparse
import sys

from nova_aggregate_mirror import conf
from nova_aggregate_mirror.osc import command
from nova_aggregate_mirror.reconcile import arguments
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import interruption
from nova_aggregate_mirror.reconcile import progress
from nova_aggregate_mirror.reconcile import result

COLUMNS = ('Host', 'Provider', 'Aggregate', 'Aggregate UUID')

ADVICE = result.Advice(
    nodeless='nova-api shows none; restart nova-compute on that host, or run '
             '"nova-manage cell_v2 discover_hosts" if the host has no mapping',
    refused='add --force; if not, look at nova\'s aggregates',
    all='--host tells of one host')

_STATUS = (
    'Exit status, the lowest that applies: 0 %s; 1 the client itself could '
    'not authenticate; 2 placement, or a provider in it, could not be read; '
    '%s5 nova-api shows no compute node of a member host, or its cell is '
    'down; 6 a compute node has no resource provider yet; %s; 255 nova-api '
    'could not be read, or has no such host or aggregate.')


def _add_scope(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--aggregate', metavar='<aggregate>', action='append', default=[],
        dest='aggregates',
        help='Only associations with this host aggregate (name, UUID or ID); '
             'may be repeated')
    parser.add_argument(
        '--host', metavar='<host>', action='append', default=[], dest='hosts',
        help='Only the compute nodes of this host; may be repeated')


class Diff(command.Lister):
    """List what is missing in placement, and what is stale.

    Providers that differ are read once more, and nova after that, as a sync
    does it. Nothing is changed.
    """

    _epilog = _STATUS % ('nothing differs', '', '7 something differs')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_scope(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        shown = _sync(self, parsed_args, full_sync.WHATEVER, write=False)
        self.tell(shown.faults())
        return ('Difference', *COLUMNS), [
            (difference, *row.values()) for difference, rows in (
                ('missing', shown.added), ('stale', shown.removed))
            for row in rows]


class Sync(command.Lister):
    """Make placement's aggregates equal to nova's host aggregates.

    What is missing is added, and with --prune what is stale is removed. What
    is not nova's is never touched: aggregates that are no host aggregates, and
    providers that are no compute nodes.
    """

    _epilog = _STATUS % (
        'everything is mirrored', '3 a provider could not be updated; ',
        '7 --dry-run found something to add or to remove; 8 so much would '
        'have been removed that nothing was, see --force; 130 interrupted, '
        '143 when by SIGTERM')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_scope(parser)
        parser.add_argument(
            '--dry-run', action='store_true',
            help='Only tell what would be done')
        parser.add_argument(
            '--prune', action='store_true',
            help='Also remove compute nodes from aggregates of which nova '
                 'says otherwise; not from deleted ones, which nova-api has '
                 'forgotten')
        parser.add_argument(
            '--force', action='store_true',
            help='With --prune: remove even more than %d %%%% of the '
                 'associations, or everything when nova says that no host is '
                 'in any aggregate' % (100 * conf.MAX_REMOVED_SHARE))
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        wanted = arguments.request(
            parsed_args, parsed_args.prune, conf.MAX_REMOVED_SHARE)
        shown = _sync(self, parsed_args, wanted.max_removed_share,
                      wanted.write)
        self.tell([*shown.faults(), *shown.summary().splitlines()])
        return ('Action', *COLUMNS), [tuple(row) for row in shown.rows()]


def _sync(lister: command.Lister, parsed_args: argparse.Namespace,
          share: float | None, write: bool) -> result.Result:
    """Sync as was asked for, and set the exit status."""
    request = full_sync.Request(
        share, write, frozenset(parsed_args.hosts),
        lister.clients.find(parsed_args.aggregates))
    stop = interruption.Interruption()
    verbosity = lister.app.options.verbose_level
    try:
        with stop.watched(), progress.shown(
                quiet=verbosity < 2 and not (
                    verbosity and sys.stderr.isatty()),
                lines=verbosity > 1) as display:
            sync = full_sync.run(lister.mirror(
                parsed_args, stop, display), request=request)
    finally:
        lister.status = stop.status
    if sync.not_compared:
        raise sync.not_compared
    shown = result.Result(sync, request, ADVICE)
    lister.status = stop.status or shown.status()
    return shown
