# SPDX-License-Identifier: Apache-2.0
"""Kill -9 at any instruction: an agent makes placement equal to nova.

A child of this process is nova-api, or an agent: it has their code, nova's
databases on disk, and placement behind a socket. It is killed with SIGKILL.
"""

import os
import random
import select
import signal
import statistics
import time

from nova import context as nova_context
from nova import objects
import testtools
from testtools import content

from nova_aggregate_mirror import agent
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import report
from nova_aggregate_mirror.source import database
from tests import fixtures

CONF = fixtures.CONF
API_RUNS = int(os.environ.get('AGGREGATE_MIRROR_API_KILLS', 200))
AGENT_RUNS = int(os.environ.get('AGGREGATE_MIRROR_AGENT_KILLS', 100))
SEED = int(os.environ.get('AGGREGATE_MIRROR_SEED', 0)) or time.time_ns()
STEPS = 20
CALLS = 7
PATIENCE = 60


class Figures:
    def __getattr__(self, name):
        return lambda *args, **kwargs: None


def die(*_args, **_kwargs):
    os.kill(os.getpid(), signal.SIGKILL)


def dies_before(_real):
    return die


def dies_after(real):
    def wrapper(*args, **kwargs):
        real(*args, **kwargs)
        die()
    return wrapper


# Name of the step, what is replaced, and how.
MOMENTS = {
    'after record': (journal.Journal, 'record', dies_after),
    'before the GET': (report.ReportClient, 'get', dies_before),
    'after the GET': (report.ReportClient, 'get', dies_after),
    'before the PUT': (report.ReportClient, 'put', dies_before),
    'after the PUT': (report.ReportClient, 'put', dies_after),
    'before complete': (journal.Journal, 'complete', dies_before),
    'after complete': (journal.Journal, 'complete', dies_after),
}
COMMITS = {
    'add': (objects.Aggregate, 'add_host', dies_after),
    'remove': (objects.Aggregate, 'delete_host', dies_after),
    'delete': (objects.Aggregate, 'destroy', dies_after),
}


class CrashTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.mirror()
        self.zone = self.cloud.create_aggregate('zone', 'az1')
        self.rack = self.cloud.create_aggregate('rack')
        self.one = self.cloud.create_host('h1')
        self.many = self.cloud.create_host('h2', nodes=2)
        self.journal = None
        self.later = 0.0

    def mirror(self):
        self.useFixture(fixtures.MirroredNova())

    def killed(self, run, moment=None, within=None, event=None):
        """Run in a child that is killed at a moment, or within seconds.

        :param event: of this process, at which it is killed
        :returns: whether it was killed, and not done before
        """
        child = os.fork()
        if not child:
            try:
                if moment:
                    owner, name, how = moment
                    setattr(owner, name, how(getattr(owner, name)))
                run()
            finally:
                os._exit(0)
        if within is not None:
            ended = os.pidfd_open(child)
            poll = select.poll()
            poll.register(ended, select.POLLIN)
            # Returns when it has ended, or when its time is up.
            poll.poll(within * 1000)
            os.close(ended)
            os.kill(child, signal.SIGKILL)
        elif event:
            event.wait(PATIENCE)
            os.kill(child, signal.SIGKILL)
        killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        self.assertTrue(event is None or event.is_set(), 'it never came')
        return killed

    def drain(self, kept):
        return agent.Drain(kept, database.DatabaseSource(),
                           report.ReportClient(CONF), Figures())

    def heal(self):
        """An agent at work; time passes quickly between its steps."""
        if self.journal is None:
            self.journal = journal.Journal(
                CONF, now=lambda: time.time() + self.later)
        drain = self.drain(self.journal)
        for _step in range(STEPS):
            drain.step()
            self.later += 61
            if not self.journal.rows():
                return
        self.fail('rows left: %s' % self.journal.rows())

    def operate(self, method):
        """One call of nova's API, on what it can be done to."""
        if method == 'delete':
            return lambda: self.cloud.delete_aggregate(self.rack)
        call = getattr(self.cloud, method + '_host')
        return lambda: call(self.zone, self.many)

    def prepare(self, method):
        if method == 'remove':
            self.cloud.add_host(self.zone, self.many)
        self.assertEqual([], self.cloud.drift())


class TestMoments(CrashTest):

    def check(self, method, moment):
        """Drift or a row is left by the kill, and gone a step later."""
        self.prepare(method)
        self.assertTrue(self.killed(self.operate(method), moment))
        self.heal()
        self.assertEqual([], self.cloud.drift())

    def test_put_in_flight_lands_after_the_agent_is_done(self):
        """The agent's own write has made it worthless."""
        CONF.set_override('inline_timeout', 2.0 * PATIENCE, 'aggregate_mirror')
        for method in ('add', 'remove'):
            self.prepare(method)
            land = self.cloud.placement.hold_back()
            self.assertTrue(self.killed(
                self.operate(method), event=self.cloud.placement.stuck))
            self.cloud.placement.recover()
            self.heal()
            land()
            self.assertEqual([], self.cloud.drift())


def _add(method, name, moment):
    def test(self):
        """Whatever the process was about to do, the agent does."""
        self.check(method, moment)

    setattr(TestMoments, 'test_%s_killed_%s' % (
        method, name.replace(' ', '_')), test)


for _method, _commit in COMMITS.items():
    _add(_method, 'after the commit', _commit)
    for _name, _moment in MOMENTS.items():
        # An aggregate without members in placement has no provider to write.
        if _method != 'delete' or 'T' not in _name:
            _add(_method, _name, _moment)


class TestStock(CrashTest):

    def mirror(self):
        self.useFixture(fixtures.StockNova())

    def test_stock_nova_never_recovers(self):
        """So these tests see what they are about."""
        self.assertTrue(self.killed(self.operate('add'), COMMITS['add']))
        self.heal()
        self.assertNotEqual([], self.cloud.drift())


class TestRandom(CrashTest):

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.addDetail('seed', content.text_content(str(SEED)))
        # The first call imports, connects and gets a token.
        self.cloud.add_host(self.zone, self.one)
        self.cloud.remove_host(self.zone, self.one)

    def some_operation(self):
        """Add or remove a host, whichever can be done now."""
        aggregate = self.random.choice((self.zone, self.rack))
        host = self.random.choice((self.one, self.many))
        members = objects.Aggregate.get_by_uuid(
            nova_context.get_admin_context(), aggregate.uuid).hosts
        call = (self.cloud.remove_host if host.name in members
                else self.cloud.add_host)
        return lambda: call(aggregate, host)

    def some_step(self):
        """An agent's step, which finds what two operations have left."""
        self.cloud.placement.refuse()
        self.some_operation()()
        self.some_operation()()
        self.cloud.placement.recover()
        return lambda: self.drain(journal.Journal(CONF)).step()

    def usual_duration(self, choose):
        """How many seconds it takes; not the first time, nor a slow one."""
        seconds = []
        for _call in range(CALLS):
            operation = choose()
            start = time.monotonic()
            operation()
            seconds.append(time.monotonic() - start)
        return statistics.median(seconds)

    def test_api_is_killed_at_random(self):
        """Hundreds of times, and equal after each."""
        longest = 1.5 * self.usual_duration(self.some_operation)
        kills = 0
        for run in range(API_RUNS):
            kills += self.killed(self.some_operation(),
                                 within=self.random.uniform(0, longest))
            self.heal()
            self.assertEqual([], self.cloud.drift(),
                             'run %d of seed %d' % (run, SEED))
        self.assertGreater(kills, API_RUNS / 4)

    def test_agent_is_killed_at_random(self):
        """And the next one finishes what it left."""
        longest = 1.5 * self.usual_duration(self.some_step)
        kills = 0
        for run in range(AGENT_RUNS):
            kills += self.killed(self.some_step(),
                                 within=self.random.uniform(0, longest))
            self.heal()
            self.assertEqual([], self.cloud.drift(),
                             'run %d of seed %d' % (run, SEED))
        self.assertGreater(kills, AGENT_RUNS / 4)
