# SPDX-License-Identifier: Apache-2.0
"""Calls in threads: limit, order, failures and interruption."""

from concurrent import futures
import threading
from unittest import mock

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import workers
from tests import patience

COUNT = 4
PATIENCE = patience.seconds(60)


class TestWorkers(testtools.TestCase):

    def test_results_come_in_the_order_of_the_items(self):
        """With any number of threads; without items there are no results."""
        for count in (1, COUNT):
            for_each = workers.in_threads(count)
            self.assertEqual([], for_each(str, []))
            self.assertEqual([str(number) for number in range(50)],
                             for_each(str, range(50)))

    def test_so_many_run_at_once_and_not_more(self):
        """The configured number of calls run at once, never more."""
        lock, running, most = threading.Lock(), [], []
        meeting = threading.Barrier(COUNT, timeout=PATIENCE)

        def call(_item):
            with lock:
                running.append(1)
                most.append(len(running))
            meeting.wait()
            with lock:
                running.pop()

        workers.in_threads(COUNT)(call, range(3 * COUNT))
        self.assertEqual(COUNT, max(most))

    def test_with_one_no_thread_is_made(self):
        """In nova-api every call runs in the calling thread."""
        found = workers.in_threads()(
            lambda _item: threading.current_thread(), range(3))
        self.assertEqual({threading.current_thread()}, set(found))

    def test_after_a_failure_no_call_is_begun(self):
        """Running calls are completed, and those that wait are cancelled."""
        begun, ended, cancelled = [], [], threading.Event()
        keep = futures.Future.cancel

        def cancel(future):
            cancelled.set()
            return keep(future)

        def call(item):
            begun.append(item)
            if item == 0:
                raise exceptions.ServiceUnreachable('refused')
            # The other calls end after the failure was found.
            self.assertTrue(cancelled.wait(PATIENCE))
            ended.append(item)

        for count in (1, COUNT):
            del begun[:], ended[:]
            cancelled.clear()
            with mock.patch.object(futures.Future, 'cancel', cancel):
                self.assertRaises(
                    exceptions.ServiceUnreachable,
                    workers.in_threads(count), call, range(1000))
            self.assertEqual({0}, {*begun} - {*ended})
            self.assertLess(len(begun), 1000)

    def test_no_call_is_begun_while_an_earlier_one_runs(self):
        """What was raised first ends all, wherever it is in the order."""
        begun, failed = [], threading.Event()

        def call(item):
            begun.append(item)
            if item == 1:
                raise exceptions.ServiceUnreachable('refused')
            if item == 0:
                # It fails later, as those do that waited for the other call.
                failed.wait(patience.seconds(0.2))
                raise exceptions.DeadlineExceeded('too late')
            if item > 50:
                failed.set()

        self.assertRaises(
            exceptions.ServiceUnreachable, workers.in_threads(2), call,
            range(1000))
        self.assertEqual([0, 1], sorted(begun))

    def test_told_to_stop(self):
        """Running calls are completed, and no more are started."""
        done = []
        for count in (1, COUNT):
            del done[:]
            self.assertRaises(
                exceptions.Stopped,
                workers.in_threads(count, lambda: len(done) > 9),
                done.append, range(1000))
            self.assertTrue(10 <= len(done) < 10 + COUNT, len(done))

    def test_deadline_of_the_caller_is_everyones(self):
        """A worker thread has no more time than the caller."""
        with deadline.within(PATIENCE):
            left = workers.in_threads(COUNT)(
                lambda _item: deadline.remaining(), range(COUNT))
        self.assertLessEqual(max(left), PATIENCE)
