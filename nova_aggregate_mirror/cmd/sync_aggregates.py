# SPDX-License-Identifier: Apache-2.0
"""Make placement's aggregates equal to nova's host aggregates.

The hosts of operations in the journal are converged. For all other hosts,
missing associations are added, and associations that nova does not have are
removed, including those of deleted aggregates. Until one sync is in the
history, stale associations are only listed unless --prune is given. A failure
does not end the run: changes and failures are reported at the end.
Associations that are not nova's are never changed: aggregates that were never
host aggregates, and providers that are no compute nodes, unless their
aggregate was deleted.

Exit status, the lowest that applies:
    0  everything is mirrored
    2  placement, or a provider in it, could not be read
    3  a provider could not be updated
    4  a member host has no host mapping
    5  a member host has no compute node, or its cell did not answer
    6  a compute node has no resource provider yet
    7  --dry-run found something to add or to remove
    8  too many associations would have been removed, so none was; see --force
  130  interrupted by Ctrl-C; 143 by SIGTERM
  255  nova's database, the journal or the configuration could not be used
"""

import argparse
from collections.abc import Callable
import dataclasses
import sys
import time
from typing import Any

import prettytable

from nova_aggregate_mirror.console import arguments
from nova_aggregate_mirror.console import exit_status
from nova_aggregate_mirror.console import formats
from nova_aggregate_mirror.console import interruption
from nova_aggregate_mirror.console import progress
from nova_aggregate_mirror.console import sync_history
from nova_aggregate_mirror.console import sync_result
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import history
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror import printable
from nova_aggregate_mirror.reconcile import context
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import reconciler

Build = Callable[[Callable[[], bool], context.Progress],
                 reconciler.Reconciler]

NAME = 'placement sync_aggregates'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--dry-run', action='store_true',
        help='only list the changes; the exit status is 7 if there are any')
    parser.add_argument(
        '--aggregate', action='append', default=[], metavar='NAME_OR_UUID',
        dest='aggregates',
        help='only the associations with this aggregate; a deleted aggregate '
             'is given by its UUID; may be repeated')
    parser.add_argument(
        # Nova has an option named host.
        '--host', action='append', default=[], metavar='HOST', dest='hosts',
        help='only the compute nodes of this host; may be repeated')
    parser.add_argument(
        '--prune', action=argparse.BooleanOptionalAction, default=None,
        help='also remove associations that nova does not have, including '
             'those of deleted aggregates, or only add; the default is '
             '[aggregate_mirror] prune, and no removal until one sync is in '
             'the history')
    parser.add_argument(
        '--force', action='store_true',
        help='remove even more than [aggregate_mirror] max_removed_share '
             'allows, and even if nova reports no host in any aggregate')
    formats.add_argument(parser)
    parser.add_argument(
        '--workers', type=arguments.workers, metavar='N',
        help='number of concurrent placement requests, from 1 to 64; the '
             'default is [aggregate_mirror] sync_workers')
    how = parser.add_mutually_exclusive_group()
    how.add_argument('--quiet', action='store_true',
                     help='print no progress')
    how.add_argument('--verbose', action='store_true',
                     help='print progress as lines, also on a terminal')


def choose(asked: argparse.Namespace, options: Any,
           past: history.History
           ) -> tuple[full_sync.Request, sync_result.Advice]:
    """Return the request, and the advice that is printed with the result.

    :param options: options of the group ``[aggregate_mirror]``
    :param past: without a sync in this history nothing is removed by default,
        so that an operator first sees the removals
    """
    prune, advice = asked.prune, sync_result.Advice()
    if prune is None and options.prune:
        prune = any(entry.compared for entry in past.newest())
        if not prune:
            advice = dataclasses.replace(advice, stale=(
                'this is the first sync with this journal, check the list, '
                'then run the command with --prune'))
    return arguments.request(
        asked, bool(prune), options.max_removed_share), advice


def run(build: Build, journal: store.Journal,
        wanted: full_sync.Request, form: str = 'table', quiet: bool = True,
        verbose: bool = False,
        advice: sync_result.Advice = sync_result.Advice()) -> int:
    """Sync, print the result, and return the exit status.

    :param build: creates the reconciler, given a function that returns
        whether to stop, and the display of the progress
    :param form: format of the result, see ``formats``
    :param advice: advice that is printed with the result
    :raises MirrorError: when nova or the journal could not be read
    """
    stop, start = interruption.Interruption(), time.monotonic()

    def note(became: sync_result.Result | exceptions.MirrorError) -> None:
        try:
            sync_history.note(
                journal.history, wanted, NAME, time.monotonic() - start,
                became, stop.status)
        except exceptions.JournalUnavailable as exc:
            print('This sync is not recorded in the history: %s' % exc,
                  file=sys.stderr)

    try:
        with stop.watched(), progress.shown(quiet, verbose) as display:
            sync = full_sync.run(build(stop.stopping, display),
                                 journal.rows.all(), wanted)
    except exceptions.Stopped:
        print('Interrupted before anything was done', file=sys.stderr)
        return stop.status
    except (exceptions.JournalUnavailable, exceptions.UnknownName):
        raise
    except exceptions.NovaUnavailable as exc:
        note(exc)
        raise
    except exceptions.MirrorError as exc:
        print('Nothing could be compared: %s' % exc, file=sys.stderr)
        note(exc)
        return exit_status.NOT_READ
    shown = sync_result.Result(sync, wanted, advice)
    status = stop.status or shown.status()
    # The output may be a pipe that its reader has closed.
    note(shown)
    _print(shown, form, status)
    return status


def _print(shown: sync_result.Result, form: str, status: int) -> None:
    if form == 'table':
        _print_table(shown)
    else:
        formats.show(form, {**shown.document(), 'exit_status': status},
                     sync_result.COLUMNS, shown.rows())
    for line in shown.faults():
        print(printable.line(line), file=sys.stderr)
    if form == 'table':
        print(shown.summary())
    elif form in formats.LINES:
        print(shown.summary(), file=sys.stderr)


def _print_table(shown: sync_result.Result) -> None:
    """Print a line for each association; without any, print nothing."""
    table = prettytable.PrettyTable(sync_result.COLUMNS)
    table.align = 'l'
    for row in shown.rows():
        table.add_row([printable.line(cell) for cell in row])
    if table.rowcount:
        print(table)
