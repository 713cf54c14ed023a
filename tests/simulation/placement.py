# SPDX-License-Identifier: Apache-2.0
"""An in-memory placement: generations, conflicts and lost answers."""

from collections import abc
import contextlib
import dataclasses
import functools
import math

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import client
from tests.simulation import nova as simulated_nova
from tests.simulation import world as simulated


@dataclasses.dataclass(frozen=True)
class Write:
    """A PUT of a provider's aggregates."""

    provider: str
    aggregates: frozenset[str]
    generation: int | None
    """None is a client below microversion 1.19, which placement does not
    check."""
    ours: bool = False

    def __str__(self) -> str:
        return '%s of %s, generation %s' % (
            sorted(self.aggregates), self.provider, self.generation)


@dataclasses.dataclass(frozen=True)
class Failure:
    """What placement answers to requests for one provider."""

    method: str
    error: type[exceptions.MirrorError]

    def check(self, method: str) -> None:
        if method == self.method:
            raise self.error('%s fails for this provider' % method)


HEALTHY = Failure('', exceptions.ServiceFailed)
HANGS = Failure('GET', exceptions.DeadlineExceeded)
"""It is accepted, and never answered."""
LONGEST_REQUEST = 5.0
"""Seconds, as of the drain."""
BACKENDS = 3
"""Backends behind a load balancer, which answer in turn."""
FAILURES = (Failure('GET', exceptions.ServiceFailed),
            Failure('GET', exceptions.MalformedAnswer),
            Failure('PUT', exceptions.ServiceFailed),
            Failure('PUT', exceptions.GenerationConflict))


class Placement:
    """Resource providers; forbidden writes of this package are recorded."""

    def __init__(self, world: simulated.World,
                 nova: simulated_nova.Nova) -> None:
        self._world = world
        self._nova = nova
        self.providers: dict[str, client.Provider] = {}
        self.foreign: dict[str, frozenset[str]] = {}
        """Aggregates that other tools wrote with a generation; these must be
        kept."""
        self.added: set[str] = set()
        """Aggregates that this package has added a provider to."""
        self.failing: dict[str, Failure] = {}
        """Providers whose requests fail, all or those of one method."""
        self.has_sick_backend = False
        """Whether one of the backends answers each request with 503."""
        self.changed_at: dict[str, float] = {}
        """When each provider was last written."""
        self.served = 0
        """Requests so far, by which the backends take turns."""
        self._unchecked: set[str] = set()
        """Providers written without a generation since the last write that had
        one."""
        self._recreated: set[str] = set()
        """Providers recreated with generation 0: a write meant for the
        previous provider may be accepted."""

    def create(self, provider: str, *aggregates: str,
               foreign: abc.Iterable[str] = ()) -> None:
        """Create or recreate a provider."""
        if provider in self.foreign:
            self._recreated.add(provider)
        self.foreign[provider] = frozenset(foreign)
        self.providers[provider] = client.Provider(
            provider, self.foreign[provider].union(aggregates), 0)

    def delete(self, provider: str) -> None:
        del self.providers[provider]
        self.foreign[provider] = frozenset()

    def state(self, provider: str) -> client.Provider:
        if provider not in self.providers:
            raise exceptions.ProviderNotFound(provider)
        return self.providers[provider]

    def apply(self, write: Write) -> client.Provider:
        """Apply a PUT as placement does when it arrives."""
        now = self.state(write.provider)
        generation = now.generation
        if write.generation not in (None, generation):
            raise exceptions.GenerationConflict(write.provider)
        if write.ours:
            self._check(now, write)
        if write.generation is None:
            self._unchecked.add(write.provider)
        else:
            generation += 1
            self._unchecked.discard(write.provider)
        written = client.Provider(write.provider, write.aggregates, generation)
        self.providers[write.provider] = written
        self.changed_at[write.provider] = self._world.now
        return written

    def overwrite(self, provider: str, aggregates: frozenset[str]) -> None:
        """Write without a generation, as another tool: the last write wins."""
        before = self.state(provider).aggregates
        self.apply(Write(provider, aggregates, None))
        self.foreign[provider] &= aggregates
        self._meddle(provider, before ^ aggregates)

    def replace(self, state: client.Provider,
                aggregates: frozenset[str]) -> None:
        """Write with the generation that was read, as another tool.

        :raises GenerationConflict: the generation has changed
        """
        self.apply(Write(state.uuid, aggregates, state.generation))
        self.foreign[state.uuid] = aggregates - set(self._nova.ids.values())
        self._meddle(state.uuid, state.aggregates ^ aggregates)

    def _meddle(self, provider: str, changed: frozenset[str]) -> None:
        """Note a change of nova aggregates that only a full sync finds."""
        if changed & set(self._nova.ids.values()):
            self._world.disturbed.add(provider)

    def _check(self, now: client.Provider, write: Write) -> None:
        ever = set(self._nova.ids.values())
        removed = now.aggregates - write.aggregates
        added = write.aggregates - now.aggregates
        self.added |= added
        if write.provider in self._unchecked | self._recreated:
            # Losses that cannot be prevented.
            self.foreign[write.provider] &= write.aggregates
        elif removed - ever or added - ever:
            self._world.wrong.append('a foreign aggregate was touched by %s'
                                     % write)
        # An unmarked UUID that is absent from nova is kept there for 24 hours.
        if write.provider not in self._nova.nodes_ever and (
                added or removed - self._nova.deleted
                or not self._nova.restored
                and removed & self._nova.hosts_of.keys()):
            self._world.wrong.append('a foreign provider was touched by %s'
                                     % write)


class Client:
    """Placement, as a process of this package reaches it."""

    def __init__(self, world: simulated.World, placement: Placement) -> None:
        self._world = world
        self._placement = placement

    @contextlib.contextmanager
    def request_id(self, _request: str) -> abc.Iterator[None]:
        yield

    # The real methods: the order of their requests matters.
    ask = client.Client.ask

    is_connected = True
    provider_count: float = math.inf
    options = 'the simulation'

    def endpoint(self) -> str:
        return 'the simulation'

    def release(self) -> None:
        """Do nothing: there are no connections."""

    def probe(self) -> None:
        self._ask('probe')

    def get(self, provider: str) -> client.Provider:
        self._ask('GET %s', provider)
        failure = self._placement.failing.get(provider, HEALTHY)
        if failure is HANGS:
            # Tenths, because some of the time may have passed.
            self._world.now += min(
                LONGEST_REQUEST, round(deadline.remaining(), 1))
        failure.check('GET')
        state = self._placement.state(provider)
        self._answered('got %s, generation %d', state.aggregates,
                       state.generation)
        return state

    def put(self, provider: client.Provider,
            aggregates: frozenset[str]) -> client.Provider:
        write = Write(provider.uuid, aggregates, provider.generation, True)
        arrive = functools.partial(self._placement.apply, write)
        self._world.send(arrive, 'PUT %s', write)
        if self._is_sick():
            raise exceptions.ServiceFailed('answered 503')
        self._placement.failing.get(provider.uuid, HEALTHY).check('PUT')
        if self._fails():
            self._fail(simulated.Sent(arrive, 'PUT %s', (write,)))
        written = arrive()
        self._answered('written')
        return written

    def members(self, *aggregates: str) -> frozenset[str]:
        self._ask('member_of %s', frozenset(aggregates))
        found = frozenset(
            provider for provider, state in self._placement.providers.items()
            if state.aggregates & set(aggregates))
        self._answered('has %s', found)
        return found

    def providers(self, name: str = '') -> frozenset[str]:
        self._ask('list %s', name)
        if name:
            return frozenset()
        found = frozenset(self._placement.providers)
        self._answered('there are %s', found)
        return found

    def _is_sick(self) -> bool:
        """Check whether the sick backend has its turn."""
        self._placement.served += 1
        return (self._placement.has_sick_backend
                and self._placement.served % BACKENDS == 0)

    def _fails(self, chance: float = 0.12) -> bool:
        return self._world.down == 'placement' or self._world.fault(chance)

    def _fail(self, sent: simulated.Sent) -> None:
        """Lose or delay the write, or lose only its answer; then raise."""
        failure, landing = self._world.choices.fate()
        landing = simulated.LANDINGS[landing]
        self._world.say('lands %s, and fails', landing)
        if landing == 'late':
            self._world.late.append(sent)
        elif landing == 'at once':
            with contextlib.suppress(exceptions.MirrorError):
                sent.arrive()
        self._world.give_way('failed')
        raise simulated.FAILURES[failure]('PUT failed')

    def _ask(self, what: str, *about: object) -> None:
        self._world.give_way(what, *about)
        if self._is_sick():
            # The real client sends it again, to the next backend.
            self._is_sick()
        if self._fails(0.06):
            raise simulated.FAILURES[self._world.choices.failure()]('away')

    def _answered(self, what: str, *about: object) -> None:
        self._world.give_way(what, *about)
