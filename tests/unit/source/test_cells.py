# SPDX-License-Identifier: Apache-2.0
"""Queries of several cells, of which some do not answer."""

import threading

import fixtures
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.source import cells

FOREVER = 3600.0


class TestThreads(testtools.TestCase):

    def setUp(self):
        super().setUp()
        # A test that waits for the silent cell fails.
        self.useFixture(fixtures.Timeout(60, gentle=True))
        self.answering = threading.Event()
        self.addCleanup(self.answering.set)
        self.queries = 0
        self.threads = cells.Threads(0.01)
        self.threads.read({'first': self.silent}, patient=False)
        # From now on, a read waits for ever, if at all.
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.source.cells.SOON', FOREVER))
        self.threads._timeout = FOREVER

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
        self.threads = cells.Threads(FOREVER)
        self.answering.set()
        for _read in range(2):
            self.assertFalse(self.read())

    def test_silent_cell_has_one_query(self):
        """Further reads of it neither start a thread nor wait."""
        for patient in (False, True, False):
            self.assertTrue(self.read(patient))
        self.assertEqual(1, self.queries)

    def test_cell_that_answered_too_late(self):
        """Its next query is not waited for, either."""
        earlier, = (each for each in threading.enumerate()
                    if each.name == 'first')
        self.threads._timeout = 0.0
        self.answering.set()
        earlier.join()
        self.answering.clear()
        self.threads._timeout = FOREVER
        self.assertTrue(self.read())

    def test_cell_that_answers_again(self):
        """It is queried without being waited for until it answers."""
        self.assertTrue(self.read())
        self.answering.set()
        while self.read():
            pass
        self.assertFalse(self.read())

    def test_full_sync_waits_for_it(self):
        """A cell that was silent once is not left out of a full sync."""
        earlier, = (each for each in threading.enumerate()
                    if each.name == 'first')
        self.answering.set()
        earlier.join()
        self.assertFalse(self.read(patient=True))
