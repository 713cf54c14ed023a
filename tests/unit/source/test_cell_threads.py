# SPDX-License-Identifier: Apache-2.0
"""Queries of several cells, of which some do not answer."""

import threading
import types

import fixtures
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.source import cell_threads
from tests import patience

FOREVER = 3600.0


class TestThreads(testtools.TestCase):

    def setUp(self):
        super().setUp()
        # A test that waits for the silent cell fails.
        self.useFixture(fixtures.Timeout(patience.seconds(60), gentle=True))
        self.answering = threading.Event()
        self.addCleanup(self.answering.set)
        self.queries = 0
        self.ahead = 0.0
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.source.cell_threads.time',
            types.SimpleNamespace(monotonic=lambda: self.ahead)))
        self.threads = cell_threads.Threads(0.1, 0.1)
        self.threads.read({'first': self.silent}, patient=False)
        # From now on, a read waits for ever, if at all.
        self.threads._timeout = self.threads._wait_for_some = FOREVER
        self.wait_at_once(FOREVER)

    def wait_at_once(self, seconds):
        """Change how long a silent cell is waited for."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.source.cell_threads.AT_ONCE', seconds))

    def begin(self, timeout=FOREVER):
        """Begin again, with no cell that was silent."""
        self.threads = cell_threads.Threads(timeout, timeout)
        self.answering.set()

    def silent(self):
        self.queries += 1
        self.answering.wait()
        return {'silent': 'h1'}

    def read(self, patient=False):
        """Read both cells; return whether the first is unavailable."""
        found = self.threads.read(
            {'first': self.silent, 'second': lambda: {'node': 'h2'}}, patient)
        self.assertEqual({'node': 'h2'}, found['second'])
        return isinstance(found['first'], exceptions.CellUnavailable)

    def test_query_that_follows_at_once(self):
        """A cell is free when it has answered, before its thread ends."""
        ending = threading.Event()
        self.addCleanup(ending.set)

        class Thread(threading.Thread):
            def run(self):
                super().run()
                ending.wait()

        self.useFixture(fixtures.MonkeyPatch('threading.Thread', Thread))
        self.begin()
        for _read in range(2):
            self.assertFalse(self.read())

    def test_unexpected_error(self):
        """It is the traceback of a thread, and the next read tries again."""
        self.useFixture(fixtures.MonkeyPatch(
            'threading.excepthook', lambda args: None))
        self.begin()
        found = self.threads.read({'first': lambda: {}[0]}, patient=False)
        self.assertIn('unexpected error', str(found['first']))
        self.assertFalse(self.read())

    def test_thread_that_cannot_be_started(self):
        """The next read tries again."""
        self.begin()
        with fixtures.MockPatchObject(
                threading.Thread, 'start', side_effect=RuntimeError):
            self.assertRaises(RuntimeError, self.read)
        self.assertFalse(self.read())

    def test_silent_cell_has_one_query(self):
        """Further reads of it neither start a thread nor wait."""
        for _read in range(2):
            self.assertTrue(self.read())
        self.assertEqual(1, self.queries)

    def end_queries(self):
        """Let the queries of the silent cell end, after its timeout."""
        self.threads._timeout = 0.0
        self.answering.set()
        # Those of earlier tests may still end.
        for thread in threading.enumerate():
            if thread.name == 'first':
                thread.join()
        self.threads._timeout = FOREVER

    def test_cell_that_answered_too_late(self):
        """Its next query is not waited for, and by a full sync only once."""
        self.end_queries()
        self.answering.clear()
        self.assertTrue(self.read())
        self.wait_at_once(0.1)
        self.assertTrue(self.read(patient=True))

    def test_full_sync_of_a_cell_that_answers_again(self):
        """It is not left out because it was silent before."""
        self.end_queries()
        self.assertFalse(self.read(patient=True))

    def waits(self, query, patient=False):
        """Read the first cell; return the wait, as its error states it."""
        found = self.threads.read({'first': query}, patient)['first']
        return found.failure.observation.removeprefix('was silent for ')

    def test_silent_cell_is_waited_for_once_per_back_off(self):
        """The back-off doubles, however many reads there are."""
        self.end_queries()
        self.answering.clear()
        self.wait_at_once(0.1)
        waited = []
        for second in range(100):
            self.threads._running.clear()
            if self.waits(self.silent) == '0.1 s':
                waited.append(second)
            self.ahead += 1.0
        # The first back-off has begun with the silence.
        self.assertEqual([1, 3, 7, 15, 31, 61, 91], waited)

    def test_error_after_a_wait(self):
        """It is no answer, and the cell stays silent; one at once is one."""
        for seconds, wait in ((5.0, 'is not tried again yet: it was silent'),
                              (0.0, '0.1 s')):
            def give_up(seconds=seconds):
                self.ahead += seconds
                return exceptions.CellUnavailable('gave up')

            self.begin()
            self.answering.clear()
            self.wait_at_once(1.0)
            self.assertEqual('gave up', self.waits(give_up))
            self.threads._wait_for_some = 0.1
            self.assertEqual(wait, self.waits(self.silent))

    def test_driver_that_gives_up_after_the_wait(self):
        """The full sync does not wait its whole timeout again."""
        self.wait_at_once(0.1)
        self.begin(0.1)
        self.answering.clear()

        def give_up_late():
            self.answering.wait()
            return exceptions.CellUnavailable('timed out')

        self.assertEqual('0.1 s', self.waits(give_up_late, patient=True))
        self.end_queries()
        self.answering.clear()
        self.assertEqual('0.1 s', self.waits(self.silent, patient=True))

    def test_cell_that_answers_again(self):
        """It is queried without being waited for until it answers."""
        self.assertTrue(self.read())
        self.answering.set()
        while self.read():
            pass
        self.assertFalse(self.read())

    def test_query_of_some_hosts_next_to_a_full_sync(self):
        """A query of the whole cell that hangs does not delay it."""
        started = threading.Event()

        def whole():
            started.set()
            return self.silent()

        reading = threading.Thread(
            target=self.threads.read, args=({'second': whole}, True))
        reading.start()
        self.addCleanup(reading.join)
        self.addCleanup(self.answering.set)
        started.wait()
        self.assertTrue(self.read())
