# SPDX-License-Identifier: Apache-2.0
"""Result of a converge: what is in sync, pending or failed."""

from collections import abc
import dataclasses

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import plan
from nova_aggregate_mirror import source


PROVIDER, HOST, AGGREGATE = 'provider', 'host', 'deleted aggregate'
"""Kinds of subjects: a provider that could not be reconciled, a host that
could not be converged, an aggregate that is left on some provider."""
FOREIGN = 'foreign aggregates of provider'
"""Kind of a provider that may be in sync, but could not be read for them."""
UNREAD = 'aggregate'
"""Kind of an aggregate whose providers could not be read."""


Failing = dict[str, exceptions.MirrorError]
"""Providers whose last attempt failed, in the order of these attempts.

The reconcilers of an agent share it: a full sync tries last what the drain
could not mirror."""


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

    changes: list[plan.Change] = dataclasses.field(default_factory=list)
    """Changes that were written, or that would be."""
    kept: dict[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    """Provider to foreign aggregates, where a change or a survey found any."""
    done: set[str] = dataclasses.field(default_factory=set)
    """Providers that are known to be in sync."""
    skipped_writes: dict[str, int] = dataclasses.field(default_factory=dict)
    """Providers that ``provider_writes.Mode.before`` kept from a write, and
    their generations."""
    missing: set[str] = dataclasses.field(default_factory=set)
    """Providers that do not exist."""
    pending: set[str] = dataclasses.field(default_factory=set)
    """Missing providers that nova-compute will still create."""
    failed: dict[Subject, exceptions.MirrorError] = dataclasses.field(
        default_factory=dict)
    """What could not be reconciled, to the reason."""
    unwritten: set[Subject] = dataclasses.field(default_factory=set)
    """Failed providers that could be read but not written."""
    unfinished: dict[journal.Dirty, exceptions.MirrorError] = (
        dataclasses.field(default_factory=dict))
    """Requests that are not known to be in sync, to the first reason."""
    waiting: set[journal.Dirty] = dataclasses.field(default_factory=set)
    """Unfinished requests that are in sync but for nodes that another cell
    than the host's may have, and that does not answer."""
    conflicts: int = 0
    """Writes that placement refused because the provider had changed."""
    outage: exceptions.MirrorError | None = None
    """Why providers were not asked about: with it, all of them would fail."""
    truth: source.Nova | None = None
    """Nova as a single converge read it last; None if it could not."""
    current: dict[str, frozenset[str]] = dataclasses.field(
        default_factory=dict)
    """Aggregates of the providers that a single converge has read."""

    @property
    def silent(self) -> frozenset[str]:
        """Providers that did not answer, or not while others did."""
        return frozenset(
            subject.name for subject, error in self.failed.items()
            if subject.kind == PROVIDER
            and error.is_outage)

    def counts(self) -> tuple[int, int]:
        """Count the associations that were added and removed."""
        return (sum(len(change.add) for change in self.changes),
                sum(len(change.remove) for change in self.changes))

    def conclude(self, dirty: journal.Dirty,
                 error: exceptions.MirrorError | None, whole: bool) -> None:
        """Record a failure unless the request is known to be in sync.

        :param error: what ended the converge early; None if nothing did
        :param whole: whether all nodes of the host were requested
        """
        host, nodes, truth = Subject(HOST, dirty.host), dirty.nodes, self.truth
        if self.outage:
            error = exceptions.NotTried.because_of(self.outage)
        if truth is None:
            errors = self._errors(host, nodes)
            # The failure of a provider is the reason, if there is one.
            if not errors:
                self.failed[host] = error or exceptions.NovaUnavailable(
                    'nova was not read')
                errors = [self.failed[host]]
            self.unfinished[dirty] = errors[0]
            return
        if whole:
            nodes |= truth.nodes_of({dirty.host})
        # A missing provider matters only if it has to be in an aggregate.
        self.pending |= {node for node in nodes & self.missing
                         if truth.wanted(node)}
        is_hidden = dirty.host in truth.hosts_down
        if whole and is_hidden:
            self.failed[host] = exceptions.CellUnavailable.of_any({
                cell: truth.cells_down[cell]
                for cell in truth.hosts_down[dirty.host]})
        for node in sorted(nodes - self.done - self.missing):
            self.failed.setdefault(
                Subject(PROVIDER, node), error or _reason(truth, node))
        errors = self._errors(host, nodes)
        if errors:
            self.unfinished.setdefault(dirty, errors[0])
        # The host's own cell has answered: only what others may have is left.
        if errors and not is_hidden and all(isinstance(
                exc, exceptions.CellUnavailable) for exc in errors):
            self.waiting.add(dirty)

    def _errors(self, host: Subject, nodes: abc.Iterable[str]
                ) -> list[exceptions.MirrorError]:
        """List the failures of a host and of its providers, by UUID."""
        subjects = [host, *(Subject(PROVIDER, node) for node in sorted(nodes))]
        return [self.failed[subject] for subject in subjects
                if subject in self.failed]

    def note_failures(self, failing: Failing) -> None:
        """Note the failures of this converge, and what it repaired.

        An outage is no failure of a provider, nor is that of nova; one that
        was not tried comes first next time.
        """
        for uuid in self.done | self.missing:
            failing.pop(uuid, None)
        for subject, error in self.failed.items():
            if subject.kind != PROVIDER:
                continue
            is_own = error is not self.outage and error.is_of_provider
            if is_own or isinstance(error, exceptions.NotTried):
                failing.pop(subject.name, None)
            if is_own:
                # As the latest; its frames would live as long as the process.
                failing[subject.name] = error.with_traceback(None)

    def write_journal(self, write: abc.Callable[[], None]) -> None:
        """Write to the journal; record a failure without aborting the run."""
        try:
            write()
        except exceptions.JournalUnavailable as exc:
            self.failed[JOURNAL] = exc

    def add(self, other: 'Outcome') -> None:
        """Add another converge, but for what is of a single one."""
        self.changes += other.changes
        self.kept |= other.kept
        self.done |= other.done
        self.skipped_writes |= other.skipped_writes
        self.missing |= other.missing
        self.pending |= other.pending
        self.failed |= other.failed
        self.unwritten |= other.unwritten
        self.unfinished |= other.unfinished
        self.waiting |= other.waiting
        self.conflicts += other.conflicts
        self.outage = self.outage or other.outage

    def merge_retry(self, later: 'Outcome') -> None:
        """Add a later attempt, which may have succeeded where this failed."""
        repaired = {Subject(PROVIDER, node) for node in later.done}
        resolved = {self.failed.pop(provider) for provider in repaired
                    if provider in self.failed}
        # Several providers may have failed with the same error.
        resolved -= set(self.failed.values())
        self.unwritten -= repaired
        self.unfinished = {dirty: exc for dirty, exc
                           in self.unfinished.items() if exc not in resolved}
        self.add(later)


def _reason(truth: source.Nova, node: str) -> exceptions.MirrorError:
    """Return why a node was left alone that nothing failed for."""
    if node in truth.unknown:
        return exceptions.CellUnavailable.of_any(truth.cells_down)
    return exceptions.GenerationConflict(
        'nova reported it only in the last attempt')
