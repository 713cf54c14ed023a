# SPDX-License-Identifier: Apache-2.0
"""History entries of full syncs, for agent and command."""

import socket
import time

from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import result

State = associations.State
MOST = 500
"""Lines of a list in the report, and of the removals that an observing agent
notes; the commands list everything."""


def command(name: str, request: full_sync.Request) -> str:
    """Return a command, or the name of the agent, with its options."""
    words = [name]
    if request.max_removed_share is not None:
        words.append('--prune')
    if request.max_removed_share == full_sync.UNLIMITED:
        words.append('--force')
    words += ['--aggregate ' + uuid for uuid in sorted(request.aggregates)]
    words += ['--host ' + host for host in sorted(request.hosts)]
    return ' '.join(words)


def note(database: engine.Database, name: str, seconds: float,
         result: result.Result, mode: str = '') -> None:
    """Write a sync that has just finished to the history, but no dry run.

    The comparison of an observing agent is not ``compared``: that would allow
    the command to prune by default.

    :raises JournalUnavailable: which does not make the sync a failure
    """
    request = result.request
    if not request.feeds_ledger:
        return
    ended, lines = time.time(), result.lines()
    removals = result.select(State.STALE)
    is_partial = bool(request.hosts or request.aggregates
                      or result.interruption or result.not_compared)
    listed = removals if request.write else removals[:MOST]
    full_syncs.add(database, full_syncs.Entry(
        command(name, request), socket.gethostname(), ended - seconds, ended,
        seconds, added=len(result.select(State.MISSING)),
        removed=len(removals), stale=len(result.select(State.STALE_KEPT)),
        failed=len(result.problems), status=result.status(),
        reason=lines[0] if lines else '', removals='\n'.join(map(str, listed)),
        compared=request.write and not is_partial, mode=mode))
