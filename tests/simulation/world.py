# SPDX-License-Identifier: Apache-2.0
"""Nova, placement, the clock and who runs next: everything but our code.

An actor is a greenlet. It gives way before and after whatever reaches out of
its process, and the scheduler goes on with any of them. An actor that is
killed is never gone on with, as after SIGKILL: not even its ``finally`` runs.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import dataclasses
import functools
from typing import Protocol

import greenlet

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import report
from nova_aggregate_mirror import source
from nova_aggregate_mirror import workers

FOREIGN = 'foreign'
FATES = ('refused', 'late', 'unanswered')


class NovaError(Exception):
    """Nova's method failed, before or after it did something."""


@dataclasses.dataclass
class Write:
    """A PUT on its way; ``generation`` None is a client below 1.19."""

    provider: str
    aggregates: frozenset[str]
    generation: int | None


class Choices(Protocol):
    """Who runs next, and what goes wrong."""

    def next(self, world: 'World', ready: list['Actor'],
             last: 'Actor | None') -> tuple[str, 'Actor | None']:
        """``go`` on with an actor, ``kill`` it, or ``deliver`` first."""

    def fault(self, chance: float) -> bool:
        """Whether something fails now."""

    def among(self, count: int) -> int:
        """One of so many."""

    def likely(self) -> bool:
        """Yes, more often than not."""


class Actor:
    """A process, or a thread of one."""

    def __init__(self, world: 'World', process: str,
                 run: Callable[[], object], mortal: bool) -> None:
        self.process = process
        self.mortal = mortal
        self.on_its_way: Callable[[], object] | None = None
        """What may still arrive when the process is killed now."""
        self.greenlet = greenlet.greenlet(run, parent=world.hub)

    @property
    def done(self) -> bool:
        return self.greenlet.dead


class World:
    """One schedule.

    :param choices: who makes every choice
    :param faults: how many requests may fail
    :param kills: how many processes may be killed
    """

    def __init__(self, choices: 'Choices', faults: int = 0,
                 kills: int = 0) -> None:
        self.choices = choices
        self.faults = faults
        self.kills = kills
        self.unrest = 1.0
        """How much more often than else a request fails."""
        self.now = 1000.0
        self.hub = greenlet.getcurrent()
        self.actors: list[Actor] = []
        self.dead: set[str] = set()
        self.late: list[Callable[[], object]] = []
        """What arrives although nobody waits for it any more."""
        self.disturbed = ''
        """What only a full sync puts right."""
        # Nova.
        self.ids: dict[int, str] = {}
        self.hosts_of: dict[str, set[str]] = {}
        self.nodes: dict[str, str] = {}
        # Placement.
        self.aggregates: dict[str, frozenset[str]] = {}
        self.generations: dict[str, int] = {}
        self.trace: list[str] = []

    # The scheduler.

    def start(self, process: str, run: Callable[[], object],
              mortal: bool = True) -> None:
        self.actors.append(Actor(self, process, run, mortal))

    def run(self) -> None:
        """Go on until every actor is done or dead."""
        last = None
        while True:
            ready = [actor for actor in self.actors
                     if not actor.done and actor.process not in self.dead]
            if not ready:
                return
            what, last = self.choices.next(self, ready, last)
            if what == 'deliver':
                self.deliver()
            elif what == 'kill':
                self.kill(last)
            else:
                last.greenlet.switch()

    def kill(self, actor: Actor) -> None:
        self.kills -= 1
        self.dead.add(actor.process)
        self.say('killed %s' % actor.process)
        for other in self.actors:
            if other.process == actor.process and other.on_its_way:
                if self.choices.likely():
                    self.late.append(other.on_its_way)
                other.on_its_way = None

    def deliver(self) -> None:
        """Let something arrive that its sender no longer waits for."""
        arrive = self.late.pop(self.choices.among(len(self.late)))
        with contextlib.suppress(exceptions.MirrorError, NovaError):
            arrive()
            self.say('arrived late')

    def close(self) -> None:
        """Unwind what is left; whatever it tries is refused."""
        for actor in self.actors:
            if not actor.done:
                self.dead.add(actor.process)
                actor.greenlet.throw()

    def give_way(self, what: str) -> None:
        """Let the scheduler choose who runs next."""
        current = greenlet.getcurrent()
        if current is self.hub:
            return
        self._refuse_the_dead()
        self.hub.switch()
        self._refuse_the_dead()
        self.say(what)

    def _refuse_the_dead(self) -> None:
        actor = self.current()
        if actor is not None and actor.process in self.dead:
            raise greenlet.GreenletExit

    def current(self) -> Actor | None:
        here = greenlet.getcurrent()
        return next((actor for actor in self.actors
                     if actor.greenlet is here), None)

    def say(self, what: str) -> None:
        actor = self.current()
        self.trace.append('%s: %s' % (actor.process if actor else '-', what))

    def fault(self, chance: float = 0.12) -> bool:
        if not self.faults or not self.choices.fault(chance * self.unrest):
            return False
        self.faults -= 1
        return True

    # Placement.

    def create(self, provider: str, aggregates: Iterable[str] = ()) -> None:
        self.aggregates[provider] = frozenset(aggregates)
        self.generations[provider] = 0

    def apply(self, write: Write) -> report.Provider:
        provider = write.provider
        if provider not in self.aggregates:
            raise exceptions.ProviderNotFound(provider)
        if write.generation is not None:
            if write.generation != self.generations[provider]:
                raise exceptions.GenerationConflict(provider)
            self.generations[provider] += 1
        self.aggregates[provider] = write.aggregates
        return self.state(provider)

    def state(self, provider: str) -> report.Provider:
        if provider not in self.aggregates:
            raise exceptions.ProviderNotFound(provider)
        return report.Provider(provider, self.aggregates[provider],
                               self.generations[provider])

    # Nova.

    def commit(self, method: str, number: int, host: str) -> None:
        """What nova's method does; it may fail before or after that."""
        def late() -> None:
            # The row was judged before: rule 12.
            self.disturbed = 'late commit'
            self._commit(method, self.ids.get(number, ''), host)

        actor = self.current()
        actor.on_its_way = late
        self.give_way('%s of %d, host %s' % (method, number, host or '-'))
        actor.on_its_way = None
        self._commit(method, self.ids.get(number, ''), host)
        if self.fault(0.05):
            raise NovaError('committed, and failed then')

    def _commit(self, method: str, uuid: str, host: str) -> None:
        hosts = self.hosts_of.get(uuid)
        if (hosts is None or (method == 'add' and host in hosts)
                or (method == 'remove' and host not in hosts)
                or (method == 'delete' and hosts)):
            raise NovaError('refused')
        if method == 'add':
            hosts.add(host)
        elif method == 'remove':
            hosts.discard(host)
        else:
            del self.hosts_of[uuid]

    def wanted(self, node: str) -> frozenset[str]:
        host = self.nodes.get(node)
        return frozenset(uuid for uuid, hosts in self.hosts_of.items()
                         if host in hosts)


class Report:
    """Placement, as one process of ours reaches it."""

    def __init__(self, world: World) -> None:
        self._world = world

    @contextlib.contextmanager
    def deadline(self, _seconds: float) -> Iterator[None]:
        yield

    @contextlib.contextmanager
    def request_id(self, _request: str) -> Iterator[None]:
        yield

    def endpoint(self) -> str:
        return 'the simulation'

    def probe(self) -> None:
        self._ask('probe')

    def get(self, provider: str) -> report.Provider:
        self._ask('GET %s' % provider)
        state = self._world.state(provider)
        self._world.give_way('got %s' % state)
        return state

    def put(self, provider: report.Provider,
            aggregates: frozenset[str]) -> report.Provider:
        world, actor = self._world, self._world.current()
        write = Write(provider.uuid, aggregates, provider.generation)
        if actor is not None:
            actor.on_its_way = functools.partial(world.apply, write)
        world.give_way('PUT %s' % write)
        if actor is not None:
            actor.on_its_way = None
        if world.fault():
            return self._fail(write)
        written = world.apply(write)
        world.give_way('PUT answered')
        return written

    def _fail(self, write: Write) -> report.Provider:
        """Refused, delayed beyond our patience, or only the answer lost."""
        world = self._world
        fate = FATES[world.choices.among(len(FATES))]
        world.say(fate)
        if fate == 'refused':
            raise exceptions.PlacementUnreachable(fate)
        if fate == 'late':
            world.late.append(functools.partial(world.apply, write))
        else:
            with contextlib.suppress(exceptions.MirrorError):
                world.apply(write)
        world.give_way('timed out')
        raise exceptions.DeadlineExceeded(fate)

    def members(self, *aggregates: str) -> frozenset[str]:
        self._ask('member_of %s' % (aggregates,))
        found = frozenset(
            provider for provider, has in self._world.aggregates.items()
            if has & set(aggregates))
        self._world.give_way('has %s' % sorted(found))
        return found

    def providers(self) -> frozenset[str]:
        self._ask('list')
        return frozenset(self._world.aggregates)

    def memberships(self, aggregates: Iterable[str],
                    unlikely: Iterable[str] = (),
                    each: workers.Each | None = None) -> source.Memberships:
        self._ask('list')
        found = {provider: set() for provider in self._world.aggregates}
        for aggregate in sorted({*aggregates, *unlikely}):
            for provider in self.members(aggregate):
                found.setdefault(provider, set()).add(aggregate)
        return {provider: frozenset(has) for provider, has in found.items()}

    def _ask(self, what: str) -> None:
        self._world.give_way(what)
        if self._world.fault(0.06):
            raise exceptions.PlacementUnreachable('refused')


class Source:
    """Nova's databases, as one process of ours reads them."""

    def __init__(self, world: World) -> None:
        self._world = world

    def place(self, aggregate_id: int, host: str = '') -> source.Place:
        self._world.give_way('place')
        uuid = self._world.ids.get(aggregate_id, '')
        return source.Place(
            uuid if uuid in self._world.hosts_of else '',
            frozenset(node for node, on in self._world.nodes.items()
                      if host and on == host))

    def aggregates(self) -> dict[str, str]:
        self._world.give_way('aggregates')
        return {uuid: uuid for uuid in self._world.hosts_of}

    def read(self, hosts: Iterable[str], nodes: Iterable[str] = (),
             aggregates: Iterable[str] = ()) -> source.Nova:
        self._world.give_way('truth')
        wanted, asked = set(hosts), set(nodes)
        return self.truth({node: host for node, host
                           in self._world.nodes.items()
                           if host in wanted or node in asked},
                          set(aggregates))

    def read_all(self) -> source.Nova:
        self._world.give_way('all truth')
        return self.truth(dict(self._world.nodes), set(self._world.hosts_of))

    def truth(self, nodes: dict[str, str],
              aggregates: set[str]) -> source.Nova:
        hosts_of = self._world.hosts_of
        hosts = {host for hosts in hosts_of.values() for host in hosts}
        return source.Nova(
            aggregates={uuid: uuid for uuid in hosts_of
                        if uuid in aggregates},
            members={host: frozenset(uuid for uuid, has in hosts_of.items()
                                     if host in has) for host in hosts},
            nodes=nodes)
