# SPDX-License-Identifier: Apache-2.0
"""The mutants: the code, each time without one rule of the protocol."""

import contextlib
import dataclasses
import functools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import cell_threads
from tests.simulation import events
from tests.simulation import processes

Parts = processes.Parts


class RecordsAfter(processes.Mirror):
    """Without rule 1: the row is written after nova has committed."""

    def before(self, operation):
        before = super().before
        return lambda: before(operation)

    def after(self, operation, kept):
        super().after(operation, kept())


def has_one_row_per_host(parts: Parts) -> None:
    """Without rule 1: a host that already has a row gets no new row."""
    kept = parts.journal.rows
    record = kept.record

    def once(row, aggregates=()):
        with contextlib.suppress(exceptions.JournalUnavailable):
            if any(one.dirty.host == row.dirty.host for one in kept.all()):
                return
        record(row, aggregates)

    kept.record = once


def hands_over_only_what_is_there(parts: Parts) -> None:
    """Without rule 1: a hand-over that finds no row does not insert it."""
    kept = parts.journal.rows
    hand_over, database = kept.hand_over, parts.cloud.database

    def plain(row, error):
        if database.has_row(row.id):
            hand_over(row, error)

    kept.hand_over = plain


def closes_overdue_rows(parts: Parts) -> None:
    """Without rule 2: a row is closed as soon as it is overdue."""
    def prepare(drain):
        drain._may_run = lambda row: False

    parts.prepare = prepare


def command_closes_running_rows(parts: Parts) -> None:
    """Without rule 2: an operator's sync closes the rows of running calls."""
    kept = parts.journal.rows
    every = kept.all
    kept.all = lambda: [dataclasses.replace(row, running=False)
                        for row in every()]


def converges_overdue_rows_once(parts: Parts) -> None:
    """Without rule 2: an overdue row is converged only once."""
    def prepare(drain):
        settle = drain._settle

        def settle_for_long(row, locks):
            settle(row, locks)
            if row.running and not locks.locked:
                drain._known[row.id].due = drain._now() + drain._max_call_age

        drain._settle = settle_for_long

    parts.prepare = prepare


def closes_by_the_clock_of_the_writer(parts: Parts) -> None:
    """Without rule 2: the age of a row is measured by its writer's clock."""
    def prepare(drain):
        kept, written = parts.journal, {}
        some = kept.rows.get

        def read(ids):
            found = some(ids)
            written.update({row.id: row.created_at for row in found})
            return found

        kept.rows.get = read
        may_run = drain._may_run

        def is_young(row):
            return may_run(row) and (
                kept.now() - written[row] < drain._max_call_age)

        drain._may_run = is_young

    parts.prepare = prepare


class StopsAtAnError(processes.Mirror):
    """Without rule 3: nothing is converged after nova's method fails."""

    def after(self, operation, kept):
        if not self.failed:
            super().after(operation, kept)


def reads_nova_first(parts: Parts) -> None:
    """Without rule 4: nova is read before the generation."""
    truth = {}
    get, read, nova = parts.placement.get, parts.source.read, parts.cloud.nova

    def early(provider):
        truth['now'] = read(nova.nodes.values(), nova.nodes, nova.ids.values())
        return get(provider)

    def late(hosts, nodes=(), aggregates=(), down=None):
        fresh = read(hosts, nodes, aggregates, down)
        if 'now' not in truth:
            return fresh
        return dataclasses.replace(fresh, members=truth['now'].members)

    parts.placement.get, parts.source.read = early, late


def writes_only_differences(parts: Parts) -> None:
    """Without rule 5: an older write still in flight remains valid."""
    for made in parts, parts.reconciler:
        made.converge = functools.partial(_only_differences, made.converge)


def _only_differences(real, what, mode=provider_writes.Mode(), *args):
    return real(what, dataclasses.replace(mode, always=False), *args)


def spares_next_to_others(parts: Parts) -> None:
    """Without rule 5: a change and its reversal count as no change."""
    parts.journal.rows.has_others = lambda row: False


def spares_without_a_second_look(parts: Parts) -> None:
    """Without rule 5: the generation is not read again."""
    parts.are_settled = lambda spared, row: (
        not parts.journal.rows.has_others(row))


def spares_what_placement_has(parts: Parts) -> None:
    """Without rule 5: a change that placement already has is not written."""
    real = parts.converge

    def converge_(row, mode, recorded):
        wanted = parts.cloud.nova.wanted
        return real(row, dataclasses.replace(mode, before={
            node: wanted(node) for node in mode.before}), recorded)

    parts.converge = converge_


def takes_silence_for_success(parts: Parts) -> None:
    """Without rule 6: a PUT without an answer closes the row."""
    put = parts.placement.put

    def hopeful(provider, aggregates):
        try:
            return put(provider, aggregates)
        except exceptions.DeadlineExceeded:
            return provider

    parts.placement.put = hopeful


def closes_what_became_closable_meanwhile(parts: Parts) -> None:
    """Without rule 6: rows handed over after the first GET are closed too."""
    kept = parts.journal.rows

    def greedy(close, what, *args):
        outcome = close(what, *args)
        hosts = {dirty.host for dirty, error in outcome.hosts.items()
                 if not error}
        if not parts.cloud.database.has_locks():
            kept.close(row.id for row in kept.all()
                       if not row.running and row.dirty.host in hosts)
        return outcome

    parts.converge_and_close = functools.partial(
        greedy, parts.converge_and_close)
    parts.reconciler.converge = functools.partial(
        greedy, parts.reconciler.converge)


def applies_the_planned_lists(parts: Parts) -> None:
    """Without rule 7: a full sync writes the planned lists."""
    made, ids = parts.reconciler, parts.cloud.nova.ids
    planned: list = []
    real, read_all = made.converge, parts.source.read_all

    def read_and_keep():
        planned[:] = [read_all()]
        return planned[0]

    def apply(dirty, mode=provider_writes.Mode()):
        if mode.always or not planned:
            return real(dirty, mode)
        nova, outcome = planned.pop(), provider_writes.Outcome()
        for one in dirty:
            for node in sorted(nova.nodes_of({one.host})):
                try:
                    state = parts.placement.get(node)
                    foreign = state.aggregates - set(ids.values())
                    parts.placement.put(state, nova.wanted(node) | foreign)
                except exceptions.MirrorError as exc:
                    outcome.failed[provider_writes.Subject(
                        provider_writes.PROVIDER, node)] = exc
        return outcome

    parts.source.read_all, made.converge = read_and_keep, apply


def forgets_what_was_ours(parts: Parts) -> None:
    """Without rule 8: the ledger is empty."""
    parts.journal.ledger.intersection = lambda aggregates: frozenset()


def adds_what_is_in_no_ledger(parts: Parts) -> None:
    """Without rule 8: a UUID enters the ledger only at record."""
    parts.journal.ledger.remember = lambda aggregates: None


def feeds_no_ledger(parts: Parts) -> None:
    """Without rule 8: a full sync does not enter nova's UUIDs."""
    remember = parts.journal.ledger.remember
    # Only the full sync passes a mapping: nova's aggregates with names.
    parts.journal.ledger.remember = lambda aggregates: (
        None if isinstance(aggregates, dict) else remember(aggregates))


def touches_what_is_not_ours(parts: Parts) -> None:
    """Without rule 8: every aggregate that nova does not have is removed."""
    parts.journal.ledger.intersection = frozenset


def marks_no_deletion(parts: Parts) -> None:
    """Without rule 9: the ledger has no markers of deletions by users."""
    kept = parts.journal.ledger
    kept.mark = lambda aggregate: kept.remember({aggregate})


def clears_marks_of_running_deletions(parts: Parts) -> None:
    """Without rule 9: a marker is cleared while nova may still delete."""
    parts.journal.ledger._watch = dict


def has_no_cure_for_deletions(parts: Parts) -> None:
    """Without rules 9 and 12: a full sync repairs no missed deletion."""
    parts.reconciler.remove = (
        lambda uuid, mode, silent: provider_writes.Outcome())


def strips_foreign_providers_at_once(parts: Parts) -> None:
    """Without rule 9: absent unmarked UUIDs are not kept for 24 hours."""
    entries = parts.journal.ledger.entries
    parts.journal.ledger.entries = lambda: {
        uuid: dataclasses.replace(entry, absent=float('inf'))
        for uuid, entry in entries().items()}


def believes_the_deletion(parts: Parts) -> None:
    """Without rule 9: nova is not asked whether the aggregate still exists."""
    read = parts.source.read

    def gone(hosts, nodes=(), aggregates=(), down=None):
        hosts, nodes = list(hosts), list(nodes)
        if not hosts and not nodes:
            return source.Nova({}, {}, {})
        return read(hosts, nodes, aggregates, down)

    parts.source.read = gone


def deletes_from_compute_nodes_only(parts: Parts) -> None:
    """Without rule 9: a deletion removes from compute nodes only."""
    members = parts.placement.members
    parts.placement.members = lambda *aggregates: (
        members(*aggregates) - {events.SHARED})


def writes_without_generation(parts: Parts) -> None:
    """Without rule 10: a PUT without a generation overwrites other writes."""
    put = parts.placement.put
    parts.placement.put = lambda provider, aggregates: put(
        dataclasses.replace(provider, generation=None), aggregates)


def only_adds(parts: Parts) -> None:
    """Without rule 12: the periodic sync removes nothing."""
    made = parts.reconciler
    real = made.converge

    def converge(dirty, mode=provider_writes.Mode()):
        prune = mode.prune and mode.down is None
        return real(dirty, dataclasses.replace(mode, prune=prune))

    made.converge = converge


def takes_an_error_for_an_answer(parts: Parts) -> None:
    """Without rule 14: a driver that gives up ends the silence of a cell."""
    threads = getattr(parts.source._cells._read_cells, '__self__', None)
    if not threads:
        return
    start = threads._start

    def begin(name, read, ended, patient):
        def attempt():
            answer = read()
            if isinstance(answer, exceptions.CellUnavailable):
                threads._silent.pop(name, None)
                threads._wait_for_some = cell_threads.SOON
            return answer

        return start(name, attempt, ended, patient)

    threads._start = begin
    threads._back_off = lambda name: None


def retries_one_row_after_a_failure(parts: Parts) -> None:
    """Without rule 14: rows wait in one queue, whatever they wait for."""
    def prepare(drain):
        mirror, handle_errors, limit = drain._mirror, drain._handle_errors, 50

        def batches():
            rows = sorted((known.due, row) for row, known
                          in drain._known.items() if known.due <= drain._now())
            yield [row for _due, row in rows[:limit]], False

        def mirror_some(*arguments):
            nonlocal limit
            before = len(drain._known)
            progress = mirror(*arguments)
            limit = 50 if len(drain._known) < before else 1
            return progress

        def handle_alike(*arguments):
            handle_errors(*arguments)
            for known in drain._known.values():
                if known.cells or known.is_suspect:
                    known.wait(drain._now() + 4.0)

        drain._batches, drain._mirror = batches, mirror_some
        drain._handle_errors = handle_alike

    parts.prepare = prepare


def isolates_no_provider(parts: Parts) -> None:
    """Without rule 14: the first error of a batch is that of everything."""
    def ask(request, providers, for_each, patience=0.0):
        answers = isolation.Answers()
        for provider in providers:
            try:
                answers.results[provider] = request(provider)
            except exceptions.MirrorError as exc:
                if exc.is_outage:
                    answers.outage = exc
                    break
                answers.failures[provider] = exc
        return answers

    parts.placement.ask = ask


def writes_once(parts: Parts) -> None:
    """Without rule 4: a PUT that placement did not answer is final."""
    put = parts.placement.put

    def put_once(provider, aggregates):
        try:
            return put(provider, aggregates)
        except exceptions.ServiceFailed as exc:
            exc.is_repeatable = False
            raise

    parts.placement.put = put_once


def repairs_with_the_patience_of_the_drain(parts: Parts) -> None:
    """Without rule 15: the sync cannot repair what it finds in a slow cell."""
    read = parts.source.read
    parts.source._cells._limits_some = dataclasses.replace(
        parts.source._cells._limits_some, timeout=cell_threads.SOON)
    parts.source.read = lambda hosts, nodes=(), aggregates=(), down=None: (
        read(hosts, nodes, aggregates))


def follows_the_last_cell(parts: Parts) -> None:
    """Without rule 15: of a node in two cells, the last cell's row counts."""
    found = parts.source._cells
    real = found.rows

    def rows(queries, patient=False):
        every, down = real(queries, patient)
        last = {row.node: row for row in every}
        return [*last.values()], down

    found.rows = rows


def takes_a_silent_cell_for_an_empty_one(parts: Parts) -> None:
    """Without rule 15: a node that no other cell has does not exist."""
    found = parts.source._cells
    real = found.rows
    found.rows = lambda queries, patient=False: (real(queries, patient)[0], {})


# Mutant to the seed of a schedule that detects it. Other code needs others.
PARTS = {
    has_one_row_per_host: 1290,
    hands_over_only_what_is_there: 1004,
    closes_overdue_rows: 818,
    command_closes_running_rows: 18231,
    converges_overdue_rows_once: 818,
    closes_by_the_clock_of_the_writer: 818,
    reads_nova_first: 425,
    writes_only_differences: 17,
    spares_next_to_others: 1701,
    spares_without_a_second_look: 480,
    spares_what_placement_has: 19436,
    takes_silence_for_success: 889,
    closes_what_became_closable_meanwhile: 439,
    applies_the_planned_lists: 1206,
    forgets_what_was_ours: 179,
    adds_what_is_in_no_ledger: 477,
    feeds_no_ledger: 1328,
    touches_what_is_not_ours: 0,
    marks_no_deletion: 24,
    clears_marks_of_running_deletions: 2009,
    has_no_cure_for_deletions: 9,
    strips_foreign_providers_at_once: 40,
    believes_the_deletion: 22,
    deletes_from_compute_nodes_only: 11,
    writes_without_generation: 220,
    only_adds: 5,
    takes_an_error_for_an_answer: 35,
    retries_one_row_after_a_failure: 17,
    isolates_no_provider: 117,
    writes_once: 26,
    repairs_with_the_patience_of_the_drain: 41,
    follows_the_last_cell: 4,
    takes_a_silent_cell_for_an_empty_one: 19,
}
HOOKS = {RecordsAfter: 1, StopsAtAnError: 317}
