# SPDX-License-Identifier: Apache-2.0
"""Full syncs of commands: run, and display as text, table and JSON."""

import collections
from collections import abc
import contextlib
import dataclasses
import itertools
import os
import signal
from typing import Any

from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import reconcile
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror import terminal_tables

State = associations.State
HOW_TO_REMOVE = (
    ' An aggregate is removed from a provider by setting the others: '
    '"openstack --os-placement-api-version 1.29 resource provider aggregate '
    'set --generation GENERATION --aggregate OTHER PROVIDER".')
NEVER = 'nova never had it while this journal exists'
UNKNOWN = 'nova does not have it, and is not known to have had it'
"""Without a journal: deleted aggregates are among the foreign ones."""
EFFECT = ('New servers of an aggregate, such as its availability zone, do not '
          'reach a host whose association is missing, and still reach one '
          'whose association is stale.')
COLUMNS = ('State', 'Host', 'Provider', 'Aggregate', 'Aggregate UUID')
LISTED = (State.MISSING, State.STALE, State.STALE_KEPT,
          State.FOREIGN_AGGREGATE, State.FOREIGN_PROVIDER,
          State.UNKNOWN_PROVIDER, State.ABSENT)
"""States of the associations that have a row, in this order."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
STDERR = 2
ABANDONED = ('Interrupted; the result of requests in flight is unknown: run '
             'the command again')


@contextlib.contextmanager
def interruptible() -> abc.Iterator[list[int]]:
    """Collect signals: the first stops gracefully, the second at once."""
    received: list[int] = []

    def handle(number: int, _frame: object) -> None:
        if received:
            shout(ABANDONED)
            # A normal exit waits for the threads, and they for placement.
            os._exit(128 + received[0])
        received.append(number)
        shout('Stopping after the requests in flight complete; interrupt '
              'again to stop immediately')

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def shout(text: str) -> None:
    # print() is not reentrant, and a signal may arrive during another print.
    # Ctrl-C may have ended the reader, too.
    with contextlib.suppress(OSError):
        os.write(STDERR, ('\n%s\n' % text).encode())


def run(build: abc.Callable[[abc.Callable[[], bool], reconcile.Progress],
                            reconciler.Reconciler],
        rows: abc.Iterable[journal.Row], request: full_sync.Request,
        quiet: bool) -> result.Result:
    """Run a sync until its end or Ctrl-C: requests in flight are completed.

    :param build: creates a reconciler, given a function that returns whether
        to stop, and the display of the progress
    :raises JournalUnavailable: when the ledger could not be read
    :raises UnknownName: nova has no such aggregate
    """
    with interruptible() as received:
        try:
            sync = full_sync.run(build(
                lambda: bool(received), cli.progress(quiet)), rows, request)
        except (exceptions.JournalUnavailable, exceptions.UnknownName):
            raise
        except exceptions.MirrorError as exc:
            sync = full_sync.without_comparison(exc, request)
    return dataclasses.replace(
        sync, interruption=128 + received[0] if received else 0)


def document(result: result.Result) -> dict[str, Any]:
    """Return a result for JSON or YAML, in a reproducible order."""
    nova = result.nova

    def entries(state: State) -> list[dict[str, Any]]:
        return [_entry(association) for association in result.select(state)]

    failures = {str(subject): exc.failure
                for subject, exc in result.outcome.failed.items()
                if not isinstance(exc, exceptions.Stopped)}
    return {
        'dry_run': not result.request.write,
        'missing': entries(State.MISSING),
        'stale': [
            _entry(association, kept=association.state is State.STALE_KEPT)
            for association in result.select(State.STALE, State.STALE_KEPT)],
        'foreign_aggregates': entries(State.FOREIGN_AGGREGATE),
        'foreign_providers': entries(State.FOREIGN_PROVIDER),
        'unknown_providers': [
            _entry(association, detail=problems.owner(nova))
            for association in result.select(State.UNKNOWN_PROVIDER)],
        'absent': [_entry(association, absent_for=association.absent_for)
                   for association in result.select(State.ABSENT)],
        'pending': entries(State.PENDING),
        'unmapped': sorted(nova.unmapped),
        'without_compute_node': sorted(nova.nodeless()),
        'without_uuid': [
            {'id': aggregate.id, 'aggregate': aggregate.name,
             'hosts': sorted(aggregate.hosts)}
            for aggregate in sorted(nova.invalid_aggregates)],
        'cells_down': problems.documents(nova.cells_down),
        'failed': [problems.document(failures[subject], subject=subject)
                   for subject in sorted(failures)],
        'refused': _failure(result.refused),
        'not_compared': _failure(result.not_compared),
        'unprocessed': result.unprocessed,
        'exit_status': result.status()}


def complete(result: result.Result) -> list[associations.Association]:
    """List all associations, those in sync as well."""
    nova = result.nova
    unknown = failed(
        result, outcome.UNREAD, outcome.PROVIDER, outcome.HOST).union(
            nova.hosts_down, *nova.unknown.values())
    if result.not_compared:
        unknown |= {*nova.compute_nodes(), *nova.members}
    return associations.complete(nova, result.associations, unknown)


def failed(result: result.Result, *kinds: str) -> frozenset[str]:
    """Return the UUIDs or names of what failed, of these kinds."""
    return frozenset(subject.name for subject in result.outcome.failed
                     if subject.kind in kinds)


def rows(result: result.Result, states: abc.Sequence[State] = LISTED
         ) -> list[tuple[str, ...]]:
    """List the associations in these states, for ``COLUMNS``."""
    selected = itertools.chain.from_iterable(map(result.select, states))
    # The summary says which of the stale ones are kept.
    return [(association.state.value.removesuffix('_kept'), association.host,
             association.provider, association.aggregate,
             association.aggregate_uuid) for association in selected]


def summary(sync: result.Result, note: str = result.PRUNE,
            never: str = NEVER) -> list[str]:
    """Return the figures, and foreign aggregates if requested, in lines."""
    lines = sync.summary(note).splitlines()
    unknown = {association.provider
               for association in sync.select(State.UNKNOWN_PROVIDER)}
    if unknown:
        count = plurals.count(
            len(unknown), 'resource provider,', 'resource providers, each of')
        lines.append('Unchanged: %s which %s.' % (
            count, problems.owner(sync.nova)))
    return [*lines, *foreign(sync, never)]


def foreign(result: result.Result, never: str) -> list[str]:
    """Describe foreign aggregates, if requested; ``never`` is why they are."""
    if not result.request.foreign:
        return []
    by_aggregate = collections.defaultdict[str, set[str]](set)
    for association in result.select(State.FOREIGN_AGGREGATE):
        by_aggregate[association.aggregate_uuid].add(association.host)
    lines = []
    for uuid, hosts in sorted(by_aggregate.items()):
        how = HOW_TO_REMOVE if uuid in result.removable else ''
        lines.append('Aggregate %s of %s: %s; its owner is unknown.%s' % (
            uuid, plurals.some(hosts), never, how))
    return cli.first_lines(lines, problems.MOST_LISTED)


def effect(states: abc.Iterable[str]) -> list[str]:
    """Return the line about what missing and stale associations do."""
    return [EFFECT] if {'missing', 'stale'}.intersection(states) else []


def in_table(rows: abc.Iterable[tuple[str, ...]]) -> tuple[
        tuple[str, ...], list[tuple[terminal_tables.Cell, ...]]]:
    """Return the columns and rows of a table, which fits a terminal."""
    # There is no room for a column of UUIDs: those of the provider, and of an
    # aggregate without a name, are lines of the host's cell.
    cells: list[tuple[terminal_tables.Cell, ...]] = []
    for state, host, provider, aggregate, uuid in rows:
        nameless = '' if aggregate else 'aggregate ' + uuid
        cells.append((state, (host, provider, nameless), aggregate))
    return ('State', 'Host, provider', 'Aggregate'), cells


def _entry(association: associations.Association, **more: Any
           ) -> dict[str, Any]:
    return {'hosts': list(association.hosts), 'provider': association.provider,
            'aggregate': association.aggregate,
            'aggregate_uuid': association.aggregate_uuid, **more}


def _failure(error: exceptions.MirrorError | None) -> dict[str, Any] | None:
    return problems.document(error.failure) if error else None
