# SPDX-License-Identifier: Apache-2.0
"""For each rule of the protocol, our code without it."""

import dataclasses

from nova_aggregate_mirror import converge
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import source
from tests.simulation import schedule


class RecordsAfter(schedule.Mirror):
    """Without rule 1: the row is written when nova has committed."""

    def before(self, operation):
        before = super().before
        return lambda: before(operation)

    def after(self, operation, kept):
        super().after(operation, kept())


def closes_rows_of_the_living(parts: schedule.Parts) -> None:
    """Without rule 2: nobody looks whether the operation still runs."""
    parts.journal._owner.is_dead = lambda token: bool(token)


class StopsAtAnError(schedule.Mirror):
    """Without rule 3: when nova's method fails, nothing follows."""

    failed = False

    def after(self, operation, kept):
        if not self.failed:
            super().after(operation, kept)
        self.failed = False


def reads_nova_first(parts: schedule.Parts) -> None:
    """Without rule 4: the truth is older than the generation."""
    truth = {}
    get, read = parts.report.get, parts.source.read

    def early(provider):
        nodes = parts.source._world.nodes
        truth['now'] = read(nodes.values(), nodes,
                            parts.source._world.ids.values())
        return get(provider)

    def late(hosts, nodes=(), aggregates=()):
        fresh = read(hosts, nodes, aggregates)
        if 'now' not in truth:
            return fresh
        return dataclasses.replace(fresh, members=truth['now'].members)

    parts.report.get, parts.source.read = early, late


def writes_only_differences(parts: schedule.Parts) -> None:
    """Without rule 5: a write that is still on its way stays good."""
    made = parts.reconciler
    real = made.converge
    made.converge = lambda dirty, mode=converge.Mode(): real(
        dirty, dataclasses.replace(mode, always=False))


def takes_silence_for_success(parts: schedule.Parts) -> None:
    """Without rule 6: a PUT that got no answer closes the row."""
    put = parts.report.put

    def hopeful(provider, aggregates):
        try:
            return put(provider, aggregates)
        except exceptions.DeadlineExceeded:
            return provider

    parts.report.put = hopeful


def closes_what_became_closable_meanwhile(parts: schedule.Parts) -> None:
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


def applies_the_planned_lists(parts: schedule.Parts) -> None:
    """Without rule 7: a full sync writes what its comparison said."""
    made = parts.reconciler
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
                        - set(parts.report._world.ids.values()))
                except exceptions.MirrorError as exc:
                    outcome.failed[node] = exc
        return outcome

    parts.source.read_all, made.converge = read_and_keep, apply


def forgets_what_was_ours(parts: schedule.Parts) -> None:
    """Without rule 8: the ledger is empty."""
    parts.journal.known = lambda aggregates: frozenset()


def believes_the_deletion(parts: schedule.Parts) -> None:
    """Without rule 9: nova is not asked whether the aggregate is gone."""
    read = parts.source.read

    def gone(hosts, nodes=(), aggregates=()):
        hosts, nodes = list(hosts), list(nodes)
        if not hosts and not nodes:
            return source.Nova({}, {}, {})
        return read(hosts, nodes, aggregates)

    parts.source.read = gone


def writes_without_generation(parts: schedule.Parts) -> None:
    """Without rule 10: a PUT overwrites whatever came between."""
    put = parts.report.put
    world = parts.report._world

    def forced(provider, aggregates):
        world.give_way('a PUT without generation')
        return put(dataclasses.replace(
            provider, generation=world.generations.get(provider.uuid, 0)),
            aggregates)

    parts.report.put = forced


def only_adds(parts: schedule.Parts) -> None:
    """Without rule 12: the periodic sync removes nothing."""
    sync = parts.reconciler.sync
    parts.reconciler.sync = lambda rows=(), request=None: sync(rows)


PARTS = (closes_rows_of_the_living, reads_nova_first, writes_only_differences,
         takes_silence_for_success, closes_what_became_closable_meanwhile,
         applies_the_planned_lists, forgets_what_was_ours,
         believes_the_deletion, writes_without_generation, only_adds)
HOOKS = (RecordsAfter, StopsAtAnError)
