# SPDX-License-Identifier: Apache-2.0
"""Changes that placement needs to mirror nova, and what became of them."""

from collections import abc
import dataclasses

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import source

PROVIDER, HOST, AGGREGATE = 'provider', 'host', 'deleted aggregate'
"""Kinds of subjects: a provider that could not be reconciled, a host that
could not be converged, an aggregate that is left on some provider."""
FOREIGN = 'foreign aggregates of provider'
"""Kind of a provider that may be in sync, but could not be read for them."""
UNREAD = 'aggregate'
"""Kind of an aggregate whose providers could not be read."""
Errors = abc.Mapping[str, exceptions.MirrorError]
"""What failed, such as providers, to the reason."""


@dataclasses.dataclass(frozen=True, order=True)
class Change:
    """Aggregates to add to, and to remove from, one provider."""

    provider: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    @classmethod
    def of(cls, nova: source.Nova, provider: str, current: frozenset[str],
           owned: frozenset[str], only: frozenset[str] = frozenset()
           ) -> 'Change':
        """Compute what turns ``current`` into what nova has for a provider.

        An aggregate outside ``owned``, or of only some hosts of the compute
        node, is foreign and is kept. Nothing is removed from a provider whose
        host is in an aggregate without a UUID: what nova lacks may be that.

        :param only: aggregates that may be changed; empty means all
        """
        desired = nova.wanted(provider)
        add = desired - current
        remove = (current & owned) - desired - nova.disputed(provider)
        if nova.may_lack(provider):
            remove = frozenset()
        if only:
            add, remove = add & only, remove & only
        return cls(provider, tuple(sorted(add)), tuple(sorted(remove)))

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)

    def apply(self, aggregates: frozenset[str]) -> frozenset[str]:
        """Return the aggregates of the provider after this change."""
        return (aggregates - frozenset(self.remove)) | frozenset(self.add)

    def without(self, aggregates: abc.Container[str]) -> 'Change':
        """Return the change of all other aggregates."""
        add = tuple(uuid for uuid in self.add if uuid not in aggregates)
        remove = tuple(uuid for uuid in self.remove if uuid not in aggregates)
        return Change(self.provider, add, remove)

    def describe(self, names: abc.Mapping[str, str]) -> str:
        """Return the change as text, for a log.

        :param names: aggregates, UUID to name; a deleted aggregate has none
        :returns: "added zone-a (UUID), rack-b (UUID); removed UUID"
        """
        def text(uuid: str) -> str:
            return '%s (%s)' % (names[uuid], uuid) if uuid in names else uuid

        texts = []
        for verb, uuids in ('added', self.add), ('removed', self.remove):
            if uuids:
                texts.append(verb + ' ' + ', '.join(map(text, uuids)))
        return '; '.join(texts)


@dataclasses.dataclass(frozen=True)
class Subject:
    kind: str
    name: str = ''
    """UUID; of a host its name."""

    def __str__(self) -> str:
        return ' '.join(filter(None, (self.kind, self.name)))


JOURNAL = Subject('journal')


@dataclasses.dataclass
class Outcome:
    """Changes and failures of a converge; grows while it runs."""

    changes: list[Change] = dataclasses.field(default_factory=list)
    """Changes that were written, or that would be."""
    kept: dict[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    """Changed and surveyed providers, to the foreign aggregates of each."""
    done: set[str] = dataclasses.field(default_factory=set)
    """Providers that are known to be in sync."""
    skipped_writes: dict[str, int] = dataclasses.field(default_factory=dict)
    """Providers not written due to ``Mode.before``, to their generations."""
    missing: set[str] = dataclasses.field(default_factory=set)
    """Providers that do not exist."""
    pending: set[str] = dataclasses.field(default_factory=set)
    """Missing providers that nova-compute will still create."""
    failed: dict[Subject, exceptions.MirrorError] = dataclasses.field(
        default_factory=dict)
    """What could not be reconciled, to the reason."""
    unwritten: set[Subject] = dataclasses.field(default_factory=set)
    """Failed providers that could be read but not written."""
    hosts: dict[journal.Dirty, exceptions.MirrorError | None] = (
        dataclasses.field(default_factory=dict))
    """Dirty hosts, to why they are not known to be in sync, if so."""
    conflicts: int = 0
    """Writes that placement refused because the provider had changed."""
    outage: exceptions.MirrorError | None = None
    """Why providers were not asked about: with it, all of them would fail."""
    truth: source.Nova | None = None
    """Nova as it was last read by a single converge; None if it failed."""
    current: dict[str, frozenset[str]] = dataclasses.field(
        default_factory=dict)
    """Aggregates of the providers as they were read last."""

    @property
    def unfinished(self) -> dict[journal.Dirty, exceptions.MirrorError]:
        """Dirty hosts that are not known to be in sync, to the reason."""
        return {dirty: error for dirty, error in self.hosts.items() if error}

    def conclude(self, dirty: journal.Dirty,
                 error: exceptions.MirrorError | None, whole: bool) -> None:
        """Record a failure unless the host is known to be in sync.

        :param error: what ended the converge early; None if nothing did
        :param whole: whether all nodes of the host were requested
        """
        host, nodes, nova = Subject(HOST, dirty.host), dirty.nodes, self.truth
        if nova and whole:
            nodes |= nova.nodes_of({dirty.host})
        subjects = host, *(Subject(PROVIDER, node) for node in sorted(nodes))
        if self.outage:
            error = exceptions.NotTried.because_of(self.outage)
        if nova:
            # A missing provider matters only if it has to be in an aggregate.
            self.pending |= {node for node in nodes & self.missing
                             if nova.wanted(node)}
            if whole and dirty.host in nova.hosts_down:
                self.failed[host] = exceptions.CellUnavailable.of_any({
                    cell: nova.cells_down[cell]
                    for cell in nova.hosts_down[dirty.host]})
            for node in sorted(nodes - self.done - self.missing):
                reason = error or exceptions.Retriable(
                    'nova reported it only in the last attempt')
                if not error and node in nova.unknown:
                    reason = exceptions.CellUnavailable.of_any(nova.cells_down)
                self.failed.setdefault(Subject(PROVIDER, node), reason)
        elif self.failed.keys().isdisjoint(subjects):
            # If a provider has failed, its failure is the reason.
            self.failed[host] = error or exceptions.NovaUnavailable(
                'nova was not read')
        errors = filter(None, map(self.failed.get, subjects))
        # The host's own cell comes first, then a provider, then another cell
        # that may have the host, and the journal last.
        self.hosts[dirty] = min(errors, default=None, key=lambda reason: (
            isinstance(reason, exceptions.JournalUnavailable),
            isinstance(reason, exceptions.CellUnavailable)
            and reason is not self.failed.get(host)))

    def merge(self, later: 'Outcome', clears_failures: bool = True) -> None:
        """Add what came later, and take out failures that it has repaired.

        ``truth`` stays as it is: it belongs to a single converge.

        :param clears_failures: whether the providers that are ``done`` later
            have not failed any more; false after a removal of one aggregate
        """
        if clears_failures:
            repaired = {Subject(PROVIDER, node) for node in later.done}
            self.unwritten -= repaired
            for subject in repaired:
                self.failed.pop(subject, None)
        self.changes += later.changes
        self.conflicts += later.conflicts
        self.outage = self.outage or later.outage
        for name in ('kept', 'done', 'skipped_writes', 'missing', 'pending',
                     'failed', 'unwritten', 'hosts', 'current'):
            getattr(self, name).update(getattr(later, name))
