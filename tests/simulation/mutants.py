# SPDX-License-Identifier: Apache-2.0
"""For each rule of the protocol, our code without it."""

import contextlib
import dataclasses

from nova_aggregate_mirror import converge
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import source
from tests.simulation import events
from tests.simulation import processes

Parts = processes.Parts


class RecordsAfter(processes.Mirror):
    """Without rule 1: the row is written when nova has committed."""

    def before(self, operation):
        before = super().before
        return lambda: before(operation)

    def after(self, operation, kept):
        super().after(operation, kept())


def has_one_row_per_host(parts: Parts) -> None:
    """Without rule 1: a host that is in the journal is not written again."""
    kept = parts.journal
    record = kept.record

    def once(dirty, aggregates=()):
        same = []
        with contextlib.suppress(exceptions.JournalUnavailable):
            same = [row for row in kept.rows()
                    if dirty.host and row.dirty.host == dirty.host]
        return same[0] if same else record(dirty, aggregates)

    kept.record = once


def closes_rows_of_the_living(parts: Parts) -> None:
    """Without rule 2: nobody looks whether the operation still runs."""
    parts.journal._owner.is_dead = lambda token: bool(token)


def closes_overdue_rows(parts: Parts) -> None:
    """Without rule 2: whoever cannot be tested is dead when it is overdue."""
    kept = parts.journal
    closable = kept.closable

    def sooner(rows):
        rows = list(rows)
        found = closable(rows)
        return found + [row for row in rows if row not in found
                        and not kept._owner.can_tell(row.owner)]

    kept.closable = sooner


class StopsAtAnError(processes.Mirror):
    """Without rule 3: when nova's method fails, nothing follows."""

    def after(self, operation, kept):
        if not self.failed:
            super().after(operation, kept)


def leaves_what_failed(parts: Parts) -> None:
    """Without rule 3: a row is not handed over when converge fails."""
    parts.journal.hand_over = lambda row, error: None


def leaves_no_word(parts: Parts) -> None:
    """Without rule 3: a hand-over that the journal missed is not told."""
    parts.journal._owner.end = lambda key: None


def leaves_word_too_early(parts: Parts) -> None:
    """Without rule 2: others close the row of an operation that runs."""
    record = parts.journal.record

    def early(*what):
        row = record(*what)
        parts.journal._owner.end(str(row.id))
        return row

    parts.journal.record = early


def reads_nova_first(parts: Parts) -> None:
    """Without rule 4: the truth is older than the generation."""
    truth = {}
    get, read, nova = parts.report.get, parts.source.read, parts.source.nova

    def early(provider):
        truth['now'] = read(nova.nodes.values(), nova.nodes, nova.ids.values())
        return get(provider)

    def late(hosts, nodes=(), aggregates=()):
        fresh = read(hosts, nodes, aggregates)
        if 'now' not in truth:
            return fresh
        return dataclasses.replace(fresh, members=truth['now'].members)

    parts.report.get, parts.source.read = early, late


def writes_only_differences(parts: Parts) -> None:
    """Without rule 5: a write that is still on its way stays good."""
    made = parts.reconciler
    real = made.converge
    made.converge = lambda dirty, mode=converge.Mode(): real(
        dirty, dataclasses.replace(mode, always=False))


def takes_silence_for_success(parts: Parts) -> None:
    """Without rule 6: a PUT that got no answer closes the row."""
    put = parts.report.put

    def hopeful(provider, aggregates):
        try:
            return put(provider, aggregates)
        except exceptions.DeadlineExceeded:
            return provider

    parts.report.put = hopeful


def closes_what_became_closable_meanwhile(parts: Parts) -> None:
    """Without rule 6: rows that ended after the first GET are closed too."""
    made, kept = parts.reconciler, parts.journal
    close = made.close

    def greedy(rows):
        rows = list(rows)
        outcome = close(rows)
        hosts = {row.dirty.host for row in rows
                 if row.dirty not in outcome.unfinished} - {''}
        kept.complete(row.id for row in kept.closable(kept.rows())
                      if row.dirty.host in hosts)
        return outcome

    made.close = greedy


def applies_the_planned_lists(parts: Parts) -> None:
    """Without rule 7: a full sync writes what its comparison said."""
    made, ids = parts.reconciler, parts.source.nova.ids
    planned: list = []
    real, read_all = made.converge, parts.source.read_all

    def read_and_keep():
        planned[:] = [read_all()]
        return planned[0]

    def apply(dirty, mode=converge.Mode()):
        if mode.always or not planned:
            return real(dirty, mode)
        nova, outcome = planned.pop(), converge.Outcome()
        for one in dirty:
            for node in sorted(nova.nodes_of({one.host})):
                try:
                    state = parts.report.get(node)
                    parts.report.put(
                        state, nova.wanted(node) | state.aggregates
                        - set(ids.values()))
                except exceptions.MirrorError as exc:
                    outcome.failed[node] = exc
        return outcome

    parts.source.read_all, made.converge = read_and_keep, apply


def forgets_what_was_ours(parts: Parts) -> None:
    """Without rule 8: the ledger is empty."""
    parts.journal.known = lambda aggregates: frozenset()


def adds_what_is_in_no_ledger(parts: Parts) -> None:
    """Without rule 8: a UUID enters the ledger at record only."""
    parts.journal.remember = lambda aggregates: None


def touches_what_is_not_ours(parts: Parts) -> None:
    """Without rule 8: whatever nova does not have is removed."""
    parts.journal.known = frozenset


def believes_the_deletion(parts: Parts) -> None:
    """Without rule 9: nova is not asked whether the aggregate is gone."""
    read = parts.source.read

    def gone(hosts, nodes=(), aggregates=()):
        hosts, nodes = list(hosts), list(nodes)
        if not hosts and not nodes:
            return source.Nova({}, {}, {})
        return read(hosts, nodes, aggregates)

    parts.source.read = gone


def deletes_from_compute_nodes_only(parts: Parts) -> None:
    """Without rule 9: a deletion leaves out whatever is no compute node."""
    members = parts.report.members
    parts.report.members = lambda *aggregates: (
        members(*aggregates) - {events.SHARED})


def writes_without_generation(parts: Parts) -> None:
    """Without rule 10: a PUT overwrites whatever came between."""
    put = parts.report.put
    parts.report.put = lambda provider, aggregates: put(
        dataclasses.replace(provider, generation=None), aggregates)


def only_adds(parts: Parts) -> None:
    """Without rule 12: the periodic sync removes nothing."""
    sync = parts.reconciler.sync
    parts.reconciler.sync = lambda rows=(), request=None: sync(rows)


PARTS = (has_one_row_per_host, closes_rows_of_the_living, closes_overdue_rows,
         leaves_what_failed, leaves_no_word, leaves_word_too_early,
         reads_nova_first, writes_only_differences,
         takes_silence_for_success, closes_what_became_closable_meanwhile,
         applies_the_planned_lists, forgets_what_was_ours,
         adds_what_is_in_no_ledger, touches_what_is_not_ours,
         believes_the_deletion, deletes_from_compute_nodes_only,
         writes_without_generation, only_adds)
HOOKS = (RecordsAfter, StopsAtAnError)
