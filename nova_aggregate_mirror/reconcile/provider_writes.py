# SPDX-License-Identifier: Apache-2.0
"""Convergence of providers to nova's current state, in a fixed order of I/O.

Per provider: GET its aggregates and generation, *then* read nova's truth,
*then* PUT with that generation; on a conflict start again at the GET.

Long because this order serves hosts and deletions alike.
"""

from collections import abc
import contextvars
import dataclasses
import math
import threading
import time
import typing

from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import transport
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror import reconcile
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror import source
from nova_aggregate_mirror import uuids

if typing.TYPE_CHECKING:
    # Needs SQLAlchemy, which each command of the openstack client would load.
    from nova_aggregate_mirror.journal import store

LOG = logging.getLogger(__name__)
AGGREGATE, HOST, PROVIDER = outcome.AGGREGATE, outcome.HOST, outcome.PROVIDER
Change = outcome.Change
Outcome = outcome.Outcome
Subject = outcome.Subject
States = abc.Mapping[str, client.Provider]
# Attempts for a provider that other writers keep changing.
ROUNDS = 5
MAX_FUTILE = 3
"""Providers with a conflict that are retried even if no retry succeeds. More
of them would take most of the time that healthy providers wait."""


@dataclasses.dataclass(frozen=True)
class Context:
    """Nova, placement, the journal, and how requests are run in parallel."""

    ledger: journal.Ledger
    nova: reconcile.Source
    placement: client.Client
    rows: 'store.StoredRows | None' = None
    """None where no journal is used."""
    for_each: isolation.ForEach = isolation.in_turn
    display: reconcile.Progress = reconcile.Progress()
    batch: int = 200
    """Hosts per read of nova's truth; bounds memory and the time between
    reading the truth and writing to placement."""


@dataclasses.dataclass(frozen=True)
class Mode:
    """Limits of a converge."""

    always: bool = False
    """Write even when nothing differs. The new generation invalidates every
    write still in flight, so that a journal row may be closed afterwards."""
    before: source.Memberships = dataclasses.field(default_factory=dict)
    """Provider to what nova had for it before an operation. If that is the
    same now, ``always`` does not apply to it, unless it has several hosts."""
    prune: bool = True
    """Also remove stale associations with owned aggregates."""
    write: bool = True
    """Otherwise only compute the changes."""
    only: frozenset[str] = frozenset()
    """Aggregates that may be changed; empty means all."""
    down: source.Down | None = None
    """The cells that did not answer the comparison, if there was one; see
    ``reconcile.Source.read``. With it, only the given nodes of a host are
    converged, and what placement has in another spelling fails."""
    again_after_conflict: bool = True
    """Whether a provider is tried again after a conflict."""
    patience: float = 0.0
    """Seconds, from the begin of a batch, in which a provider that did not
    answer while others did is asked again, once the others are written."""


@dataclasses.dataclass(frozen=True)
class Decision:
    """What follows from nova's state for the providers that were read."""

    truth: source.Nova
    changes: abc.Mapping[str, Change]
    """Provider to its change, possibly empty, if it may be written."""
    providers: frozenset[str] = frozenset()
    """All that have to be converged; those not yet read follow."""


def converge(context: Context, dirty_hosts: abc.Collection[journal.Dirty],
             mode: Mode) -> Outcome:
    """Converge the compute nodes of hosts, and the nodes recorded for them.

    Nothing is raised for what fails: the outcome has it.
    """
    outcome = Outcome()
    names = frozenset(dirty.host for dirty in dirty_hosts)
    nodes = set[str]().union(*(dirty.nodes for dirty in dirty_hosts))
    ledger_error: exceptions.JournalUnavailable | None = None

    def decide(states: States) -> Decision:
        nonlocal ledger_error
        # Nova is read for the nodes of earlier rounds, too.
        nodes.update(states)
        current = {uuid: state.aggregates for uuid, state in states.items()}
        present = frozenset().union(*current.values())
        truth = context.nova.read(names, nodes, present, mode.down)
        outcome.truth = truth
        outcome.current |= current
        # Aggregates that nova has now are owned without a look-up.
        owned = frozenset(truth.aggregates)
        try:
            owned |= context.ledger.intersection(present - owned)
            if mode.write:
                # Before the PUT that adds them, so that they are owned.
                added = (truth.wanted(provider) - aggregates
                         for provider, aggregates in current.items())
                context.ledger.remember(frozenset().union(*added))
        except exceptions.JournalUnavailable as exc:
            # Without the ledger, current aggregates can be mirrored.
            ledger_error = ledger_error or exc
        # An unknown node is not converged before its cell answers.
        providers = nodes - truth.unknown.keys()
        if mode.down is None:
            providers |= truth.nodes_of(names)
        return Decision(truth, _plan(states, truth, owned, mode, outcome),
                        frozenset(providers))

    rounds = _Rounds(context, mode, outcome, decide)
    error = exceptions.failure_of(lambda: rounds.run(frozenset(nodes)))
    if ledger_error:
        # What was kept may be owned or foreign.
        outcome.kept.clear()
        outcome.failed |= {Subject(HOST, name): ledger_error for name in names}
    for dirty in dirty_hosts:
        outcome.conclude(dirty, error, whole=mode.down is None)
    return outcome


def _plan(states: States, truth: source.Nova, owned: frozenset[str],
          mode: Mode, outcome: Outcome) -> dict[str, Change]:
    """Compute a change, possibly empty, per provider that may be written."""
    changes = {}
    for provider, state in sorted(states.items()):
        # A node that no cell has belongs to no aggregate. While a cell does
        # not answer, the node may be in that cell.
        if provider in truth.unknown:
            continue
        change = Change.of(truth, provider, state.aggregates, owned, mode.only)
        if not mode.prune:
            change = dataclasses.replace(change, remove=())
        if mode.down is not None:
            change = _without_twins(change, state, outcome)
        if change or provider in outcome.kept:
            outcome.kept[provider] = state.aggregates - owned
        changes[provider] = change
    return changes


def _without_twins(change: Change, state: client.Provider, outcome: Outcome
                   ) -> Change:
    """Leave out, as failed, what the provider has in another spelling.

    A placement whose database ignores case keeps the first spelling. It would
    confirm each write, and the next comparison would find the same difference.
    """
    spellings = {uuids.canonical(uuid): uuid for uuid in state.aggregates}
    twins = {uuid: spellings[uuids.canonical(uuid)] for uuid in change.add
             if uuids.canonical(uuid) in spellings}
    if not twins:
        return change
    pairs = ['%s instead of %s' % (twin, uuid)
             for uuid, twin in sorted(twins.items())]
    subject = Subject(PROVIDER, change.provider)
    outcome.unwritten.add(subject)
    outcome.failed[subject] = exceptions.Contradiction(
        'placement has the provider in aggregate %s, which it does not find '
        'by nova\'s spelling' % ', '.join(pairs))
    return change.without(twins)


def remove(context: Context, uuid: str, mode: Mode,
           silent: abc.Iterable[str] = ()) -> Outcome:
    """Remove an aggregate that nova does not have from every provider.

    As the spec requires, this includes providers that are no compute nodes.

    :param silent: providers to leave out, because they did not answer
    """
    outcome = Outcome()

    def decide(states: States) -> Decision:
        truth = context.nova.read((), aggregates=[uuid])
        # If it was not deleted after all, nothing is changed. Nothing is left
        # to remove if another writer was first.
        changes = {} if uuid in truth.aggregates else {
            provider: Change(provider, remove=tuple(state.aggregates & {uuid}))
            for provider, state in sorted(states.items())}
        return Decision(truth, changes)

    answers = context.placement.ask(
        context.placement.members, [uuid], context.for_each, patience=math.inf)
    outcome.outage = answers.outage
    error = answers.failures.get(uuid)
    if uuid in answers.results:
        providers = answers.results[uuid].difference(silent)
        rounds = _Rounds(context, mode, outcome, decide)
        error = exceptions.failure_of(lambda: rounds.run(providers))
    error = error or outcome.outage
    if error:
        outcome.failed[Subject(AGGREGATE, uuid)] = error
    return outcome


class _Rounds:
    """GET every provider, decide from nova's truth, PUT; repeat until done."""

    def __init__(self, context: Context, mode: Mode, outcome: Outcome,
                 decide: abc.Callable[[States], Decision]) -> None:
        self._context = context
        self._decide = decide
        self._mode = mode
        self._outcome = outcome
        self._end = time.monotonic() + mode.patience
        self._patience = 0.0
        """Seconds of the last round, which asks those silent so far again; 0
        in the rounds before it."""
        self._silent: set[str] = set()
        self._deciding = threading.Lock()
        self._caller = contextvars.copy_context()

    def run(self, todo: frozenset[str]) -> None:
        """Converge providers; the outcome has those that fail.

        :raises MirrorError: nova cannot be read, or placement does not answer
        """
        handled = conflicts = frozenset[str]()
        again = self._mode.again_after_conflict
        for _ in range(ROUNDS):
            handled |= todo
            answers = self._ask(self._context.placement.get, sorted(todo))
            if answers.outage:
                raise answers.outage
            states = answers.results
            for provider in states:
                # It may have failed in an earlier round.
                self._outcome.failed.pop(Subject(PROVIDER, provider), None)
            decision, retried = self._decide(states), conflicts
            conflicts = self._write(states, decision)
            # Another round handles those that a later truth knows.
            handled -= states.keys() & decision.truth.unknown.keys()
            if len(retried) > MAX_FUTILE and conflicts.issuperset(retried):
                again = False
            todo = decision.providers - handled
            if again:
                todo |= conflicts
            if not todo and not self._patience:
                self._patience = self._end - time.monotonic()
                if self._patience > isolation.PATIENCE:
                    todo = frozenset(self._silent)
            if not todo or self._outcome.outage:
                break

    def _write(self, states: States, decision: Decision) -> frozenset[str]:
        """PUT each change; return the providers with a conflict."""
        first_errors = dict[str, exceptions.MirrorError]()

        def write(provider: str) -> None:
            if provider not in first_errors:
                try:
                    self._put(states[provider], decision)
                    return
                except exceptions.MirrorError as exc:
                    if not exc.is_repeatable:
                        raise
                    first_errors[provider] = exc
                    if exc.retry_after:
                        # ``isolation.ask`` pauses, and calls this again.
                        raise
            try:
                self._put_again(provider, first_errors[provider])
            except exceptions.OutOfTime:
                # Report the first error: the repetition had no time.
                raise first_errors[provider] from None

        failures = self._ask(write, decision.changes).failures
        self._outcome.unwritten |= {Subject(PROVIDER, provider) for provider in
                                    failures.keys() - self._outcome.missing}
        conflicts = {provider for provider, error in failures.items()
                     if isinstance(error, exceptions.GenerationConflict)}
        self._outcome.conflicts += len(conflicts)
        return frozenset(conflicts)

    def _put_again(self, provider: str, error: exceptions.MirrorError) -> None:
        """Begin again at the GET, with no other request between the attempts.

        Others could lead each attempt to the same one of several backends.

        :param error: of the first PUT, which may land until a second one has
        """
        state = self._context.placement.get(provider)
        # One read of nova at a time, without the deadline of the request.
        with self._deciding:
            decision = self._caller.run(self._decide, {provider: state})
        if not decision.changes:
            # By the new truth, nothing may be written.
            raise error
        last = contextvars.copy_context()
        last.run(transport.ATTEMPT.set, math.inf)
        last.run(self._put, state, decision, True)

    def _put(self, state: client.Provider, decision: Decision,
             is_due: bool = False) -> None:
        """Write the change of a provider, if it is due or necessary."""
        provider, mode, outcome = state.uuid, self._mode, self._outcome
        truth, change = decision.truth, decision.changes[provider]
        is_unchanged = provider not in truth.shared and (
            mode.before.get(provider) == truth.wanted(provider))
        is_needed = change or (mode.always and not is_unchanged)
        if mode.write and (is_due or is_needed):
            self._context.placement.put(state, change.apply(state.aggregates))
        elif mode.always:
            outcome.skipped_writes[provider] = state.generation
        subject = Subject(PROVIDER, provider)
        # With a part of its change left out it stays in ``failed``.
        if subject not in outcome.failed:
            outcome.unwritten.discard(subject)
            outcome.done.add(provider)
        if change:
            outcome.changes.append(change)
            if mode.write:
                _log(change, truth)
        self._context.display.advance()

    def _ask(self, request: abc.Callable[[str], isolation.Result],
             providers: abc.Collection[str]
             ) -> isolation.Answers[str, isolation.Result]:
        """Send a request about each provider; record what fails."""
        # A single provider delays no other.
        patience = self._patience or (
            self._mode.patience if len(providers) == 1 else 0.0)
        answers = self._context.placement.ask(
            request, providers, self._context.for_each, patience)
        failed, outage = self._outcome.failed, answers.outage
        self._outcome.outage = self._outcome.outage or outage
        for provider, error in answers.failures.items():
            if isinstance(error, exceptions.ProviderNotFound):
                self._outcome.missing.add(provider)
                continue
            failed[Subject(PROVIDER, provider)] = error
            if error.is_outage and not patience:
                self._silent.add(provider)
        if not outage:
            for provider in answers.unasked(providers):
                failed.setdefault(
                    Subject(PROVIDER, provider), exceptions.NotTried(
                        'not tried after %d other providers without an answer'
                        % len(self._silent)))
        return answers


def _log(change: Change, truth: source.Nova) -> None:
    text = change.describe(truth.aggregates)
    if change.provider in truth.nodes:
        LOG.info('Host %s (provider %s): %s',
                 truth.host_names(change.provider), change.provider, text)
    else:
        LOG.info('Provider %s: %s', change.provider, text)
