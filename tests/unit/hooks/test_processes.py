# SPDX-License-Identifier: Apache-2.0
"""What a nova-api process uses, and what it logs of placement."""

from collections import abc
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
        for count in (1, 1):
            self.assert_reads(count, process.check_nova)
        agent.bind()
        for count in (1, 0):
            self.assert_reads(count, process.check_nova)

    def assert_reads(self, count: int, check: abc.Callable[[], None]) -> None:
        with statements.Statements() as executed:
            check()
        reads = ['FROM cells' in text for text in executed.seen]
        self.assertEqual(count, sum(reads))


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
        def call(_mirror):
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

    def test_timeout(self):
        """The next call could wait as long again."""
        self.call(exceptions.DeadlineExceeded('reason'), after=5)
        self.assert_lasts(BACKOFF)

    def test_call_with_much_to_do(self):
        """Placement answered every request: the next call may be short."""
        self.call(exceptions.OutOfTime('reason'), after=5)
        self.call()

    def test_refusal_that_took_long(self):
        """To the caller a slow refusal is like a timeout."""
        self.call(exceptions.ServiceUnreachable('reason'), after=3)
        self.assert_lasts(BACKOFF)

    def test_refusal_after_a_slow_nova(self):
        """What nova took of the call is no slowness of placement."""
        self.call(exceptions.ServiceUnreachable(
            'reason', kind=causes.REFUSED.kind), after=3)
        self.assert_lasts(processes.REFUSED_PAUSE)

    def test_refusal_at_once(self):
        """By placement, or by keystone in front of it."""
        for kind in exceptions.ServiceUnreachable, exceptions.NotAuthorized:
            self.call(kind('reason'))
            self.assert_lasts(processes.REFUSED_PAUSE)

    def test_shorter_option_holds(self):
        """A shorter inline_backoff applies; 0 disables the back-off."""
        self.set_up(0.5)
        self.call(exceptions.ServiceUnreachable('reason'))
        self.assert_lasts(0.5)
        self.set_up(0.0)
        for kind in exceptions.ServiceUnreachable, exceptions.DeadlineExceeded:
            self.call(kind('reason'))
            self.call()

    def test_what_only_this_call_met(self):
        """The next call may succeed, so it is tried."""
        for error in (exceptions.NotTried('reason'),
                      exceptions.ServiceFailed('reason'),
                      exceptions.MalformedAnswer('reason'),
                      exceptions.GenerationConflict('reason'),
                      exceptions.CellUnavailable('reason')):
            self.call(error, after=5)
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
