# SPDX-License-Identifier: Apache-2.0
"""Agreement of nova-api and the agent on one mode, by the journal."""

import time

from nova_aggregate_mirror import commands
from nova_aggregate_mirror import conf
from nova_aggregate_mirror import dates
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.reconcile import problems

RESTART = 'systemctl restart nova-api'
RELOAD = 'systemctl reload nova-aggregate-mirror-agent'
STALE = 'unless it was %s since, run "%s" there'
"""Step for a process whose mode is that of its last operation or sync."""
Problem = problems.Problem


def find(journal: store.Journal, wanted: str) -> list[Problem]:
    """List what keeps nova-api and the agent from having the wanted mode.

    A process had another mode when it last wrote to the journal: only what is
    so now has an exit status.
    """
    mismatches = _of_nova_api(journal, wanted, 'instead of ' + wanted,
                              STALE % ('restarted', RESTART))
    entries = full_syncs.newest(journal.database)
    # Entries of commands have no mode.
    sync = next((entry for entry in entries if entry.mode), None)
    if sync and sync.mode != wanted:
        subject = 'The agent on %s' % sync.host
        text = '%s had mode %s in its last sync, on %s, instead of %s' % (
            subject, sync.mode, dates.iso(sync.ended_at), wanted)
        mismatches.append(Problem(subject, text, STALE % ('reloaded', RELOAD)))
    if sync and sync.observed:
        mismatches += _waiting_operations(
            journal, 'the agent observed in its last sync',
            RELOAD if wanted == conf.MIRROR else commands.SYNC)
    return mismatches


def find_for_agent(journal: store.Journal, mode: str) -> list[Problem]:
    """List what disagrees with an agent, whose mode may be the wrong one."""
    other = conf.OBSERVE if mode == conf.MIRROR else conf.MIRROR
    mismatches = _of_nova_api(
        journal, mode, 'and this agent has mode ' + mode,
        'unless it was restarted since, run "%s" there for mode %s, or "%s" '
        'for mode %s' % (RESTART, mode, RELOAD, other))
    if mode == conf.OBSERVE:
        mismatches += _waiting_operations(
            journal, 'this agent only observes', commands.SYNC)
    return mismatches


def _of_nova_api(journal: store.Journal, wanted: str, clause: str, step: str
                 ) -> list[Problem]:
    """Describe the latest nova-api of each host that has another mode."""
    # The oldest come first, and later ones replace them.
    since = time.time() - store.KEEP_PROCESSES
    latest = {process.host: process for process in journal.processes(since)}
    mismatches = []
    for host, process in sorted(latest.items()):
        if process.mode != wanted:
            subject = 'Nova-api on %s' % host
            text = '%s had mode %s at its last operation, on %s, %s' % (
                subject, process.mode, dates.iso(process.seen_at),
                clause)
            mismatches.append(Problem(subject, text, step))
    return mismatches


def _waiting_operations(journal: store.Journal, reason: str, command: str
                        ) -> list[Problem]:
    if not any(brief.pending for brief in journal.rows.briefs()):
        return []
    return [Problem(
        'Operations', 'Operations wait in the journal, and ' + reason,
        'run "%s"' % command, exit_status.NOT_UPDATED)]
