# SPDX-License-Identifier: Apache-2.0
"""One schedule: a small cloud, what happens in it, and if the promise held."""

from collections.abc import Callable
import contextlib
import dataclasses
import logging
import random

from oslo_config import cfg

from nova_aggregate_mirror import agent
from nova_aggregate_mirror import conf as mirror_conf
from nova_aggregate_mirror.db import engine
from nova_aggregate_mirror.db import models
from nova_aggregate_mirror import hooks
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import mirror
from nova_aggregate_mirror import reconciler
from tests.simulation import choices
from tests.simulation import world as simulated

ROUNDS = 12
METHODS = {'add': 'add_host_to_aggregate',
           'remove': 'remove_host_from_aggregate',
           'delete': 'delete_aggregate'}


class Owner:
    """Who a process is; the dead are known to whoever asks."""

    def __init__(self, world: simulated.World, name: str) -> None:
        self._world = world
        self._name = name

    def token(self) -> str:
        return self._name

    def is_mine(self, token: str) -> bool:
        return token == self._name

    def can_tell(self, token: str) -> bool:
        return bool(token)

    def is_dead(self, token: str) -> bool:
        return token in self._world.dead


class Journal(journal.Journal):
    """The real one; each of its transactions is a step of the schedule."""

    world: simulated.World

    def _run(self, work):
        self.world.give_way('journal')
        return super()._run(work)


class Figures:
    def __getattr__(self, name: str) -> Callable:
        return lambda *args, **kwargs: None


@dataclasses.dataclass
class Parts:
    """What a process is made of, in the way of ``mirror._Process``."""

    journal: Journal
    source: simulated.Source
    report: simulated.Report
    reconciler: reconciler.Reconciler
    resume_at: float = 0.0
    silence: str = ''


class Mirror(mirror.Mirror):
    """The real hook, in a process of the simulation."""

    def __init__(self, conf: cfg.ConfigOpts, parts: Parts) -> None:
        self._conf = conf
        self._parts = parts

    def _process(self) -> Parts:
        return self._parts


def _never_empty(world: simulated.World) -> None:
    """One more host, in one more aggregate; an empty nova is suspicious."""
    world.ids[3], world.hosts_of['c'] = 'c', {'h9'}
    world.nodes['n9'] = 'h9'
    world.create('n9', 'c')


def _move_a_node(world: simulated.World) -> None:
    """An ironic node comes up on another host."""
    world.give_way('n1 moves')
    world.disturbed = 'moved'
    world.nodes['n1'] = 'h2'


def _recreate_a_provider(world: simulated.World) -> None:
    """nova-compute finds its provider gone and makes it anew."""
    world.give_way('n2 is recreated')
    world.disturbed = 'recreated'
    world.create('n2')


def _meddle(world: simulated.World) -> None:
    """Another tool puts a provider into an aggregate of ours."""
    world.give_way('meddling')
    world.disturbed = 'meddled'
    state = world.state('n2')
    world.apply(simulated.Write('n2', state.aggregates | {'a'},
                                state.generation))


DISTURBANCES = (_move_a_node, _recreate_a_provider, _meddle)


class Simulation:
    """Plays schedules, one database and configuration for all of them.

    :param mutate: changes the parts of a process, to show that it is seen
    :param hook: the class of the hook
    """

    def __init__(self, mutate: Callable[[Parts], object] = lambda parts: None,
                 hook: type[Mirror] = Mirror) -> None:
        self.conf = cfg.ConfigOpts()
        self.conf.register_opts([cfg.StrOpt('state_path', default='/nowhere')])
        mirror_conf.register_opts(self.conf)
        self.conf([], default_config_files=[], default_config_dirs=[])
        self.conf.set_override('connection', 'sqlite://',
                               'aggregate_mirror_database')
        self.database = engine.Database(self.conf)
        self.database.prepare()
        self._mutate = mutate
        self._hook = hook

    def play(self, seed: int) -> str:
        """Play one schedule; what broke the promise, with its trace."""
        self._clear()
        chance = random.Random(seed)
        world = simulated.World(choices.Random(seed),
                                faults=chance.choice((0, 1, 2, 4)),
                                kills=chance.choice((0, 0, 1, 2)))
        wrong = self._play(world, lambda: self._begin(world, chance))
        return wrong and 'seed %d: %s' % (seed, wrong)

    def explore(self, operations: list[tuple[str, int, str]],
                members: set[str], agents: int, faults: int, kills: int,
                preemptions: int) -> tuple[int, str]:
        """Play every schedule of a small world.

        :param operations: one for each API worker
        :param members: hosts of the first aggregate before
        :param preemptions: how often an actor may be left for another one
            although it could go on
        :returns: how many schedules, and what broke the promise
        """
        every = choices.Exhaustive(preemptions)
        while every.again():
            self._clear()
            world = simulated.World(every, faults, kills)
            wrong = self._play(world, lambda: self._begin_small(
                world, operations, members, agents))
            if wrong:
                return every.count, wrong
        return every.count, ''

    def _play(self, world: simulated.World,
              begin: Callable[[], bool]) -> str:
        logging.disable(logging.CRITICAL)
        try:
            foreign = begin()
            world.run()
            wrong = self._rest(world) or _wrong(world, foreign)
        finally:
            world.close()
            logging.disable(logging.NOTSET)
        return wrong and '%s\n%s' % (wrong, '\n'.join(world.trace))

    def _clear(self) -> None:
        with self.database.transaction() as connection:
            for table in models.metadata.sorted_tables:
                connection.execute(table.delete())

    def _begin_small(self, world: simulated.World,
                     operations: list[tuple[str, int, str]],
                     members: set[str], agents: int) -> bool:
        world.ids, world.nodes = {1: 'a'}, {'n1': 'h1'}
        world.hosts_of['a'] = set(members)
        _never_empty(world)
        self.parts(world, 'before').journal.remember(['a'])
        world.create('n1', world.wanted('n1'))
        for number, operation in enumerate(operations):
            name = 'api-%d' % number
            world.start(name, self._worker(world, name, [operation]))
        for number in range(agents):
            name = 'agent-%d' % number
            world.start(name, self._agent(world, name, syncs=False))
        return False

    def parts(self, world: simulated.World, process: str) -> Parts:
        kept = Journal(self.conf, now=lambda: world.now, jitter=lambda: 1.0,
                       owner=Owner(world, process), database=self.database)
        kept.world = world
        source, report = simulated.Source(world), simulated.Report(world)
        parts = Parts(kept, source, report,
                      reconciler.Reconciler(kept, source, report))
        self._mutate(parts)
        return parts

    def _begin(self, world: simulated.World, chance) -> bool:
        world.ids = {1: 'a', 2: 'b'}
        world.nodes = {'n1': 'h1', 'n2': 'h2'}
        if chance.random() < 0.3:
            world.nodes['n3'] = 'h1'
        _never_empty(world)
        whole_life = chance.random() < 0.2
        for uuid in ('a', 'b'):
            world.hosts_of[uuid] = {
                host for host in ('h1', 'h2')
                if chance.random() < 0.4 and not whole_life}
        self.parts(world, 'before').journal.remember(world.hosts_of)
        for node in world.nodes:
            world.create(node, world.wanted(node))
        plans = {worker: [self._operation(chance)
                          for _ in range(chance.choice((1, 1, 2)))]
                 for worker in ('api-1', 'api-2')}
        if whole_life:
            # Of an aggregate, with one host that was in no other.
            world.unrest = 3.0
            plans['api-1'] = [('add', 1, 'h1'), ('remove', 1, 'h1'),
                              ('delete', 1, '')]
        for worker, operations in plans.items():
            world.start(worker, self._worker(world, worker, operations))
        for name in ('agent-1', 'agent-2'):
            if chance.random() < 0.6:
                world.start(name, self._agent(
                    world, name, chance.random() < 0.3))
        disturb = chance.choice((*DISTURBANCES, *[None] * 20))
        if disturb:
            world.start('disturbance', lambda: disturb(world), mortal=False)
        foreign = chance.random() < 0.25
        if foreign:
            world.start('foreign', self._foreign(world), mortal=False)
        return foreign

    def _operation(self, chance) -> tuple[str, int, str]:
        method = chance.choice(('add', 'add', 'remove', 'remove', 'delete'))
        return (method, chance.choice((1, 1, 2)),
                '' if method == 'delete' else chance.choice(('h1', 'h1',
                                                             'h2')))

    def _worker(self, world: simulated.World, process: str,
                operations: list[tuple[str, int, str]]) -> Callable:
        parts = self.parts(world, process)
        hook = self._hook(self.conf, parts)

        def run() -> None:
            for number, (method, aggregate, host) in enumerate(operations):
                parts.resume_at = 0.0
                operation = hooks.Operation(
                    METHODS[method], aggregate, host,
                    'req-%s-%d' % (process, number))
                kept = hook.before(operation)
                try:
                    world.commit(method, aggregate, host)
                except simulated.NovaError as exc:
                    world.say('nova: %s' % exc)
                    hook.failed = True
                finally:
                    hook.after(operation, kept)

        return run

    def _agent(self, world: simulated.World, process: str,
               syncs: bool) -> Callable:
        parts = self.parts(world, process)

        def run() -> None:
            drain = agent.Drain(parts.journal, parts.source, parts.report,
                                Figures(), now=lambda: world.now)
            drain._reconciler = parts.reconciler
            drain.step()
            if syncs:
                agent.Sync(self.conf, parts.reconciler, Figures(),
                           now=lambda: world.now).step()
            drain.step()

        return run

    def _foreign(self, world: simulated.World) -> Callable:
        def run() -> None:
            while True:
                world.give_way('foreign GET')
                state = world.state('n1')
                world.give_way('foreign PUT')
                with contextlib.suppress(
                        simulated.exceptions.GenerationConflict):
                    world.apply(simulated.Write(
                        'n1', state.aggregates | {simulated.FOREIGN},
                        state.generation))
                    return

        return run

    def _rest(self, world: simulated.World) -> str:
        """Nothing happens any more, and an agent drains.

        It syncs only if something happened that nothing else puts right.
        """
        world.faults = world.kills = 0
        parts = self.parts(world, 'agent-9')
        drain = agent.Drain(parts.journal, parts.source, parts.report,
                            Figures(), now=lambda: world.now)
        drain._reconciler = parts.reconciler
        for _round in range(ROUNDS):
            while world.late and world.choices.likely():
                world.deliver()
            drain.step()
            world.now += 61
            if not parts.journal.rows():
                break
        while world.late:
            world.deliver()
        if world.disturbed:
            agent.Sync(self.conf, parts.reconciler, Figures(),
                       now=lambda: world.now).step()
        rows = parts.journal.rows()
        return 'rows left: %s' % rows if rows else ''


def _wrong(world: simulated.World, foreign: bool) -> str:
    for node in sorted(world.nodes):
        wanted = set(world.wanted(node))
        if foreign and node == 'n1':
            wanted.add(simulated.FOREIGN)
        if world.aggregates[node] != wanted:
            return '%s is in %s and should be in %s' % (
                node, sorted(world.aggregates[node]), sorted(wanted))
    return ''
