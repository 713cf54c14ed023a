# SPDX-License-Identifier: Apache-2.0
"""What a nova-api process uses, and what it logs of placement."""

import logging

import fixtures
import testtools

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.hooks import processes
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.reconcile import outcome
from tests import placement_service
from tests import statements
from tests.unit import doubles
from tests.unit.hooks import test_mirror
from tests.unit import servers

BACKOFF = 30.0
PROVIDER = 'c5a5b2b7-1c5f-4b0e-8a52-0f7a3a9b2f10'


class TestAccess(servers.LoopbackTestCase):

    def test_first_answer_of_placement(self) -> None:
        """One line for the process; an operation that fails has its own."""
        placement = self.useFixture(placement_service.PlacementService())
        placement.create_provider(PROVIDER, 'node')
        log = self.useFixture(fixtures.FakeLogger(
            'nova_aggregate_mirror', level=logging.INFO))
        process = processes.Process(servers.make_conf(
            auth_type='admin_token', endpoint=placement.url,
            token=placement_service.TOKEN))
        placement.refuse()
        self.assertRaises(exceptions.ServiceUnreachable,
                          process.placement.get, PROVIDER)
        placement.recover()
        placement.refuse_role(('GET',))
        self.assertRaises(exceptions.NotAuthorized,
                          process.placement.get, PROVIDER)
        self.assertEqual('', log.output)
        placement.recover()
        for _time in range(2):
            process.placement.get(PROVIDER)
        line, = log.output.splitlines()
        self.assertThat(line, testtools.matchers.MatchesRegex(
            'Placement answers: .*endpoint %s$' % placement.url))


class TestNova(doubles.TestCase):

    def test_journal_is_compared_with_nova(self) -> None:
        """Before each operation, until it is bound to this nova."""
        process = processes.Process(self.conf)
        process.database, process.source = self.journal.database, self.nova
        agent = binding.Binding(self.journal.database,
                                self.nova.cell_mappings, self.nova.aggregates)
        counts = []
        for number in range(4):
            if number == 2:
                agent.bind()
            with statements.Statements() as executed:
                process.check_nova()
            reads = ['FROM cells' in text for text in executed.seen]
            counts.append(sum(reads))
        self.assertEqual([1, 1, 1, 0], counts)


class TestBackOff(doubles.TestCase):
    """Calls to placement after a call that failed."""

    def setUp(self):
        super().setUp()
        self.clock = 100.0
        self.set_up(BACKOFF)

    def set_up(self, seconds):
        self.conf.set_override('inline_backoff', seconds, 'aggregate_mirror')
        self.process = processes.Process(self.conf, lambda: self.clock)

    def call(self, error=None, after=0.0, recorded=True,
             meanwhile=lambda: None):
        def call():
            self.clock += after
            meanwhile()
            return outcome.Outcome(outage=error)

        self.process.reconcile(call, 'req', recorded)

    def assert_lasts(self, seconds, recorded=True):
        """Assert that calls are refused for this long, with a reason."""
        end = self.clock + seconds
        self.clock = end - 0.01
        error = self.assertRaises(exceptions.NotTried, self.call,
                                  recorded=recorded)
        self.assertEqual('is not tried again yet: it reason', str(error))
        self.clock = end
        self.call(recorded=recorded)

    def test_next_call(self):
        """It is not tried while it could wait as long again.

        To the caller a slow refusal is like a timeout, but what nova took of
        the call is no slowness of placement. With much to do, placement
        answered each request; and what only this call met is no reason.
        """
        pause = processes.REFUSED_PAUSE
        refused, failed = exceptions.ServiceUnreachable, [
            exceptions.NotTried, exceptions.ServiceFailed,
            exceptions.MalformedAnswer, exceptions.GenerationConflict,
            exceptions.CellUnavailable]
        for error, after, seconds in (
                (exceptions.DeadlineExceeded('reason'), 5, BACKOFF),
                (refused('reason'), 3, BACKOFF),
                (refused('reason', kind=causes.REFUSED.kind), 3, pause),
                (refused('reason'), 0, pause),
                # Keystone, in front of placement.
                (exceptions.NotAuthorized('reason'), 0, pause),
                (exceptions.OutOfTime('reason'), 5, 0),
                *((kind('reason'), 5, 0) for kind in failed)):
            self.call(error, after)
            if seconds:
                self.assert_lasts(seconds)
            self.call()

    def test_shorter_option_holds(self):
        """A shorter inline_backoff applies; 0 disables the back-off."""
        self.set_up(0.5)
        self.call(exceptions.ServiceUnreachable('reason'))
        self.assert_lasts(0.5)
        self.set_up(0.0)
        for kind in exceptions.ServiceUnreachable, exceptions.DeadlineExceeded:
            self.call(kind('reason'))
            self.call()

    def test_refusal_does_not_shorten_a_timeout(self):
        """A call that began earlier may fail later, in another way."""
        self.call(
            exceptions.ServiceUnreachable('reason'),
            meanwhile=lambda: self.call(exceptions.DeadlineExceeded('reason')))
        self.assert_lasts(BACKOFF)

    def test_what_is_not_in_the_journal(self):
        """An operation without a journal row is tried after a refusal."""
        self.call(exceptions.ServiceUnreachable('reason'))
        self.call(recorded=False)
        self.call(exceptions.DeadlineExceeded('reason'), recorded=False)
        self.assert_lasts(BACKOFF, recorded=False)


class TestOwnRow(doubles.TestCase):
    """The converge of an operation, which may leave out what is in sync."""

    def setUp(self):
        super().setUp()
        self.nova.hosts_of = {'a': {'h1'}}
        self.nova.nodes = {'n1': 'h1'}
        self.placement.create('n1')

    def close_own(self, before):
        """Close the row of an operation that nova had ``before`` before."""
        row = self.record('h1', ['n1'])
        del self.log[:]
        test_mirror.Process(self).converge_and_close(
            row, {'n1': frozenset(before)}, recorded=True)
        return [method for method, _what in self.log]

    def test_write_of_the_own_converge(self):
        """It is left out only if nova had, and has, what placement has.

        Rule 5: also if placement has the result of the operation already. An
        earlier operation may not be mirrored yet.
        """
        for before, placed, last in (
                ({'a'}, {'a', 'foreign'}, 'GET'), ((), {'a'}, 'PUT'),
                ({'a'}, {'foreign'}, 'PUT')):
            self.placement.create('n1', *placed)
            self.assertEqual(['GET', 'TRUTH', last], self.close_own(before))
            self.assertEqual([], self.journal.rows.all())
            self.assertEqual({'a', *placed}, self.placement.aggregates['n1'])

    def test_operation_without_effect_among_others(self):
        """Rule 5: another operation may have reverted its effect."""
        self.placement.create('n1', 'a')
        other = self.record('h2')
        self.assertEqual(['GET', 'TRUTH'] * 2 + ['PUT'], self.close_own({'a'}))
        self.assertEqual([other], self.journal.rows.all())

    def test_operation_without_effect_and_a_write_meanwhile(self):
        """Rule 5: the write may be that of another operation."""
        self.placement.create('n1', 'a')
        read = self.nova.read

        def late(*asked):
            self.nova.read = read
            self.placement.write('n1', set())
            return read(*asked)

        self.nova.read = late
        self.assertEqual(['GET', 'TRUTH', 'GET'] + ['GET', 'TRUTH', 'PUT'],
                         self.close_own({'a'}))
        self.assertEqual({'a'}, self.placement.aggregates['n1'])

    def test_write_that_fails(self):
        """Rule 6: the row stays."""
        self.placement.broken['PUT', 'n1'] = exceptions.ServiceFailed('500')
        self.close_own(())
        self.assertEqual(1, len(self.journal.rows.all()))

    def test_outage_before_a_refusal(self):
        """The back-off is that of the first: it may have taken the time."""
        hung, refused = (kind('') for kind in (
            exceptions.DeadlineExceeded, exceptions.ServiceUnreachable))
        answers = [outcome.Outcome(outage=hung, skipped_writes={'n1': 0}),
                   outcome.Outcome(outage=refused)]
        process = test_mirror.Process(self)
        process.converge = lambda *_asked: answers.pop(0)
        process.are_settled = lambda *_asked: False
        result = process.converge_and_close(
            self.record('h1', ['n1']), {}, recorded=True)
        self.assertIs(hung, result.outage)
        self.assertEqual([], answers)

    def test_node_that_was_not_seen_before_is_written(self):
        """A node may have moved to the host during the operation."""
        self.placement.create('n1', 'a')
        self.placement.create('n2', 'a')
        self.nova.nodes['n2'] = 'h1'
        self.close_own({'a'})
        self.assertEqual(['n2'], [
            what for method, what in self.log if method == 'PUT'])
