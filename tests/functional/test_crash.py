# SPDX-License-Identifier: Apache-2.0
"""SIGKILL between any two steps: the next agent repairs placement.

A forked child is nova-api or an agent: it has their code, nova's
databases on disk, and placement behind a socket. It kills itself just before
or just after a step. Random kills are in ``test_kills``.
"""

import itertools
import multiprocessing
import os
import signal

from nova import context as nova_context
from nova import objects
from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror.journal import ledger
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror.placement import client
from tests import fixtures

CONF = fixtures.CONF
FORK = multiprocessing.get_context('fork')
PATIENCE = 60


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def dies_before(_real):
    return lambda *_args, **_kwargs: die()


def dies_after(real):
    def wrapper(*args, **kwargs):
        real(*args, **kwargs)
        die()
    return wrapper


def dies_after_calls(count):
    """Kill the process after this many calls of all replaced functions."""
    left = itertools.count(1)

    def wrapped(real):
        def wrapper(*args, **kwargs):
            result = real(*args, **kwargs)
            if next(left) == count:
                die()
            return result
        return wrapper
    return wrapped


# The functions that are replaced, and how.
COMMITS = {
    'add': (objects.Aggregate, 'add_host', dies_after),
    'remove': (objects.Aggregate, 'delete_host', dies_after),
}
REQUESTS = {
    'before_the_get': (client.Client, 'get', dies_before),
    'after_the_get': (client.Client, 'get', dies_after),
    'before_the_put': (client.Client, 'put', dies_before),
    'after_the_put': (client.Client, 'put', dies_after),
}
MOMENTS = {
    'before_recording': (rows.Rows, 'record', dies_before),
    'after_recording': (rows.Rows, 'record', dies_after),
    **REQUESTS,
    'before_closing': (rows.Rows, 'close', dies_before),
    'after_closing': (rows.Rows, 'close', dies_after),
}
OUTAGE_MOMENTS = {
    'before_handing_over': (rows.Rows, 'hand_over', dies_before),
    'after_handing_over': (rows.Rows, 'hand_over', dies_after),
}
NOT_DELETED_MOMENTS = {
    'before_the_mark': (ledger.DatabaseLedger, 'mark', dies_before),
    'after_the_mark': (ledger.DatabaseLedger, 'mark', dies_after),
}
DELETED_MOMENTS = {
    'after_the_commit': (objects.Aggregate, 'destroy', dies_after),
    'before_member_of': (client.Client, 'members', dies_before),
    'after_member_of': (client.Client, 'members', dies_after),
    **REQUESTS,
}
# A kill between two of these is equivalent to a kill after the first.
CHANGES = ((rows.Rows, 'close'), (rows.Rows, 'set_mirrored'),
           (ledger.DatabaseLedger, 'remember'),
           (ledger.DatabaseLedger, 'observe'),
           (client.Client, 'put'))


class CrashTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.placement = self.cloud.placement
        self.useFixture(fixtures.MirroredNova())
        self.zone = self.cloud.create_aggregate('zone', 'az1')
        self.one = self.cloud.create_host('h1')
        self.many = self.cloud.create_host('h2', nodes=2)

    def begin(self, run, moments=()):
        """Start a child that is killed at the first of these moments."""
        def work():
            for owner, name, how in moments:
                setattr(owner, name, how(getattr(owner, name)))
            run()

        child = FORK.Process(target=work, daemon=True)
        child.start()
        return child

    def killed(self, run, *moments):
        """Run in a child; return whether it was killed before it finished."""
        child = self.begin(run, moments)
        child.join()
        self.assertIn(child.exitcode, (0, -signal.SIGKILL))
        return child.exitcode < 0

    def operate(self, method, host=None):
        call = getattr(self.cloud, method + '_host')
        return lambda: call(self.zone, host or self.many)

    def prepare(self, method):
        """Create the state that the operation requires."""
        if method == 'remove':
            self.cloud.add_host(self.zone, self.many)
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

    def check(self, method, moment):
        self.prepare(method)
        self.assertTrue(self.killed(self.operate(method), moment))
        self.heal()

    def check_in_outage(self, method, moment):
        self.prepare(method)
        self.placement.refuse()
        self.assertTrue(self.killed(self.operate(method), moment))
        self.placement.recover()
        self.heal()

    def kill_in_flight(self, method):
        """Kill nova-api during its PUT; return what lets the PUT land."""
        # The child is killed before its own deadline aborts the request.
        self.cloud.nova.conf.config(inline_timeout=2.0 * PATIENCE,
                                    group='aggregate_mirror')
        self.prepare(method)
        land = self.placement.hold_back()
        child = self.begin(self.operate(method))
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

    def kill(self, moment):
        """Kill nova-api during a delete; return the aggregate."""
        doomed = self.cloud.create_aggregate('doomed')
        # Nova does not delete an aggregate with hosts: only placement has any.
        for provider in (self.storage, self.node):
            self.placement.set_aggregates(provider, [doomed.uuid])
        self.assertTrue(self.killed(
            lambda: self.cloud.delete_aggregate(doomed), moment))
        return doomed

    def check(self, moment):
        """No provider keeps the aggregate, even with prune off."""
        for prune in (False, True):
            self.cloud.nova.conf.config(prune=prune, group='aggregate_mirror')
            self.kill(moment)
            fixtures.Agent().sync()
            for provider in (self.storage, self.node):
                self.assertEqual(set(), self.placement.aggregates(provider))
            self.assertEqual([], self.cloud.drift())

    def check_not_deleted(self, moment):
        """Nova still has the aggregate, so a foreign provider keeps it."""
        doomed = self.kill(moment)
        agent = fixtures.Agent()
        agent.sync()
        self.assertEqual({doomed.uuid},
                         self.placement.aggregates(self.storage))
        self.assertEqual([], self.cloud.drift())
        agent.clock += CONF.aggregate_mirror.max_call_age
        agent.sync()
        self.assertFalse(agent.journal.ledger.entries()[doomed.uuid].deleted)
        # The user's second attempt succeeds.
        self.assertEqual(200, self.cloud.delete_aggregate(doomed))
        self.assertEqual(set(), self.placement.aggregates(self.storage))


class TestAgent(CrashTest):
    """The next agent completes what a killed agent left unfinished."""

    def setUp(self):
        super().setUp()
        # Make the order of the steps the same in every child.
        self.cloud.nova.conf.config(sync_workers=1, group='aggregate_mirror')
        self.foreign = [uuidutils.generate_uuid() for _number in range(2)]
        for provider in self.foreign:
            self.placement.create_provider(provider, provider)

    def leave(self, method):
        """Leave a running row, a handed-over row and a deletion."""
        self.assertTrue(self.killed(self.operate(method), COMMITS[method]))
        doomed = self.cloud.create_aggregate('doomed')
        for provider in (*self.foreign, *self.many.nodes):
            self.placement.set_aggregates(provider, [
                doomed.uuid, *self.placement.aggregates(provider)])
        self.placement.refuse()
        self.operate(method, self.one)()
        self.cloud.delete_aggregate(doomed)
        self.placement.recover()
        self.assertEqual(
            [True, False],
            [row.running for row in fixtures.Agent().journal.rows.all()])

    def work(self):
        """Drain until the journal is empty, and run a full sync."""
        agent = fixtures.Agent()
        self.drain(agent, 0)
        self.drain(agent, 2 * CONF.aggregate_mirror.inline_timeout)
        self.drain(agent, CONF.aggregate_mirror.max_call_age)
        agent.sync()

    def finish(self):
        self.heal()
        fixtures.Agent().sync()
        for provider in self.foreign:
            self.assertEqual(set(), self.placement.aggregates(provider))
        self.assertEqual([], self.cloud.drift())

    def test_killed_after_each_change(self):
        """The next agent needs only the journal of the killed agent."""
        for count, method in enumerate(itertools.cycle(COMMITS), start=1):
            self.leave(method)
            how = dies_after_calls(count)
            killed = self.killed(
                self.work, *((*change, how) for change in CHANGES))
            self.finish()
            if not killed:
                break
        # Otherwise the child made hardly any changes.
        self.assertGreater(count, 2 * len(CHANGES))


def _add(test, name, check, *args):
    def method(self):
        """An agent completes what the killed process was about to do."""
        getattr(self, check)(*args)

    setattr(test, 'test_%s' % name, method)


for _method, _commit in COMMITS.items():
    _add(TestMoments, _method + '_killed_after_the_commit', 'check', _method,
         _commit)
    for _check, _moments in (('check', MOMENTS),
                             ('check_in_outage', OUTAGE_MOMENTS)):
        for _name, _moment in _moments.items():
            _add(TestMoments, '%s_killed_%s' % (_method, _name), _check,
                 _method, _moment)
for _check, _moments in (('check', DELETED_MOMENTS),
                         ('check_not_deleted', NOT_DELETED_MOMENTS)):
    for _name, _moment in _moments.items():
        _add(TestDeletion, 'delete_killed_' + _name, _check, _moment)
