# SPDX-License-Identifier: Apache-2.0
"""Agreement of nova-api and the agent on one mode, by the journal."""

import dataclasses
import time

from nova_aggregate_mirror import conf
from nova_aggregate_mirror.journal import api_processes
from nova_aggregate_mirror.journal import store

RESTART = 'systemctl restart nova-api'
RELOAD = 'systemctl reload nova-aggregate-mirror-agent'
SYNC = 'nova-aggregate-mirror-manage placement sync_aggregates'


@dataclasses.dataclass(frozen=True)
class Disagreement:
    """A process whose mode has to change, or rows that wait for that."""

    subject: str
    text: str
    """What was observed, up to the words that introduce the step."""
    step: str
    is_current: bool = False
    """Whether it is so now, not only when a process last wrote."""

    def __str__(self) -> str:
        return '%s %s' % (self.subject, self.text)


def find(journal: store.Journal, wanted: str) -> list[Disagreement]:
    """List what keeps nova-api and the agent from having the wanted mode."""
    text = 'on %s, instead of %s. Unless it was %s since, run there'
    disagreements = [
        Disagreement(
            'Nova-api on %s' % process.host,
            'had mode %s at its last operation, ' % process.mode
            + text % (date(process.seen_at), wanted, 'restarted'), RESTART)
        for process in _latest(journal) if process.mode != wanted]
    sync = next((sync for sync in journal.history.newest() if sync.mode), None)
    if sync and sync.mode != wanted:
        disagreements.append(Disagreement(
            'The agent on %s' % sync.host,
            'had mode %s in its last sync, ' % sync.mode
            + text % (date(sync.ended_at), wanted, 'reloaded'), RELOAD))
    if sync and sync.observed and journal.rows.backlog().pending:
        disagreements.append(Disagreement(
            'Operations', 'wait in the journal, and the agent observed in its '
            'last sync. Run', RELOAD if wanted == conf.MIRROR else SYNC,
            is_current=True))
    return disagreements


def find_for_agent(journal: store.Journal, mode: str) -> list[Disagreement]:
    """List what disagrees with an agent, whose mode may be the wrong one."""
    disagreements = [
        Disagreement(
            'Nova-api on %s' % process.host,
            'had mode %s at its last operation, on %s, and this agent has '
            'mode %s. Unless it was restarted since, run' % (
                process.mode, date(process.seen_at), mode),
            '"%s" there for mode %s, or "%s" for mode %s' % (
                RESTART, mode, RELOAD, process.mode))
        for process in _latest(journal) if process.mode != mode]
    if mode == conf.OBSERVE and journal.rows.backlog().pending:
        disagreements.append(Disagreement(
            'Operations', 'wait in the journal, and this agent only observes. '
            'Run', SYNC, is_current=True))
    return disagreements


def _latest(journal: store.Journal) -> list[api_processes.ProcessRecord]:
    """Return the latest nova-api process of each host, by the host's clock."""
    processes = api_processes.read(
        journal.database, time.time() - api_processes.KEEP)
    return sorted({process.host: process for process in processes}.values())


def date(seconds: float) -> str:
    """Render seconds since the epoch for a sentence."""
    return time.strftime('%Y-%m-%d at %H:%M:%S UTC', time.gmtime(seconds))
