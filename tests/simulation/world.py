# SPDX-License-Identifier: Apache-2.0
"""The simulated scheduler and clock.

An actor is a greenlet. It yields before and after every access outside of its
process, and the scheduler then resumes any of them. A killed actor is never
resumed, as after SIGKILL: not even its ``finally`` runs.
"""

from collections import abc
import dataclasses
from typing import TYPE_CHECKING

import greenlet

from nova_aggregate_mirror import exceptions

if TYPE_CHECKING:
    from tests.simulation import choices as simulated_choices

FAILURES = (exceptions.ServiceUnreachable, exceptions.DeadlineExceeded,
            exceptions.ServiceFailed)
LANDINGS = ('never', 'late', 'at once')
# Seconds. All ticks of a schedule are less than ``max_call_age``.
TICKS = (3.0, 20.0, 65.0)


class NovaError(Exception):
    """Failure of nova's method, before or after its commit."""


@dataclasses.dataclass(frozen=True)
class Sent:
    """A request in flight from a process to its target."""

    arrive: abc.Callable[[], object]
    what: str
    about: tuple = ()


class Actor:
    """A thread of a process."""

    def __init__(self, world: 'World', process: str,
                 run: abc.Callable[[], object], mortal: bool) -> None:
        self.process = process
        self.mortal = mortal
        self.on_its_way: Sent | None = None
        """The request that may still arrive if the process is killed now."""
        self.may_go_on: abc.Callable[[], bool] | None = None
        """The condition that it waits for."""
        self.greenlet = greenlet.greenlet(run, parent=world.hub)


class World:
    """The actors and the state of one schedule.

    :param choices: makes every choice
    """

    def __init__(self, choices: 'simulated_choices.Choices') -> None:
        self.choices = choices
        self.faults = 0
        """How many requests may still fail."""
        self.kills = 0
        """How many processes may still be killed."""
        self.ticks = 0
        """How often the clock may still advance while actors run."""
        self.unrest = 1.0
        """Factor on the probability that a request fails."""
        self.down = ''
        """What is unavailable now: placement, nova, a cell or the journal."""
        self.now = 1000.0
        self.hub = greenlet.getcurrent()
        self.dead: set[str] = set()
        self.late: list[Sent] = []
        """Requests that arrive after their sender stopped waiting."""
        self.disturbed: set[str] = set()
        """Compute nodes that only a full sync repairs."""
        self.wrong: list[str] = []
        """Violations of the promise seen before the end."""
        self._actors: dict[greenlet.greenlet, Actor] = {}
        self._trace: list[tuple] = []

    def start(self, process: str, run: abc.Callable[[], object],
              mortal: bool = True) -> None:
        actor = Actor(self, process, run, mortal)
        self._actors[actor.greenlet] = actor

    def run(self) -> None:
        """Run until every actor is done or dead."""
        last = None
        while True:
            alive = [actor for actor in self._actors.values()
                     if not actor.greenlet.dead
                     and actor.process not in self.dead]
            if not alive:
                return
            # If no waiting actor's condition can come true any more, all
            # continue.
            ready = [actor for actor in alive
                     if not actor.may_go_on or actor.may_go_on()] or alive
            what, last = self.choices.next(self, ready, last)
            if what == 'deliver':
                self.deliver()
            elif what == 'tick':
                self.ticks -= 1
                self.now += TICKS[self.choices.among(len(TICKS))]
                self.say('it is %s', self.now)
            elif what == 'kill':
                self.kill(last)
            else:
                last.greenlet.switch()

    def kill(self, actor: Actor) -> None:
        self.kills -= 1
        self.dead.add(actor.process)
        self.say('killed %s', actor.process)
        for other in self._actors.values():
            if other.process == actor.process and other.on_its_way:
                if self.choices.likely():
                    self.late.append(other.on_its_way)
                other.on_its_way = None

    def deliver(self) -> None:
        """Deliver a request whose sender no longer waits for it."""
        sent = self.late.pop(self.choices.among(len(self.late)))
        self.say('late: ' + sent.what, *sent.about)
        try:
            sent.arrive()
        except (exceptions.MirrorError, NovaError) as exc:
            self.say('%s', exc)

    def close(self) -> None:
        """Unwind the remaining actors; their further requests are refused."""
        for actor in self._actors.values():
            if not actor.greenlet.dead:
                self.dead.add(actor.process)
                actor.greenlet.throw()

    def give_way(self, what: str, *about: object) -> None:
        """Yield to the scheduler."""
        actor = self.current()
        if actor is not None:
            if actor.process not in self.dead:
                self.hub.switch()
            if actor.process in self.dead:
                raise greenlet.GreenletExit
        self.say(what, *about)

    def wait(self, until: abc.Callable[[], bool]) -> None:
        """Wait for a condition, or until nothing else can run."""
        actor = self.current()
        actor.may_go_on = until
        self.give_way('wakes up')
        actor.may_go_on = None

    def send(self, arrive: abc.Callable[[], object], what: str,
             *about: object) -> None:
        """Yield while a request is in flight."""
        actor = self.current()
        if actor is not None:
            actor.on_its_way = Sent(arrive, what, about)
        self.give_way(what, *about)
        if actor is not None:
            actor.on_its_way = None

    def current(self) -> Actor | None:
        """Return the running actor; None at rest."""
        return self._actors.get(greenlet.getcurrent())

    def say(self, what: str, *about: object) -> None:
        """Add a step to the trace, as text or immutable values."""
        actor = self.current()
        self._trace.append((actor.process if actor else '-', what, about))

    def trace(self) -> str:
        """Render the trace, a line per step."""
        lines = []
        for process, what, about in self._trace:
            step = what % tuple(map(_told, about))
            lines.append('%s: %s' % (process, step))
        return '\n'.join(lines)

    def fault(self, chance: float = 0.12) -> bool:
        """Choose whether this request fails."""
        if not self.faults or not self.choices.fault(chance * self.unrest):
            return False
        self.faults -= 1
        return True


def _told(value: object) -> object:
    """Render equal values as equal text, regardless of element order."""
    if isinstance(value, frozenset):
        return '{%s}' % ', '.join(sorted(value))
    return value
