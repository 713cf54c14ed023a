# SPDX-License-Identifier: Apache-2.0
"""The promise, in a hundred thousand schedules; and each rule is needed.

A violation prints its schedule step by step, and its seed. To play that one
alone, set AGGREGATE_MIRROR_SEED to it.
"""

import logging
import os

import testtools
from testtools import content

from tests.simulation import mutants
from tests.simulation import plans
from tests.simulation import schedule

SCHEDULES = int(os.environ.get('AGGREGATE_MIRROR_SCHEDULES', 100000))
SEED = os.environ.get('AGGREGATE_MIRROR_SEED')
SHARES = 16
# In a quarter of these each mutant is caught; with other code in others.
ENOUGH = 12000


class TestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        # Nobody reads what is logged there, and it takes its time.
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)


class TestPromise(TestCase):

    def play(self, seeds):
        simulation = schedule.Simulation()
        for seed in seeds:
            wrong = simulation.play(seed)
            self.assertEqual('', wrong, wrong)

    def test_replay(self):
        """The schedule of one seed, if a person asks for it."""
        if SEED is None:
            self.skipTest('AGGREGATE_MIRROR_SEED names no seed to replay')
        self.play([int(SEED)])

    def test_same_again(self):
        """A seed is the same schedule whatever was played before."""
        def report(*before):
            simulation = schedule.Simulation(mutants.writes_only_differences)
            for seed in before:
                simulation.play(seed)
            return next(filter(None, map(simulation.play, range(1000))))

        self.assertEqual(report(), report(*range(2000, 2010)))


def _add_share(number):
    def test(self):
        """Crashes, pauses, outages and races: placement equals nova."""
        share = SCHEDULES // SHARES
        self.play(range(number * share, (number + 1) * share))

    setattr(TestPromise, 'test_schedules_%02d' % number, test)


for _number in range(SHARES):
    _add_share(_number)


class TestEverySchedule(TestCase):
    """Small worlds, of which no schedule within the bounds is left out."""

    def explore(self, *operations, members=(), preemptions=2, **bounds):
        count, wrong = schedule.Simulation().explore(
            plans.small(operations, members, **bounds), preemptions)
        self.assertEqual('', wrong, wrong)
        self.addDetail('schedules', content.text_content(str(count)))
        self.assertGreater(count, 1000)

    def test_add_and_a_kill(self):
        """A host is added beside an agent: one kill, two preemptions."""
        self.explore(('add', 1, 'h1'), agents=1, kills=1)

    def test_add_that_takes_long_and_a_kill(self):
        """The row may be overdue: time passes anywhere, one preemption."""
        self.explore(('add', 1, 'h1'), agents=1, kills=1, ticks=1,
                     preemptions=1)

    def test_add_and_a_failure(self):
        """The same with one request that fails, in each way."""
        self.explore(('add', 1, 'h1'), agents=1, faults=1)

    def test_remove_and_a_kill(self):
        """A host is removed beside an agent: one kill, two preemptions."""
        self.explore(('remove', 1, 'h1'), members=['h1'], agents=1, kills=1)

    def test_remove_and_a_failure(self):
        """The same with one request that fails, in each way."""
        self.explore(('remove', 1, 'h1'), members=['h1'], agents=1, faults=1)

    def test_remove_and_both(self):
        """One kill and one failure, each anywhere, and no preemption."""
        self.explore(('remove', 1, 'h1'), members=['h1'], agents=1, kills=1,
                     faults=1, preemptions=0)

    def test_delete_and_both(self):
        """An aggregate is deleted beside an agent, with one preemption."""
        self.explore(('delete', 1, ''), agents=1, kills=1, faults=1,
                     preemptions=1)

    def test_add_beside_remove(self):
        """Two workers on one host, one of them killed at any step."""
        self.explore(('add', 1, 'h1'), ('remove', 1, 'h1'), kills=1)

    def test_remove_beside_add(self):
        """The same with the host in the aggregate before."""
        self.explore(('add', 1, 'h1'), ('remove', 1, 'h1'), members=['h1'],
                     kills=1)


class TestRules(TestCase):
    """Without any of the rules the promise is broken, and it is seen."""


def _add_mutant(mutant):
    def test(self):
        if mutant in mutants.HOOKS:
            simulation = schedule.Simulation(hook=mutant)
        else:
            simulation = schedule.Simulation(mutate=mutant)
        for seed in range(ENOUGH):
            if simulation.play(seed):
                return
        self.fail('not seen in %d schedules' % ENOUGH)

    test.__doc__ = mutant.__doc__
    setattr(TestRules, 'test_' + mutant.__name__, test)


for _mutant in (*mutants.PARTS, *mutants.HOOKS):
    _add_mutant(_mutant)
