# SPDX-License-Identifier: Apache-2.0
"""History entries of full syncs, for agent and command."""

from collections.abc import Callable
import socket
import time

from nova_aggregate_mirror.console import exit_status
from nova_aggregate_mirror.console import sync_result
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import history
from nova_aggregate_mirror.reconcile import full_sync


# Placement, nova or the journal could not be read.
_NOT_COMPARED = (exit_status.NOT_READ, exit_status.COULD_NOT_RUN)


def command(name: str, request: full_sync.Request) -> str:
    """Return the request as a command line."""
    words = [name]
    if request.max_removed_share is not None:
        words.append('--prune')
    if request.max_removed_share == full_sync.UNLIMITED:
        words.append('--force')
    words += ['--aggregate ' + uuid for uuid in sorted(request.aggregates)]
    words += ['--host ' + host for host in sorted(request.hosts)]
    return ' '.join(words)


def entry(request: full_sync.Request, name: str, seconds: float,
          result: sync_result.Result | exceptions.MirrorError,
          status: int = 0, now: Callable[[], float] = time.time
          ) -> history.Entry:
    """Return the history entry of a sync that has just finished.

    :param name: of the command
    :param result: of the sync, or the error that prevented a result
    :param status: exit status of an interruption; 0 without any
    """
    name = command(name, request)
    ended = now()
    host = socket.gethostname()
    if isinstance(result, exceptions.MirrorError):
        return history.Entry(
            name, host, ended - seconds, ended, seconds, failed=1,
            status=exit_status.of(result), reason=str(result),
            compared=False)
    faults = result.faults()
    return history.Entry(
        name, host, ended - seconds, ended, seconds,
        added=len(result.added), removed=len(result.removed),
        stale=len(result.left), failed=result.fault_count,
        status=status or result.status(), reason=faults[0] if faults else '',
        compared=not (request.hosts or request.aggregates or status
                      or result.status() in _NOT_COMPARED),
        removals='\n'.join(
            'host %s (provider %s): aggregate %s (%s)' % (
                row['host'] or '-', row['provider'],
                row['aggregate'] or 'deleted', row['aggregate_uuid'])
            for row in result.removed))


def note(past: history.History, request: full_sync.Request,
         name: str, seconds: float,
         result: sync_result.Result | exceptions.MirrorError,
         status: int = 0) -> None:
    """Write a sync to the history, unless it was a dry run.

    :raises JournalUnavailable: which does not make the sync a failure
    """
    if request.write:
        past.note(entry(request, name, seconds, result, status))
