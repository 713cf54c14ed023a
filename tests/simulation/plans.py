# SPDX-License-Identifier: Apache-2.0
"""Plans: what happens in a schedule, before its order is chosen."""

from collections import abc
import dataclasses
import random

from tests.simulation import bad_parts
from tests.simulation import events

# The hosts' clocks differ by up to two hours.
SKEWS = (-3600.0, 0.0, 0.0, 3600.0)

Operation = tuple[str, int, str]
"""Nova's method, an aggregate's number, and a host or an empty string."""

# The operations of an aggregate whose host is in no other aggregate.
WHOLE_LIFE: list[Operation] = [
    ('add', 1, 'h1'), ('remove', 1, 'h1'), ('delete', 1, '')]


@dataclasses.dataclass
class Plan:
    """A schedule's initial cloud, and the actors in it with their work."""

    hosts_of: dict[str, set[str]]
    nodes: dict[str, str]
    workers: dict[str, list[Operation]]
    """nova-api process to the requests that it receives."""
    agents: dict[str, tuple[int, bool]]
    """Agent process to the number of its drain steps, and whether it syncs."""
    skews: dict[str, float] = dataclasses.field(default_factory=dict)
    """Process to the clock error of its host, in seconds."""
    fed: bool = True
    """Whether the ledger initially has the aggregates that have hosts."""
    others: list[tuple[str, events.Event]] = dataclasses.field(
        default_factory=list, repr=False)
    command: bool = False
    """Whether an operator runs sync_aggregates."""
    shared: frozenset[str] = frozenset({'x'})
    """Aggregates of the provider that is not a compute node."""
    drift: frozenset[str] = frozenset()
    """Aggregates of h1's first node that nova does not have for it."""
    bad_part: bad_parts.BadPart | None = None
    """What is bad about a part of h2 until the end."""
    former: bool = False
    """Whether the last cell also has n1, on a host without host mapping."""
    faults: int = 0
    kills: int = 0
    ticks: int = 0
    eager: bool = False
    """Whether a process retries immediately after a failure."""
    unrest: float = 1.0
    """Factor on the probability that a request fails."""


def small(operations: abc.Iterable[Operation], members: abc.Iterable[str],
          agents: int = 0, faults: int = 0, kills: int = 0,
          ticks: int = 0) -> Plan:
    """Plan one host with one node, and one operation per API worker."""
    return Plan(
        hosts_of={'a': set(members)}, nodes={'n1': 'h1'},
        workers={'api-%d' % number: [operation]
                 for number, operation in enumerate(operations)},
        agents={'agent-%d' % number: (2, False) for number in range(agents)},
        faults=faults, kills=kills, ticks=ticks)


def by_chance(chance: random.Random) -> Plan:
    """Choose a random plan of a random kind."""
    nodes = {'n1': 'h1', 'n2': 'h2'}
    if chance.random() < 0.3:
        nodes['n3'] = 'h1'
    hosts_of = {uuid: {host for host in ('h1', 'h2') if chance.random() < 0.4}
                for uuid in ('a', 'b')}
    workers = {worker: _operations(chance) for worker in ('api-1', 'api-2')}
    agents = {agent: (chance.choice((1, 2, 3)), chance.random() < 0.3)
              for agent in ('agent-1', 'agent-2') if chance.random() < 0.6}
    others, command = events.some(chance), chance.random() < 0.05
    shared = 'xa' if chance.random() < 0.3 else 'x'
    plan = Plan(
        hosts_of=hosts_of, nodes=nodes, workers=workers, agents=agents,
        others=others, command=command, shared=frozenset(shared),
        faults=chance.choice((0, 1, 2, 4)), kills=chance.choice((0, 0, 1, 2)),
        ticks=chance.choice((0, 0, 1, 3)), eager=chance.random() < 0.5)
    plan.skews = {process: chance.choice(SKEWS)
                  for process in (*plan.workers, *plan.agents)}
    chance.choice(KINDS)(plan, chance)
    if chance.random() < 0.1:
        plan.bad_part = chance.choice(bad_parts.KINDS)
    plan.former = chance.random() < 0.1
    if plan.bad_part is None and chance.random() < 0.04:
        plan.bad_part = chance.choice(bad_parts.LATER_KINDS)
    return plan


def _of_any_kind(plan: Plan, chance: random.Random) -> None:
    """Keep the random plan as it is."""


def _whole_life(plan: Plan, chance: random.Random) -> None:
    """Give an aggregate its first host, remove it, delete the aggregate."""
    plan.hosts_of = {'a': set(), 'b': set()}
    plan.workers['api-1'] = WHOLE_LIFE
    plan.unrest = 3.0


def _few(plan: Plan, chance: random.Random) -> None:
    """Use one worker and one agent, and raise the number of failures."""
    plan.workers = {'api-1': plan.workers['api-1']}
    plan.agents = {'agent-1': (3, chance.random() < 0.3)}
    plan.kills, plan.faults, plan.unrest = 1, 4, 2.0


def _slow(plan: Plan, chance: random.Random) -> None:
    """Make an API worker slow, so that the agent sees its row overdue."""
    _few(plan, chance)
    plan.agents = {'agent-1': (8, False)}
    plan.ticks = 4


def _beside_a_command(plan: Plan, chance: random.Random) -> None:
    """Let an operator sync while an API worker runs and may be killed."""
    plan.hosts_of['a'] = set()
    plan.workers = {'api-1': [('add', 1, 'h1')]}
    plan.agents, plan.others = {}, []
    plan.kills, plan.faults, plan.command = 1, 0, True


def _beside_a_sync(plan: Plan, chance: random.Random) -> None:
    """Add and remove one host during a full sync."""
    plan.workers = {
        worker: [(method, 1, 'h1') for method in methods]
        for worker, methods in (('api-1', ('add', 'remove')),
                                ('api-2', ('remove', 'add')))}
    plan.agents = {'agent-1': (1, True)}


def _reverted(plan: Plan, chance: random.Random) -> None:
    """Let two API workers revert each other's operation, with few failures."""
    plan.hosts_of['a'] = {'h1'} if chance.random() < 0.5 else set()
    plan.workers = {'api-1': [('add', 1, 'h1')],
                    'api-2': [('remove', 1, 'h1')]}
    plan.agents = {'agent-1': (1, True)} if chance.random() < 0.3 else {}
    plan.others, plan.faults, plan.command = [], 0, False


def _on_drift(plan: Plan, chance: random.Random) -> None:
    """Add a host that placement has already, while a full sync prunes it."""
    plan.hosts_of['a'], plan.drift = set(), frozenset({'a'})
    plan.workers = {'api-1': [('add', 1, 'h1')]}
    plan.agents, plan.others = {'agent-1': (1, True)}, []
    plan.kills, plan.faults, plan.command = 1, 0, False


def _without_hooks(plan: Plan, chance: random.Random) -> None:
    """Run operations in another nova-api, without this package."""
    plan.hosts_of['b'] = {'h1'} if chance.random() < 0.5 else set()
    plan.fed = False
    plan.agents = {'agent-1': (1, True)}
    plan.others = [('elsewhere', events.without_hook)]


def _deletion(plan: Plan, chance: random.Random) -> None:
    """Delete an aggregate that also has a shared storage provider."""
    plan.hosts_of['a'] = {'h1'} if chance.random() < 0.5 else set()
    plan.shared = frozenset({'x', 'a'})
    begun = bool(plan.hosts_of['a'])
    plan.workers = {'api-1': [*WHOLE_LIFE[begun:]]}
    plan.agents = {'agent-1': (2, True)}
    plan.unrest = 3.0


Kind = abc.Callable[[Plan, random.Random], None]
KINDS: tuple[Kind, ...] = (
    *[_of_any_kind] * 8, *[_whole_life] * 3, *[_few] * 2,
    *[_slow] * 3, *[_beside_a_command] * 2, *[_beside_a_sync] * 3,
    *[_reverted] * 3, *[_on_drift] * 2, *[_without_hooks] * 2,
    *[_deletion] * 2)


def _operations(chance: random.Random) -> list[Operation]:
    return [_operation(chance) for _ in range(chance.choice((1, 1, 2)))]


def _operation(chance: random.Random) -> Operation:
    method = chance.choice(('add', 'add', 'remove', 'remove', 'delete'))
    return (method, chance.choice((1, 1, 2)),
            '' if method == 'delete' else chance.choice(('h1', 'h1', 'h2')))
