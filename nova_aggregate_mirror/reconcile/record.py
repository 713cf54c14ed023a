# SPDX-License-Identifier: Apache-2.0
"""History entries of full syncs, for agent and command."""

from collections.abc import Callable
import socket
import time

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.journal import history
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import result


def command(name: str, wanted: full_sync.Request) -> str:
    """Return the request as a command line."""
    words = [name]
    if wanted.max_removed_share is not None:
        words.append('--prune')
    if wanted.max_removed_share == full_sync.UNLIMITED:
        words.append('--force')
    words += ['--aggregate ' + one for one in sorted(wanted.aggregates)]
    words += ['--host ' + one for one in sorted(wanted.hosts)]
    return ' '.join(words)


def entry(name: str, seconds: float,
          became: result.Result | exceptions.MirrorError,
          status: int = 0, now: Callable[[], float] = time.time
          ) -> history.Entry:
    """Return the history entry of a sync that has just finished.

    :param became: its result, or the error that prevented a result
    :param status: exit status of an interruption; 0 without any
    """
    ended = now()
    host = socket.gethostname()
    if isinstance(became, exceptions.MirrorError):
        return history.Entry(
            name, host, ended - seconds, ended, seconds, failed=1,
            status=exit_status.of(became), reason=str(became))
    faults = became.faults()
    return history.Entry(
        name, host, ended - seconds, ended, seconds,
        added=len(became.added), removed=len(became.removed),
        stale=len(became.left), failed=became.fault_count,
        status=status or became.status(), reason=faults[0] if faults else '',
        removals='\n'.join(
            'host %s (provider %s): aggregate %s (%s)' % (
                row['host'] or '-', row['provider'],
                row['aggregate'] or 'deleted', row['aggregate_uuid'])
            for row in became.removed))


def note(past: history.History, wanted: full_sync.Request,
         name: str, seconds: float,
         became: result.Result | exceptions.MirrorError,
         status: int = 0) -> None:
    """Write a sync to the history, unless it was a dry run.

    :raises JournalUnavailable: which does not make the sync a failure
    """
    if wanted.write:
        past.note(entry(command(name, wanted), seconds, became, status))
