# SPDX-License-Identifier: Apache-2.0
"""Placement in memory: generations, conflicts, and answers that get lost."""

from collections.abc import Iterable
import contextlib
import dataclasses
import functools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import report
from tests.simulation import nova as simulated_nova
from tests.simulation import world as simulated


@dataclasses.dataclass(frozen=True)
class Write:
    """A PUT on its way."""

    provider: str
    aggregates: frozenset[str]
    generation: int | None
    """None is a client below 1.19, which placement does not check."""
    ours: bool = False


class Placement:
    """Providers; whatever we may not do to them is noted when we do it."""

    def __init__(self, world: simulated.World,
                 nova: simulated_nova.Nova) -> None:
        self._world = world
        self._nova = nova
        self.providers: dict[str, report.Provider] = {}
        self.foreign: dict[str, frozenset[str]] = {}
        """What other tools wrote with a generation: it has to stay."""
        self._unchecked: set[str] = set()
        """Providers that were written without one."""

    def create(self, provider: str, *aggregates: str,
               foreign: Iterable[str] = ()) -> None:
        """A provider is made, or made anew."""
        self.foreign[provider] = frozenset(foreign)
        self.providers[provider] = report.Provider(
            provider, self.foreign[provider].union(aggregates), 0)

    def delete(self, provider: str) -> None:
        del self.providers[provider]
        self.foreign[provider] = frozenset()

    def state(self, provider: str) -> report.Provider:
        if provider not in self.providers:
            raise exceptions.ProviderNotFound(provider)
        return self.providers[provider]

    def apply(self, write: Write) -> report.Provider:
        """What placement does when a PUT arrives."""
        now = self.state(write.provider)
        generation = now.generation
        if write.generation is None:
            self._unchecked.add(write.provider)
            self.foreign[write.provider] &= write.aggregates
        elif write.generation != generation:
            raise exceptions.GenerationConflict(write.provider)
        else:
            generation += 1
        if write.ours and write.provider not in self._unchecked:
            self._check(now, write)
        written = report.Provider(write.provider, write.aggregates, generation)
        self.providers[write.provider] = written
        return written

    def associate(self, provider: str, aggregate: str,
                  state: report.Provider) -> None:
        """Another tool adds an association, with the generation it read."""
        self.apply(Write(provider, state.aggregates | {aggregate},
                         state.generation))
        self.foreign[provider] |= {aggregate} - set(self._nova.ids.values())

    def _check(self, now: report.Provider, write: Write) -> None:
        ever = set(self._nova.ids.values())
        removed = now.aggregates - write.aggregates
        added = write.aggregates - now.aggregates
        if removed - ever or added - ever:
            self._world.wrong.append('a foreign aggregate was touched by %s'
                                     % write)
        if write.provider not in self._nova.nodes_ever and (
                added or removed & self._nova.hosts_of.keys()):
            self._world.wrong.append('a foreign provider was touched by %s'
                                     % write)


class Report:
    """Placement, as one process of ours reaches it."""

    def __init__(self, world: simulated.World, placement: Placement) -> None:
        self._world = world
        self.placement = placement
        self.deadline = world.within

    @contextlib.contextmanager
    def request_id(self, _request: str):
        yield

    # The real one: the order of its requests matters.
    memberships = report.ReportClient.memberships

    def endpoint(self) -> str:
        return 'the simulation'

    def probe(self) -> None:
        self._ask('probe')

    def get(self, provider: str) -> report.Provider:
        self._ask('GET %s', provider)
        state = self.placement.state(provider)
        self._answered('got %s', state)
        return state

    def put(self, provider: report.Provider,
            aggregates: frozenset[str]) -> report.Provider:
        world, actor = self._world, self._world.current()
        write = Write(provider.uuid, aggregates, provider.generation, True)
        world.patience()
        arrive = functools.partial(self.placement.apply, write)
        if actor is not None:
            actor.on_its_way = arrive
        world.give_way('PUT %s', write)
        if actor is not None:
            actor.on_its_way = None
        if world.down == 'placement' or world.fault():
            failure, landing = world.choices.fate()
            landing = simulated.LANDINGS[landing]
            world.say('lands %s, and fails', landing)
            if landing == 'late':
                world.late.append(arrive)
            elif landing == 'at once':
                with contextlib.suppress(exceptions.MirrorError):
                    arrive()
            world.give_way('failed')
            raise simulated.FAILURES[failure]('PUT failed')
        written = arrive()
        self._answered('PUT answered')
        return written

    def members(self, *aggregates: str) -> frozenset[str]:
        self._ask('member_of %s', aggregates)
        found = frozenset(
            provider for provider, state in self.placement.providers.items()
            if state.aggregates & set(aggregates))
        self._answered('has %s', found)
        return found

    def providers(self) -> frozenset[str]:
        self._ask('list')
        return frozenset(self.placement.providers)

    def _ask(self, what: str, *about: object) -> None:
        self._world.patience()
        self._world.give_way(what, *about)
        if self._world.down == 'placement' or self._world.fault(0.06):
            raise simulated.FAILURES[self._world.choices.fate()[0]]('away')

    def _answered(self, what: str, *about: object) -> None:
        self._world.give_way(what, *about)
        self._world.patience()
