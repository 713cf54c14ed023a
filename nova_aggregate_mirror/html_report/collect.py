# SPDX-License-Identifier: Apache-2.0
"""Data of the page; read errors are part of it and are not raised."""

import collections
from collections import abc
import contextlib
import dataclasses

from oslo_config import cfg

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.journal import nova_identity
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror import reconcile
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import modes
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.source import database

MAX_NAMED = 2000
"""Servers that the page names; a browser stays fast with them."""


@dataclasses.dataclass
class Misplacements:
    """Result of an audit, which keeps a limited number of its servers."""

    totals: auditor.Totals = dataclasses.field(default_factory=auditor.Totals)
    troubles: list[problems.Problem] = dataclasses.field(default_factory=list)
    """Why the audit is incomplete; empty if it is not."""
    named: list[audit.Misplacement] = dataclasses.field(default_factory=list)
    omitted: int = 0
    """Misplacements that are not named."""

    def add(self, page: abc.Sequence[audit.Misplacement]) -> None:
        """Add misplacements, within the limit of the page."""
        named = page[:MAX_NAMED - len(self.named)]
        self.named += named
        self.omitted += len(page) - len(named)

    @property
    def groups(self) -> list[list[audit.Misplacement]]:
        """Group those named by host, rule, request and cause."""
        groups = collections.defaultdict[
            tuple[str, ...], list[audit.Misplacement]](list)
        for misplaced in self.named:
            cause = misplaced.cause
            groups[misplaced.server.host, misplaced.rule, misplaced.requested,
                   misplaced.actual, cause.kind, cause.text].append(misplaced)
        return [groups[key] for key in sorted(groups)]

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        if self.troubles and not self.totals.servers:
            return 'the servers could not be audited'
        return auditor.summary(self.totals) + (
            ', as far as they could be audited' if self.troubles else '')

    @property
    def figure(self) -> int | str:
        """The number of misplaced servers; ? rather than an unsure 0."""
        return self.totals.misplaced or ('?' if self.troubles else 0)


@dataclasses.dataclass(frozen=True)
class JournalContent:
    """The content of the journal, or the reason why it cannot be read."""

    ledger: journal.Ledger = journal.Ledger()
    rows: tuple[journal.Row, ...] = ()
    syncs: tuple[full_syncs.Entry, ...] = ()
    disagreements: tuple[problems.Problem, ...] = ()
    trouble: problems.Problem | None = None
    has_ledger: bool = False
    """Whether the ledger could be read, and is that of this nova."""


@dataclasses.dataclass(frozen=True)
class Content:
    """Everything that the page shows."""

    sync: result.Result
    """What a sync would do."""
    journal: JournalContent
    zones: database.Zones
    endpoint: str
    """Region, interface and endpoint of placement."""
    findings: Misplacements | None = None
    """None if the servers were not audited."""
    observes: bool = False
    """Whether nova.conf has the mode observe."""


def collect(conf: cfg.ConfigOpts, nova: database.DatabaseSource,
            progress: reconcile.Progress, foreign: bool) -> Content:
    """Compare everything and read the journal; nothing is written."""
    options, placement = conf.aggregate_mirror, client.Client(conf)
    request = full_sync.Request(
        options.max_removed_share, write=False, foreign=foreign)
    in_journal = read_journal(conf, nova)
    try:
        sync = full_sync.run(reconciler.Reconciler(
            in_journal.ledger, nova, placement,
            for_each=workers.in_threads(options.sync_workers),
            display=progress), in_journal.rows, request)
    except exceptions.MirrorError as exc:
        sync = full_sync.without_comparison(exc, request)
    zones: database.Zones = {}
    try:
        if sync.not_compared:
            # The page shows nova's aggregates even if placement is down.
            sync = dataclasses.replace(sync, nova=nova.read_all())
        zones = nova.zones()
    except exceptions.NovaUnavailable as exc:
        sync = dataclasses.replace(sync, not_compared=exc)
    return Content(sync, in_journal, zones, placement.endpoint(),
                   observes=nova_aggregate_mirror.conf.observes(conf))


def read_journal(conf: cfg.ConfigOpts,
                 source: database.DatabaseSource) -> JournalContent:
    """Read the journal without creating a file or migrating a table."""
    try:
        stored = store.Journal(conf, existing.open_existing(conf))
        with contextlib.suppress(exceptions.NovaUnavailable):
            nova_identity.check(stored.database, source.cell_mappings,
                                source.aggregates)
        past = full_syncs.newest(stored.database)
        return JournalContent(stored.ledger, tuple(stored.rows.all()),
                              tuple(past), tuple(modes.find(
                                  stored, conf.aggregate_mirror.mode)),
                              has_ledger=not existing.is_missing(conf))
    except (exceptions.JournalUnavailable, exceptions.WrongNova) as exc:
        return JournalContent(trouble=problems.Problem.of(exc, text=(
            'The information about deleted aggregates and operations is not '
            'complete')))
