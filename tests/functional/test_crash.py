# SPDX-License-Identifier: Apache-2.0
"""SIGKILL between any two steps: the next agent repairs placement.

A forked child is nova-api: it has its code, nova's databases on disk, and
placement behind a socket. It kills itself just before or just after a step.
Random kills, also of agents, are in ``tests/cloud/faults``.
"""

import itertools
import multiprocessing
import os
import signal

from nova import context as nova_context
from nova import objects
from oslo_utils import uuidutils
import testtools
from testtools import content

from nova_aggregate_mirror.journal import ledger
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror.placement import client
from tests import fixtures
from tests import patience
from tests import processes

CONF = fixtures.CONF
PATIENCE = patience.seconds(300)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def dies_before(_real):
    return lambda *_args, **_kwargs: die()


def dies_after(real):
    def wrapper(*args, **kwargs):
        real(*args, **kwargs)
        die()
    return wrapper


def moments(owner, *names):
    """Return the moments around functions: what is replaced, and how."""
    return {(how.__name__, name): (owner, name, how)
            for name in names for how in (dies_before, dies_after)}


COMMITS = {
    'add': (objects.Aggregate, 'add_host', dies_after),
    'remove': (objects.Aggregate, 'delete_host', dies_after),
}
REQUESTS = moments(client.Client, 'get', 'put')
MOMENTS = {**REQUESTS, **moments(rows.Rows, 'record', 'close')}
OUTAGE_MOMENTS = moments(rows.Rows, 'hand_over')
NOT_DELETED_MOMENTS = moments(ledger.DatabaseLedger, 'mark')
DELETED_MOMENTS = {
    'commit': (objects.Aggregate, 'destroy', dies_after),
    **REQUESTS, **moments(client.Client, 'members')}


class CrashTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.placement = self.cloud.placement
        self.useFixture(fixtures.MirroredNova())
        self.zone = self.cloud.create_aggregate('zone', 'az1')
        self.one = self.cloud.create_host('h1')
        self.many = self.cloud.create_host('h2', nodes=2)
        self.case = ()
        self.addOnException(lambda _error: self.addDetail(
            'case', content.text_content(repr(self.case))))

    def killed(self, run, moment):
        """Run in a child; return whether it was killed at this moment."""
        def work():
            owner, name, how = moment
            setattr(owner, name, how(getattr(owner, name)))
            run()

        return processes.killed_inside(work)

    def operate(self, method):
        call = getattr(self.cloud, method + '_host')
        return lambda: call(self.zone, self.many)

    def prepare(self, *case):
        """Create the state that an operation requires."""
        self.case = case
        members = self.cloud.nova.aggregates_of(self.many.name)
        if (self.zone.uuid in members) == (case[0] == 'add'):
            self.operate('remove' if case[0] == 'add' else 'add')()
        self.assertEqual([], self.cloud.drift())

    def undo(self, method):
        """Revert an operation with a nova-api that lacks this package."""
        aggregate = objects.Aggregate.get_by_uuid(
            nova_context.get_admin_context(), self.zone.uuid)
        (aggregate.delete_host if method == 'add' else aggregate.add_host)(
            self.many.name)

    def drain(self, agent, seconds):
        """Advance the agent's clock, drain, and return the remaining rows."""
        agent.clock += seconds
        agent.drain()
        return agent.journal.rows.all()

    def heal(self, meanwhile=lambda: None):
        """Let a new agent drain until the journal is empty.

        Placement is in sync as soon as a running row is overdue. The row is
        closed when no call can be that old.

        :param meanwhile: called between these two steps
        """
        agent = fixtures.Agent()
        running = [row.id for row in agent.journal.rows.all() if row.running]
        self.drain(agent, 0)
        left = self.drain(agent, 2 * CONF.aggregate_mirror.inline_timeout)
        self.assertEqual([], self.cloud.drift())
        self.assertEqual(running, [row.id for row in left])
        meanwhile()
        self.assertEqual(
            [], self.drain(agent, CONF.aggregate_mirror.max_call_age))
        self.assertEqual([], self.cloud.drift())


class TestMoments(CrashTest):
    """An operation of a killed nova-api is mirrored without a full sync."""

    def test_each_moment(self):
        """An agent completes what the killed process was about to do."""
        for method, commit in COMMITS.items():
            for name, moment in {**MOMENTS, 'commit': commit}.items():
                self.prepare(method, name)
                self.assertTrue(self.killed(self.operate(method), moment))
                self.heal()

    def test_each_moment_of_an_outage(self):
        """Placement was down at that time."""
        for method, name in itertools.product(COMMITS, OUTAGE_MOMENTS):
            self.prepare(method, name)
            self.placement.refuse()
            self.assertTrue(self.killed(self.operate(method),
                                        OUTAGE_MOMENTS[name]))
            self.placement.recover()
            self.heal()

    def kill_in_flight(self, method):
        """Kill nova-api during its PUT; return what lets the PUT land."""
        # The child is killed before its own deadline aborts the request.
        self.cloud.nova.conf.config(inline_timeout=patience.LONGEST_CALL,
                                    group='aggregate_mirror')
        self.prepare(method)
        land = self.placement.hold_after(0)
        child = multiprocessing.get_context('fork').Process(
            target=self.operate(method), daemon=True)
        child.start()
        self.assertTrue(self.placement.stuck.wait(PATIENCE))
        child.kill()
        child.join()
        self.placement.recover()
        return land

    def test_put_in_flight_lands_after_the_agent_is_done(self):
        """The write before the row is closed invalidates the delayed PUT."""
        for method in COMMITS:
            land = self.kill_in_flight(method)
            # Nothing differs now; the PUT in flight would change that.
            self.undo(method)
            self.heal()
            land()
            self.assertEqual([], self.cloud.drift())

    def test_put_in_flight_lands_while_the_row_is_open(self):
        """The row is converged again, which repairs the effect."""
        for method in COMMITS:
            land = self.kill_in_flight(method)
            self.undo(method)
            self.heal(meanwhile=land)

    def test_commit_is_reverted_after_the_kill(self):
        """Placement follows nova's state, not the reverted operation."""
        for method, commit in COMMITS.items():
            self.prepare(method)
            self.assertTrue(self.killed(self.operate(method), commit))
            self.undo(method)
            self.heal()


class TestDeletion(CrashTest):
    """The next full sync completes the deletion of a killed nova-api."""

    def setUp(self):
        super().setUp()
        self.cloud.add_host(self.zone, self.many)
        self.storage = uuidutils.generate_uuid()
        self.placement.create_provider(self.storage, 'storage')
        self.node, = self.one.nodes

    def kill(self, name, moment):
        """Kill nova-api during a delete; return the aggregate."""
        self.case = name,
        doomed = self.cloud.create_aggregate('doomed')
        # Nova does not delete an aggregate with hosts: only placement has any.
        for provider in (self.storage, self.node):
            self.placement.set_aggregates(provider, [doomed.uuid])
        self.assertTrue(self.killed(
            lambda: self.cloud.delete_aggregate(doomed), moment))
        return doomed

    def test_killed_after_the_commit(self):
        """No provider keeps the aggregate, even with prune off."""
        for prune in (False, True):
            self.cloud.nova.conf.config(prune=prune, group='aggregate_mirror')
            for case in DELETED_MOMENTS.items():
                self.kill(*case)
                fixtures.Agent().sync()
                for provider in (self.storage, self.node):
                    self.assertEqual(set(),
                                     self.placement.aggregates(provider))
                self.assertEqual([], self.cloud.drift())

    def test_killed_before_the_commit(self):
        """Nova still has the aggregate, so a foreign provider keeps it."""
        for case in NOT_DELETED_MOMENTS.items():
            doomed = self.kill(*case)
            agent = fixtures.Agent()
            agent.sync()
            self.assertEqual({doomed.uuid},
                             self.placement.aggregates(self.storage))
            self.assertEqual([], self.cloud.drift())
            agent.clock += CONF.aggregate_mirror.max_call_age
            agent.sync()
            self.assertFalse(
                agent.journal.ledger.entries()[doomed.uuid].deleted)
            # The user's second attempt succeeds.
            self.assertEqual(200, self.cloud.delete_aggregate(doomed))
            self.assertEqual(set(), self.placement.aggregates(self.storage))
