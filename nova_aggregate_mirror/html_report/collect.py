# SPDX-License-Identifier: Apache-2.0
"""Data of the page; read errors are part of it and are not raised."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import os

from oslo_config import cfg

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.html_report import misplaced
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal import history
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import context
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.source import database

Audit = Callable[[Sequence[history.Entry]], misplaced.Misplacements]
"""Audits all servers, given the full syncs of the past, newest first."""


@dataclasses.dataclass(frozen=True)
class Inputs:
    """The sources of the page."""

    nova: database.DatabaseSource
    placement: client.Client
    stopping: Callable[[], bool] = lambda: False
    display: context.Progress = context.Progress()
    audit: Audit | None = None
    """None if the page does not show misplaced servers."""
    foreign: bool = False
    """Whether the page shows aggregates that nova never had."""


@dataclasses.dataclass(frozen=True)
class JournalContent:
    """The content of the journal, or the reason why it cannot be read."""

    ledger: journal.Ledger = journal.Ledger()
    rows: tuple[journal.Row, ...] = ()
    syncs: tuple[history.Entry, ...] = ()
    trouble: str = ''
    has_ledger: bool = False
    """Whether the ledger could be read, and is that of this nova."""


@dataclasses.dataclass(frozen=True)
class Collected:
    """Everything that the page shows."""

    sync: full_sync.SyncOutcome
    """What a sync with ``request`` would do."""
    request: full_sync.Request
    journal: JournalContent
    zones: database.Zones
    endpoint: str
    """Region, interface and endpoint of placement."""
    findings: misplaced.Misplacements | None = None
    """None if the servers were not audited."""


def collect(conf: cfg.ConfigOpts, inputs: Inputs) -> Collected:
    """Compare everything and read the journal; nothing is written.

    :raises Stopped: when it was interrupted
    """
    options = conf.aggregate_mirror
    request = full_sync.Request(
        options.max_removed_share, write=False, foreign=inputs.foreign)
    journal = read_journal(conf, inputs.nova)
    sync = _compare(inputs, journal, request, options.sync_workers)
    zones: database.Zones = {}
    try:
        zones = inputs.nova.zones()
    except exceptions.NovaUnavailable as exc:
        sync = dataclasses.replace(sync, not_compared=sync.not_compared or exc)
    return Collected(
        sync, request, journal, zones, inputs.placement.endpoint(),
        inputs.audit(journal.syncs) if inputs.audit else None)


def read_journal(conf: cfg.ConfigOpts,
                 source: binding.CellMappings) -> JournalContent:
    """Read the journal without creating a file or migrating a table."""
    path = engine.sqlite_file(conf)
    if path is not None and not os.path.exists(path):
        return JournalContent()
    try:
        journal = store.Journal(conf, engine.existing(conf))
        with contextlib.suppress(exceptions.NovaUnavailable):
            binding.Binding(journal.database, source).check()
        return JournalContent(journal.ledger, tuple(journal.rows.all()),
                              tuple(journal.history.newest()),
                              has_ledger=True)
    except (exceptions.JournalUnavailable, exceptions.WrongNova) as exc:
        return JournalContent(trouble=str(exc))


def _compare(inputs: Inputs, journal: JournalContent,
             request: full_sync.Request, workers: int
             ) -> full_sync.SyncOutcome:
    try:
        mirror = reconciler.Reconciler(
            journal.ledger, inputs.nova, inputs.placement, None,
            inputs.stopping, workers, inputs.display)
        sync = full_sync.run(mirror, journal.rows, request)
    except exceptions.Stopped:
        raise
    except exceptions.MirrorError as exc:
        sync = full_sync.uncompared(exc)
    if isinstance(sync.not_compared, exceptions.Stopped) or inputs.stopping():
        raise exceptions.Stopped('interrupted')
    if sync.not_compared:
        # The page shows nova's aggregates even if placement is unavailable.
        try:
            return dataclasses.replace(sync, nova=inputs.nova.read_all())
        except exceptions.NovaUnavailable as exc:
            return dataclasses.replace(sync, not_compared=exc)
    return sync


def associations_of(collected: Collected
                    ) -> list[associations.Association]:
    """Return all associations, those in sync as well."""
    sync, nova = collected.sync, collected.sync.nova
    unknown = {*_failed(collected), *nova.hosts_down}.union(
        *nova.unknown.values())
    if sync.not_compared:
        unknown |= {*nova.compute_nodes(), *nova.members}
    return associations.complete(nova, sync.associations, unknown)


def marks(collected: Collected) -> Mapping[str, tuple[str, ...]]:
    """Map hosts to their further problems."""
    by_host: dict[str, list[str]] = {}
    for host, mark in _marks(collected):
        by_host.setdefault(host, []).append(mark)
    return {host: tuple(marks) for host, marks in by_host.items()}


def _marks(collected: Collected) -> Iterator[tuple[str, str]]:
    nova = collected.sync.nova
    for hosts, mark in (
            ({row.dirty.host for row in collected.journal.rows
              if row.mirrored_at is None}, 'in the journal'),
            (nova.unmapped, 'no host mapping'),
            (nova.nodeless(), 'no compute node'),
            (nova.hosts_down, 'its cell did not answer'),
            ({host for name in _failed(collected)
              for host in nova.hosts_of(name) or {name}}
             - nova.hosts_down.keys(), 'could not be compared')):
        for host in hosts:
            yield host, mark


def _failed(collected: Collected) -> Iterator[str]:
    """List provider UUIDs and host names that could not be compared."""
    for subject in collected.sync.outcome.failed:
        if subject.kind in (outcome.PROVIDER, outcome.HOST):
            yield subject.name
