# SPDX-License-Identifier: Apache-2.0
"""One schedule: a small cloud, what happens in it, and its verdict."""

from collections import abc
import functools
import random

from oslo_config import cfg

import nova_aggregate_mirror.conf
from tests.simulation import bad_parts
from tests.simulation import choices
from tests.simulation import events
from tests.simulation import nova as simulated_nova
from tests.simulation import plans
from tests.simulation import processes
from tests.simulation import rest
from tests.simulation import threads
from tests.simulation import world as simulated


DRAIN = {'threaded': True, 'skip_late': True}
SYNC = {'threaded': True}
"""How the loops of an agent read cells; see ``databases.source``."""
Mutate = abc.Callable[[processes.Parts], object]


class Surprise(Exception):
    """An unexpected exception; the message has the steps that led to it."""


class Simulation:
    """A player of schedules that share one database and configuration.

    :param clock: in use
    :param mutate: changes the parts of a process, to show that the simulation
        detects it
    :param hook: the class of the hook
    """

    def __init__(self, clock: threads.Clock,
                 mutate: Mutate = lambda parts: None,
                 hook: type[processes.Mirror] = processes.Mirror) -> None:
        self._clock = clock
        self.conf = cfg.ConfigOpts()
        self.conf.register_opts([cfg.StrOpt('state_path', default='/nowhere')])
        nova_aggregate_mirror.conf.register_opts(self.conf)
        self.conf([], default_config_files=[], default_config_dirs=[])
        self.conf.set_override('cell_timeout', processes.CELL_TIMEOUT,
                               'aggregate_mirror')
        self.database = processes.Memory()
        self._mutate = mutate
        self._hook = hook

    def play(self, seed: int) -> str:
        """Play a schedule; return what broke the promise, with its trace."""
        wrong = self._play(plans.by_chance(random.Random(seed)),
                           choices.Random(seed))
        return wrong and 'seed %d: %s' % (seed, wrong)

    def explore(self, plan: plans.Plan, preemptions: int) -> tuple[int, str]:
        """Play every schedule of a small plan.

        :param preemptions: how often an actor that could continue may be
            preempted
        :returns: the number of schedules, and what broke the promise
        """
        every = choices.Exhaustive(preemptions)
        # Thousands of schedules end in the same few states.
        kept: set[str] = set()
        while every.again():
            wrong = self._play(plan, every, kept)
            if wrong:
                return every.count, wrong
        return every.count, ''

    def _play(self, plan: plans.Plan, chooser: choices.Choices,
              kept: set[str] | None = None) -> str:
        self.database.clear()
        self.conf.set_override('inline_backoff', 0.0 if plan.eager else 30.0,
                               'aggregate_mirror')
        world = simulated.World(chooser)
        self._clock.begin(world)
        cloud = processes.Cloud(world, self.conf, self.database, self._clock)
        try:
            _found(cloud, plan)
            self._start(cloud, plan)
            world.run()
            wrong = self._judge(cloud, plan, kept)
        except Exception as exc:
            raise Surprise('%s\n%s' % (plan, world.trace())) from exc
        finally:
            world.close()
        return wrong and '%s\n%s\n%s' % (wrong, plan, world.trace())

    def _judge(self, cloud: processes.Cloud, plan: plans.Plan,
               kept: set[str] | None) -> str:
        """Return what broke the promise.

        :param kept: states in which the promise is kept, added to; None for
            random schedules, which rarely end in the same state
        """
        state = ''
        # What is late makes further choices.
        if kept is not None and not cloud.world.late:
            state = rest.state(cloud)
            if state in kept:
                return ''
        wrong = rest.judge(
            cloud, self._parts(cloud, 'agent-9', **DRAIN),
            self._parts(cloud, 'agent-9', **SYNC), plan.bad_part)
        if state and not wrong:
            kept.add(state)
        return wrong

    def _parts(self, cloud: processes.Cloud, process: str,
               skew: float = 0.0, **reads: bool) -> processes.Parts:
        parts = processes.Parts(cloud, process, skew, **reads)
        self._mutate(parts)
        return parts

    def _start(self, cloud: processes.Cloud, plan: plans.Plan) -> None:
        world, start = cloud.world, cloud.world.start
        world.faults, world.unrest = plan.faults, plan.unrest
        world.kills, world.ticks = plan.kills, plan.ticks
        for name, operations in plan.workers.items():
            hook = self._hook(self._parts(
                cloud, name, plan.skews.get(name, 0.0)))
            start(name, functools.partial(
                processes.serve, hook, cloud, name, operations))
        for name, (steps, syncs) in plan.agents.items():
            # Threads of one process, which are killed together.
            skew = plan.skews.get(name, 0.0)
            start(name, functools.partial(
                processes.drain_journal, self._parts(
                    cloud, name, skew, **DRAIN), steps))
            if syncs:
                start(name, functools.partial(
                    processes.sync, self._parts(
                        cloud, name, skew, **SYNC)))
        if plan.command:
            start('command', functools.partial(
                processes.command, self._parts(
                    cloud, 'command', **SYNC)))
        for name, event in plan.others:
            start(name, functools.partial(event, cloud), mortal=False)


def _found(cloud: processes.Cloud, plan: plans.Plan) -> None:
    """Create the initial cloud: mirrored, and entered in the ledger."""
    nova, placement = cloud.nova, cloud.placement
    nova.ids = {1: 'a', 2: 'b', 3: 'c'}
    # Add an aggregate with its own host: an empty nova would trip the brake.
    nova.hosts_of = {uuid: set(hosts) for uuid, hosts in (
        *plan.hosts_of.items(), ('c', {'h9'}))}
    if plan.former:
        nova.former = {'n1': simulated_nova.FORMER_HOST}
        nova.hosts_of.setdefault('b', set()).add(simulated_nova.FORMER_HOST)
    bad_parts.begin(cloud, plan.bad_part)
    for node, host in (*plan.nodes.items(), ('n9', 'h9')):
        nova.boot(node, host)
        is_first = node == 'n1'
        placement.create(node, *nova.wanted(node),
                         *(plan.drift if is_first else ()),
                         foreign={'x'} if is_first else ())
    placement.create(events.SHARED, *plan.shared - {'x'}, foreign={'x'})
    if plan.fed:
        processes.Parts(cloud, 'before').journal.ledger.remember(
            uuid for uuid, hosts in nova.hosts_of.items() if hosts)
