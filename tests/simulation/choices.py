# SPDX-License-Identifier: Apache-2.0
"""The choices of a schedule: at random, or exhaustively."""

import random
from typing import Protocol

from tests.simulation import world as simulated

Actor = simulated.Actor
Actors = list[simulated.Actor]
Next = tuple[str, simulated.Actor | None]


class Choices(Protocol):
    """The choices: which actor runs next, and what fails."""

    def next(self, world: simulated.World, ready: Actors,
             last: Actor | None) -> Next:
        """Choose an action: ``go``, ``kill``, ``deliver`` or ``tick``."""

    def fault(self, chance: float) -> bool:
        """Choose whether a request fails now."""

    def among(self, count: int) -> int:
        """Choose a number below ``count``."""

    def likely(self) -> bool:
        """Choose yes or no; yes is the more likely answer."""

    def failure(self) -> int:
        """Choose how a request fails: an index into ``FAILURES``."""

    def fate(self) -> tuple[int, int]:
        """Choose how a write fails and when it lands: ``LANDINGS``."""


class Random:
    """Random choices, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        # Vary the schedules: processes die early or late, and pauses are rare
        # or common.
        self._deadly = self._random.choice((0.93, 0.98))
        self._sleepy = self._random.choice((0.01, 0.05))
        self._paused: Actor | None = None
        self._until = 0
        self._step = 0

    def next(self, world: simulated.World, ready: Actors,
             last: Actor | None) -> Next:
        self._step += 1
        chance = self._random.random()
        if world.late and chance < 0.12:
            return 'deliver', last
        if 0.12 <= chance < 0.12 + 0.02 * world.ticks:
            return 'tick', last
        if 0.3 <= chance < 0.3 + self._sleepy:
            # A long pause of an actor in the middle of its work.
            self._paused = self._random.choice(ready)
            self._until = self._step + self._random.choice((10, 40, 1000))
        if self._step < self._until:
            ready = [actor for actor in ready
                     if actor is not self._paused] or ready
        # Continue the same actor half of the time: long runs of an actor find
        # as many errors as short runs.
        if last not in ready or self._random.random() < 0.5:
            last = self._random.choice(ready)
        if world.kills and last.mortal and chance > self._deadly:
            return 'kill', last
        return 'go', last

    def fault(self, chance: float) -> bool:
        return self._random.random() < chance

    def among(self, count: int) -> int:
        return self._random.randrange(count)

    def likely(self) -> bool:
        return self._random.random() < 0.6

    def failure(self) -> int:
        return self.among(len(simulated.FAILURES))

    def fate(self) -> tuple[int, int]:
        return self.failure(), self.among(len(simulated.LANDINGS))


class Exhaustive:
    """All choices, depth first: each schedule takes the next untaken path.

    :param preemptions: how often an actor that could continue may be preempted
    """

    def __init__(self, preemptions: int) -> None:
        self.count = 0
        self._preemptions = preemptions
        self._left = 0
        self._path: list[list[int]] = []
        """Per choice on the current path: the option taken, and the number of
        options."""
        self._depth = 0

    def again(self) -> bool:
        """Start the next schedule; return False when all are done."""
        if self.count:
            while self._path and self._path[-1][0] + 1 == self._path[-1][1]:
                self._path.pop()
            if not self._path:
                return False
            self._path[-1][0] += 1
        self.count += 1
        self._depth = 0
        self._left = self._preemptions
        return True

    def next(self, world: simulated.World, ready: Actors,
             last: Actor | None) -> Next:
        free = last not in ready
        options: list[Next] = [('go', last)] if not free else []
        if free or self._left:
            options += [('go', actor) for actor in ready if actor is not last]
            options += [('tick', last)] * bool(world.ticks)
        if world.late:
            options.append(('deliver', last))
        if world.kills:
            options += [('kill', actor) for actor in ready if actor.mortal
                        and (free or actor is last)]
        what, actor = options[self.among(len(options))]
        if not free and (what == 'tick' or what == 'go' and actor is not last):
            self._left -= 1
        return what, actor

    def fault(self, _chance: float) -> bool:
        return bool(self.among(2))

    def among(self, count: int) -> int:
        if self._depth == len(self._path):
            self._path.append([0, count])
        chosen, known = self._path[self._depth]
        assert known == count, 'a schedule is not the same twice'
        self._depth += 1
        return chosen

    def likely(self) -> bool:
        return not self.among(2)

    def failure(self) -> int:
        # Placement is unavailable; or only this request failed.
        return (0, 2)[self.among(2)]

    def fate(self) -> tuple[int, int]:
        # Refused; timed out, landing late or at once; 500, but applied.
        return ((0, 0), (1, 1), (1, 2), (2, 2))[self.among(4)]
