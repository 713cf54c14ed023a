# SPDX-License-Identifier: Apache-2.0
"""The nova-api processes in the journal, by the clocks of their hosts."""

import time

import sqlalchemy as sa

from nova_aggregate_mirror import conf
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.reconcile import modes
from tests.unit import doubles


class TestClocks(doubles.TestCase):

    def record_by_clock(self, seconds: float, mode: str) -> None:
        """Record an operation by a nova-api whose clock is ahead."""
        recorded = rows.Rows(
            self.journal.database, self.journal.ledger,
            presence=rows.Presence(
                mode, now=lambda: time.time() + seconds))
        recorded.record(recorded.make(journal.Dirty('h1')))

    def sync(self) -> None:
        """Note a sync of the leader, whose clock is right."""
        ended = time.time()
        full_syncs.add(self.journal.database, full_syncs.Entry(
            'agent', 'controller', ended - 1, ended, 1.0, mode=conf.MIRROR))

    def disagreements(self) -> list[str]:
        return [str(each) for find in (modes.find, modes.find_for_agent)
                for each in find(self.journal, conf.MIRROR)]

    def modes_in_database(self) -> list[str]:
        modes = sa.select(models.processes.c.mode).order_by(
            models.processes.c.seen_at)
        return self.journal.database.run(
            lambda connection: connection.scalars(modes).all())

    def test_clock_that_was_ahead_and_is_corrected(self) -> None:
        """It decides no mode of its host, and its row is deleted.

        Clocks that differ by seconds are those of any two hosts.
        """
        self.record_by_clock(2 * store.AHEAD, conf.OBSERVE)
        self.assertEqual([], self.disagreements())
        self.record_by_clock(-30.0, conf.MIRROR)
        self.assertEqual([], self.disagreements())
        self.assertEqual([conf.MIRROR], [
            process.mode for process in self.journal.processes()])
        self.sync()
        self.assertEqual([conf.MIRROR], self.modes_in_database())
        self.record_by_clock(30.0, conf.OBSERVE)
        self.sync()
        self.assertEqual(2, len(self.disagreements()))
        self.assertEqual([conf.MIRROR, conf.OBSERVE],
                         self.modes_in_database())

    def test_row_that_cannot_be_written(self) -> None:
        """Each try costs a record: they become rarer until one succeeds.

        A process is shown ten minutes later, however long it failed.
        """
        clock, tries = 0.0, []
        presence = rows.Presence(clock=lambda: clock)
        for clock in range(0, 3000, 60):
            if presence.begin_write():
                tries.append(clock)
        self.assertEqual([0, 60, 180, 420, 900, 1500, 2100, 2700], tries)
        presence.set_written()
        self.assertFalse(presence.begin_write())
        for pause in rows.INTERVAL, rows.RETRY:
            clock += pause
            self.assertTrue(presence.begin_write())

    def test_process_of_last_month(self) -> None:
        """It may not exist any more, and shows that there was one.

        The newest of all is kept, not one for each host.
        """
        self.record_by_clock(-5 * store.KEEP_PROCESSES, conf.MIRROR)
        self.record_by_clock(-4 * store.KEEP_PROCESSES, conf.OBSERVE)
        self.record_by_clock(2 * store.AHEAD, conf.MIRROR)
        self.assertEqual([], self.disagreements())
        self.sync()
        self.assertEqual([conf.OBSERVE], self.modes_in_database())
        self.assertEqual([], self.disagreements())
        self.record_by_clock(-2 * store.AHEAD, conf.MIRROR)
        self.sync()
        self.assertEqual([conf.MIRROR], self.modes_in_database())
