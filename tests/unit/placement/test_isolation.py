# SPDX-License-Identifier: Apache-2.0
"""Promise 5: an item that is bad holds up and hides no other."""

import itertools
import math
import threading
from unittest import mock

import fixtures
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror.placement import workers
from tests import patience

COUNT = 4
PATIENCE = patience.seconds(20)
SILENT = exceptions.DeadlineExceeded('was silent')
REFUSED = exceptions.ServiceUnreachable('refused the connection')
FAILED = exceptions.ServiceFailed('answered 503')


class TestAsk(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.errors = {}
        """Items to what their requests fail with."""
        self.probe_errors = []
        """What the probes fail with, in order; then they succeed."""
        self.requests, self.patience, self.probes = [], [], []

    def request(self, item):
        self.requests.append(item)
        self.patience.append(deadline.remaining())
        if item in self.errors:
            raise self.errors[item]
        return -item

    def probe(self):
        self.probes.append(deadline.remaining())
        error = self.probe_errors.pop(0) if self.probe_errors else None
        if error:
            raise error

    def ask(self, items, count=1, **options):
        self.items = list(items)
        return isolation.ask(
            self.request, self.items, workers.in_threads(count),
            self.probe, **options)

    def test_pause_that_the_service_asks_for(self):
        """It is not a wait for an answer; a long one is not made."""
        pauses = []
        self.useFixture(fixtures.MonkeyPatch('time.sleep', pauses.append))
        for seconds, expected in ((1.0, [1.0, 1.0]), (30.0, [])):
            busy = exceptions.ServiceFailed('answered 429')
            busy.retry_after = seconds
            self.errors, self.requests = {2: busy}, []
            pauses.clear()
            self.assertEqual({2: busy}, self.ask(range(4)).failures)
            self.assertEqual(expected, pauses)
            self.assertEqual([0, 1, *[2] * (len(expected) + 1), 3],
                             self.requests)
        with deadline.within(0.5):
            busy.retry_after = 1.0
            self.ask([2])
        self.assertEqual([], pauses)

    def test_result_or_failure_for_every_item(self):
        """Each failure is that of its item, in threads and in turn."""
        self.errors = {3: SILENT, 5: REFUSED, 8: FAILED,
                       9: exceptions.ProviderNotFound('none')}
        for count in 1, COUNT:
            answers = self.ask(range(20), count)
            self.assertEqual(self.errors, answers.failures)
            self.assertEqual(
                {item: -item for item in range(20) if item not in self.errors},
                answers.results)
            self.assertIsNone(answers.outage)
            self.assertEqual([], answers.unasked(self.items))

    def test_something_else_does_not_answer(self):
        """It is an outage: nothing more is asked, and no other has failed."""
        for error in SILENT, REFUSED:
            self.errors = {2: error}
            self.probe_errors = [REFUSED]
            self.requests.clear()
            answers = self.ask(range(9))
            self.assertEqual([0, 1, 2], self.requests)
            self.assertIs(error, answers.outage)
            self.assertEqual({2: error}, answers.failures)
            self.assertEqual(list(range(3, 9)), answers.unasked(self.items))

    def test_outage_that_leaves_no_time(self):
        """It is what was waited for, and not that the time is over."""
        late = exceptions.OutOfTime('no time is left')
        for first in SILENT, late:
            self.request = mock.Mock(side_effect=itertools.chain(
                [first], itertools.repeat(late)))
            self.probe_errors = [SILENT, late]
            self.assertIs(first, self.ask(range(4)).outage)

    def test_batch_of_one(self):
        """It is isolated like many."""
        self.errors = {1: SILENT}
        self.assertIsNone(self.ask([1], patience=9.0).outage)
        self.probe_errors = [SILENT]
        self.assertIs(SILENT, self.ask([1], patience=9.0).outage)

    def test_refused_account(self):
        """Each further request would be refused, too, perhaps with a lock.

        The refusal of one backend is that of the item, unless placement
        refuses the probe, too.
        """
        error = self.errors[0] = exceptions.NotAuthorized('refused')
        self.assertIs(error, self.ask(range(9)).outage)
        self.assertEqual(([0], []), (self.requests, self.probes))
        error.is_repeatable = True
        answers = self.ask(range(9))
        self.assertEqual(
            (None, {0: error}), (answers.outage, answers.failures))
        self.assertEqual(8, len(answers.results))
        self.probe_errors = [error]
        self.assertIs(error, self.ask(range(9)).outage)

    def test_one_of_several_is_waited_for_briefly(self):
        """The others wait no longer than for the slowest, several times."""
        self.ask(range(3))
        self.assertTrue(all(
            0 < seconds <= isolation.PATIENCE + isolation.QUICK
            for seconds in self.patience))

    def test_placement_that_is_slow_altogether(self):
        """Each item has the time of any request then, and none has failed."""
        self.errors = {1: SILENT}
        self.probe_errors = [SILENT, None]

        probe = self.probe

        def recover():
            self.errors.clear()
            probe()

        self.probe = recover
        answers = self.ask(range(4))
        self.assertEqual(({}, None), (answers.failures, answers.outage))
        self.assertEqual([0, 1, 1, 2, 3], self.requests)
        self.assertEqual([math.inf] * 3, self.patience[2:])

    def test_placement_that_is_silent_altogether(self):
        """It is found with the time of any request, and once."""
        self.errors = {1: SILENT}
        self.probe_errors = [SILENT, SILENT]
        self.assertIs(SILENT, self.ask(range(4)).outage)
        self.assertEqual([0, 1, 1], self.requests)

    def test_silent_items_with_patience(self):
        """A few of them are waited for; the others were not tried."""
        self.errors = dict.fromkeys(range(9), SILENT)
        answers = self.ask(range(9), patience=math.inf)
        self.assertEqual([0, 1, 2], list(answers.failures))
        self.assertIsNone(answers.outage)
        self.assertEqual(list(range(3, 9)), answers.unasked(self.items))

    def test_time_that_is_left_to_the_others(self):
        """What was read within half of the time can still be written."""
        self.errors = dict.fromkeys(range(9), SILENT)
        ends, request = threading.Event(), self.request

        def wait(item):
            ends.wait(0.3)
            request(item)

        self.request = wait
        with deadline.within(1.0):
            answers = self.ask(range(9))
            self.assertGreater(deadline.remaining(), 0.0)
        self.assertLess(len(answers.failures), 4)

    def test_failures_in_a_row(self):
        """Placement is checked after some, and asked no more if it fails."""
        self.errors = dict.fromkeys(range(9), FAILED)
        self.probe_errors = [FAILED]
        answers = self.ask(range(9))
        self.assertIs(FAILED, answers.outage)
        self.assertEqual([0, 1, 2], self.requests)
        # An answer between them starts the count again.
        self.probes.clear()
        # A conflict, or a provider that is missing, is no failure of it.
        for self.errors in (
                {item: FAILED for item in range(9) if item % 3},
                dict.fromkeys(range(9), exceptions.GenerationConflict('409'))):
            self.assertEqual(self.errors, self.ask(range(9)).failures)
            self.assertEqual([], self.probes)

    def test_items_that_are_silent_together(self):
        """One probe is enough for those that were asked at once."""
        self.errors = dict.fromkeys(range(COUNT), SILENT)
        meeting = threading.Barrier(COUNT, timeout=PATIENCE)
        request = self.request

        def meet(item):
            if item in self.errors:
                meeting.wait()
            return request(item)

        self.request = meet
        self.assertEqual(self.errors, self.ask(range(20), COUNT).failures)
        self.assertEqual(1, len(self.probes))

    def test_interruption(self):
        """What was not asked about is neither a result nor a failure."""
        answers = isolation.ask(
            self.request, range(9), workers.in_threads(
                1, lambda: len(self.requests) == 2), self.probe)
        self.assertIsInstance(answers.outage, exceptions.Stopped)
        self.assertEqual({0: 0, 1: -1}, answers.results)
