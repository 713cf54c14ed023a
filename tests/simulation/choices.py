# SPDX-License-Identifier: Apache-2.0
"""Who makes the choices of a schedule: chance, or one after the other."""

import random


class Random:
    """By chance, and always the same for one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def next(self, world, ready, last):
        chance = self._random.random()
        if world.late and chance < 0.15:
            return 'deliver', last
        # Half of the time whoever ran goes on: long runs of one actor are as
        # telling as short ones.
        if last not in ready or self._random.random() < 0.5:
            last = self._random.choice(ready)
        if world.kills and last.mortal and chance > 0.93:
            return 'kill', last
        return 'go', last

    def fault(self, chance: float) -> bool:
        return self._random.random() < chance

    def among(self, count: int) -> int:
        return self._random.randrange(count)

    def likely(self) -> bool:
        return self._random.random() < 0.6


class Exhaustive:
    """All of them: each schedule makes the first choice not made before.

    :param preemptions: how often an actor may be left for another one although
        it could go on
    """

    def __init__(self, preemptions: int) -> None:
        self.count = 0
        self._preemptions = preemptions
        self._left = 0
        self._path: list[list[int]] = []
        """What was chosen of how many, from the beginning."""
        self._depth = 0

    def again(self) -> bool:
        """Whether there is one more schedule; it begins then."""
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

    def next(self, world, ready, last):
        free = last not in ready
        options = [('go', last)] if not free else []
        if free or self._left:
            options += [('go', actor) for actor in ready if actor is not last]
        if world.late:
            options.append(('deliver', last))
        if world.kills:
            options += [('kill', actor) for actor in ready if actor.mortal
                        and (free or actor is last)]
        what, actor = options[self.among(len(options))]
        if what == 'go' and not free and actor is not last:
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
