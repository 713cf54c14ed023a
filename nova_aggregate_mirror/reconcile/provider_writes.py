# SPDX-License-Identifier: Apache-2.0
"""Convergence of providers to nova's current state, in a fixed order of I/O.

Per provider: GET its aggregates and generation, *then* read nova's truth,
*then* PUT with that generation; on a conflict start again at the GET.

Long because this order serves hosts and deletions alike.
"""

from collections import abc
import dataclasses

from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.reconcile import context
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import plan
from nova_aggregate_mirror import source
from nova_aggregate_mirror import uuids

LOG = logging.getLogger(__name__)

AGGREGATE, HOST, PROVIDER = (
    outcome.AGGREGATE, outcome.HOST, outcome.PROVIDER)
Outcome = outcome.Outcome
Subject = outcome.Subject
States = abc.Mapping[str, client.Provider]
Silent = dict[Subject, exceptions.MirrorError]

BATCH = 200
"""Hosts per read of nova's truth; bounds memory and the time between reading
the truth and writing to placement."""

# Attempts for a provider that other writers keep changing.
ROUNDS = 5

# Providers with a conflict that are retried even if no retry succeeds. More
# of them would take most of the time that healthy providers wait.
MAX_FUTILE = 3

# Providers without an answer after which no others of their batch are asked.
# Each of them takes the time of a request.
MAX_SILENT = 3


@dataclasses.dataclass(frozen=True)
class Mode:
    """Limits of a converge."""

    always: bool = False
    """Write even when nothing differs. The new generation invalidates every
    write still in flight, so that a journal row may be closed afterwards."""
    before: source.Memberships = dataclasses.field(default_factory=dict)
    """What nova had for a provider; while it has that, ``always`` is false."""
    prune: bool = True
    """Also remove stale associations with owned aggregates."""
    write: bool = True
    """Otherwise only compute the changes."""
    only: frozenset[str] = frozenset()
    """Aggregates that may be changed; empty means all."""
    down: abc.Mapping[str, str] | None = None
    """The cells that did not answer the comparison, if the difference was
    found by one; see ``source.Source.read``. Only the given nodes of a host
    are converged then."""
    retries: bool = True
    """Whether a provider is tried again after a conflict."""
    silent: Silent | None = None
    """Providers without an answer while placement answered other requests, to
    their errors; grows. None: an error of this kind is always an outage."""


@dataclasses.dataclass(frozen=True)
class Decision:
    """The changes of the providers that were read, by nova's truth."""

    truth: source.Nova
    changes: list[plan.Change]
    """A change, possibly empty, for each provider that may be written."""
    nodes: frozenset[str] = frozenset()
    """All providers that have to be converged."""


Decide = abc.Callable[[States], Decision]


def converge(context: context.Context, dirty: abc.Collection[journal.Dirty],
             mode: Mode) -> Outcome:
    """Converge the compute nodes of hosts, and the nodes recorded for them.

    Nothing is raised for what fails: the outcome has it.
    """
    outcome = Outcome()
    names = frozenset(request.host for request in dirty)
    nodes = {node for request in dirty for node in request.nodes}
    truth: source.Nova | None = None
    unsure: exceptions.JournalUnavailable | None = None

    def decide(states: States) -> Decision:
        nonlocal truth, unsure
        nodes.update(states)
        present = frozenset().union(*(state.aggregates
                                      for state in states.values()))
        truth = context.nova.read(names, nodes, present, mode.down)
        # Aggregates that nova has now are owned without a look-up.
        owned = frozenset(truth.aggregates)
        try:
            owned |= context.ledger.intersection(present - owned)
            if mode.write:
                context.ledger.remember(_added(truth, states))
        except exceptions.JournalUnavailable as exc:
            # Current aggregates can be mirrored without it.
            unsure = unsure or exc
        # A node that was unknown is found once its cell answers.
        providers = nodes - truth.unknown.keys()
        if mode.down is None:
            providers |= truth.nodes_of(names)
        return Decision(truth, _plan(states, truth, owned, mode, outcome),
                        frozenset(providers))

    error: exceptions.MirrorError | None = None
    try:
        _rounds(context, frozenset(nodes), decide, mode, outcome)
    except exceptions.MirrorError as exc:
        error = exc
    for request in dirty:
        outcome.conclude(request, truth, error, whole=mode.down is None)
    if unsure:
        # What is kept may be owned or foreign.
        outcome.kept.clear()
        for request in dirty:
            outcome.unfinished.setdefault(request, unsure)
            outcome.failed.setdefault(Subject(HOST, request.host), unsure)
    return outcome


def _added(truth: source.Nova, states: States) -> frozenset[str]:
    """Return the aggregates that at least one of the providers lacks."""
    return frozenset().union(*(truth.wanted(provider) - state.aggregates
                               for provider, state in states.items()))


def _plan(states: States, truth: source.Nova, owned: frozenset[str],
          mode: Mode, outcome: Outcome) -> list[plan.Change]:
    """Compute a change, possibly empty, per provider that may be written."""
    changes = []
    for provider, state in sorted(states.items()):
        # A node that no cell has belongs to no aggregate. While a cell does
        # not answer, the node may be in that cell.
        if provider in truth.unknown:
            continue
        change = plan.change(
            truth, provider, state.aggregates, owned, mode.only)
        if not mode.prune:
            change = dataclasses.replace(change, remove=())
        if mode.down is not None:
            change = _without_twins(change, state, outcome)
        foreign = state.aggregates - owned
        if change and foreign:
            outcome.kept[provider] = foreign
        changes.append(change)
    return changes


def _without_twins(change: plan.Change, state: client.Provider,
                   outcome: Outcome) -> plan.Change:
    """Leave out what the provider has, but in another spelling.

    A placement whose database ignores case keeps the first spelling. It would
    confirm each write, and the next comparison would find the same difference.
    """
    spellings = {uuids.canonical(uuid): uuid for uuid in state.aggregates}
    twins = {uuid: spellings[uuids.canonical(uuid)] for uuid in change.add
             if uuids.canonical(uuid) in spellings}
    if not twins:
        return change
    subject = Subject(PROVIDER, change.provider)
    outcome.unwritten.add(subject)
    outcome.failed[subject] = exceptions.Contradiction(
        'placement has the provider in aggregate %s, which it does not find '
        'by nova\'s spelling' % ', '.join(
            '%s instead of %s' % (twin, uuid)
            for uuid, twin in sorted(twins.items())))
    return dataclasses.replace(change, add=tuple(
        uuid for uuid in change.add if uuid not in twins))


def remove(context: context.Context, uuid: str, mode: Mode) -> Outcome:
    """Remove an aggregate that nova does not have from every provider.

    This includes providers that are not compute nodes, as the mirroring spec
    requires.
    """
    outcome = Outcome()

    def decide(states: States) -> Decision:
        truth = context.nova.read((), aggregates=[uuid])
        if uuid in truth.aggregates:
            return Decision(truth, [])
        return Decision(truth, [
            plan.Change(provider, remove=tuple({uuid} & state.aggregates))
            for provider, state in sorted(states.items())])

    try:
        _rounds(context, context.placement.members(uuid), decide, mode,
                outcome)
    except exceptions.MirrorError as exc:
        outcome.failed[Subject(AGGREGATE, uuid)] = exc
    return outcome


def _rounds(context: context.Context, todo: frozenset[str], decide: Decide,
            mode: Mode, outcome: Outcome) -> None:
    """GET every provider, decide from nova's truth, PUT; repeat until done."""
    handled: frozenset[str] = frozenset()
    conflicts: dict[str, exceptions.MirrorError] = {}
    given_up: dict[str, exceptions.MirrorError] = {}
    for _ in range(ROUNDS):
        handled |= todo
        states = _get(context, todo, mode, outcome)
        decision = decide(states)
        retried = frozenset(conflicts)
        conflicts = _write(context, states, decision, mode, outcome)
        outcome.conflicts += len(conflicts)
        handled -= states.keys() & decision.truth.unknown.keys()
        is_futile = len(retried) > MAX_FUTILE and retried <= conflicts.keys()
        if is_futile or not mode.retries:
            given_up |= conflicts
            conflicts = {}
        todo = frozenset(conflicts) | (decision.nodes - handled)
        if not todo:
            break
    outcome.failed |= {Subject(PROVIDER, provider): exc for provider, exc
                       in (given_up | conflicts).items()}


def _get(context: context.Context, providers: abc.Iterable[str], mode: Mode,
         outcome: Outcome) -> States:
    states = {}

    def get(provider: str) -> None:
        try:
            states[provider] = context.placement.get(provider)
        except exceptions.ProviderNotFound:
            outcome.missing.add(provider)
        except exceptions.OUTAGE:
            raise
        except exceptions.MirrorError as exc:
            outcome.failed[Subject(PROVIDER, provider)] = exc

    context.each(isolated(get, context, mode.silent, outcome),
                 sorted(providers))
    return states


def _write(context: context.Context, states: States, decision: Decision,
           mode: Mode, outcome: Outcome) -> dict[str, exceptions.MirrorError]:
    """PUT each change; return the providers with a generation conflict."""
    conflicts: dict[str, exceptions.MirrorError] = {}
    changes = {change.provider: change for change in decision.changes}

    def write(provider: str) -> None:
        try:
            _put(context.placement, states[provider], changes[provider],
                 decision.truth, mode, outcome)
        except exceptions.GenerationConflict as exc:
            conflicts[provider] = exc
        else:
            context.display.advance()

    context.each(isolated(write, context, mode.silent, outcome), changes)
    return conflicts


def isolated(request: abc.Callable[[str], None], context: context.Context,
             silent: Silent | None, outcome: Outcome, kind: str = PROVIDER
             ) -> abc.Callable[[str], None]:
    """Return the request of a provider, for ``each``.

    With ``Mode.silent``, a provider without an answer fails by itself while
    placement answers other requests.
    """
    if silent is None:
        return request
    before = len(silent)

    def ask(provider: str) -> None:
        key, subject = Subject(PROVIDER, provider), Subject(kind, provider)
        if key in silent:
            outcome.failed[subject] = silent[key]
        elif len(silent) >= before + MAX_SILENT:
            outcome.failed[subject] = exceptions.NotTried(
                'not tried after %d other providers without an answer'
                % (len(silent) - before))
        else:
            try:
                request(provider)
            except (exceptions.ServiceUnreachable,
                    exceptions.DeadlineExceeded) as exc:
                try:
                    context.placement.probe()
                except exceptions.MirrorError:
                    raise exc from None
                outcome.failed[subject] = silent[key] = exc

    return ask


def _put(placement: client.Client, state: client.Provider,
         change: plan.Change, truth: source.Nova, mode: Mode,
         outcome: Outcome) -> None:
    provider, subject = change.provider, Subject(PROVIDER, change.provider)
    is_unchanged = (provider not in truth.shared and
                    mode.before.get(provider) == truth.wanted(provider))
    try:
        if mode.write and (change or (mode.always and not is_unchanged)):
            placement.put(state, change.apply(state.aggregates))
        elif mode.always:
            outcome.skipped_writes[provider] = state.generation
    except exceptions.ProviderNotFound:
        outcome.missing.add(provider)
        return
    except exceptions.MirrorError as exc:
        outcome.unwritten.add(subject)
        if isinstance(exc, (
                exceptions.GenerationConflict, *exceptions.OUTAGE)):
            raise
        outcome.failed[subject] = exc
        return
    if subject not in outcome.failed:
        outcome.unwritten.discard(subject)
        outcome.done.add(provider)
    if change:
        outcome.changes.append(change)
        if mode.write:
            _log(change, truth)


def _log(change: plan.Change, truth: source.Nova) -> None:
    text = change.describe(truth.aggregates)
    if change.provider in truth.nodes:
        LOG.info('Host %s (provider %s): %s',
                 truth.host_names(change.provider), change.provider, text)
    else:
        LOG.info('Provider %s: %s', change.provider, text)
