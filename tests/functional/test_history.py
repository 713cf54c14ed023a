# SPDX-License-Identifier: Apache-2.0
"""The history of syncs: on each database, and as commands write it."""

import dataclasses
import operator
import pathlib
import sqlite3

from oslo_utils import uuidutils
import testscenarios
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.journal import store
from tests import databases
from tests import fixtures
from tests.functional import test_sync_command
from tests import processes
from tests.unit import doubles

load_tests = testscenarios.load_tests_apply_scenarios

PROCESSES = 4
TURNS = 25
GOOD = full_syncs.Entry('agent --prune', 'api1', 1000.5, 1001.5, 1.0)
BAD = dataclasses.replace(GOOD, failed=1, status=2, reason='refused')


class TestDatabases(testscenarios.WithScenarios, testtools.TestCase):

    scenarios = databases.SCENARIOS

    def setUp(self):
        super().setUp()
        self.conf = doubles.make_conf(self)
        self.url = databases.create(self, self.kind)
        self.conf.set_override(
            'connection', self.url, 'aggregate_mirror_database')
        existing.migrate(self.conf)
        self.database = store.Journal(self.conf).database

    def note(self, *entries, keep=full_syncs.KEEP):
        for entry in entries:
            full_syncs.add(self.database, entry, keep)

    def later(self, entry, seconds=60.0):
        return dataclasses.replace(
            entry, started_at=entry.started_at + seconds,
            ended_at=entry.ended_at + seconds)

    def test_passes_that_find_the_same_are_one_entry(self):
        """The entry has their number, and the times of the first and last."""
        last = dataclasses.replace(self.later(GOOD, 120), seconds=2.0)
        self.note(GOOD, self.later(GOOD), last)
        self.assertEqual([dataclasses.replace(
            last, started_at=GOOD.started_at, passes=3)],
            full_syncs.newest(self.database))

    def test_every_difference_has_an_entry(self):
        """A changed figure, command or host starts a new entry."""
        entries = [GOOD]
        # Each entry differs from the previous entry in a single field.
        for change in ({'added': 1}, {'added': 0, 'removed': 1},
                       {'removed': 0}, {'host': 'api2'}, {'command': 'x'},
                       {'stale': 1}, {'failed': 1}, {'status': 8}):
            entries.append(dataclasses.replace(entries[-1], **change))
        changed = dataclasses.replace(GOOD, added=1)
        entries += [changed, changed]
        self.note(*entries)
        self.assertEqual(entries[::-1], full_syncs.newest(self.database))
        self.assertEqual(entries[:-3:-1], full_syncs.newest(self.database)[:2])

    def test_entries_that_have_several_passes(self):
        """An outage, with its last reason, or the same observed drift.

        Leaders of different modes have one entry each; the newest is that of
        the last sync.
        """
        later = dataclasses.replace(self.later(BAD), reason='refused: 4711')
        drift = dataclasses.replace(
            GOOD, removed=1, compared=False, mode='observe', removals='h1')
        mirrored = dataclasses.replace(GOOD, mode='mirror')
        for entries, columns, expected in (
                ([GOOD, BAD, later, self.later(GOOD, 120)],
                 ('status', 'passes', 'reason'),
                 [(0, 1, ''), (2, 2, 'refused: 4711'), (0, 1, '')]),
                # A sync that repaired it has an entry of its own.
                ([drift, drift, dataclasses.replace(drift, removals='h2'),
                  dataclasses.replace(GOOD, removed=1, removals='h2')],
                 ('observed', 'passes'),
                 [(False, 1), (True, 1), (True, 2)]),
                ([*2 * [drift, mirrored], drift], ('mode', 'passes'),
                 [('observe', 3), ('mirror', 2)]),
                ([mirrored, GOOD, drift], ('mode', 'passes'),
                 [('observe', 1), ('', 1), ('mirror', 1)])):
            databases.execute(self.url, 'DELETE FROM syncs')
            self.note(*entries)
            values = operator.attrgetter(*columns)
            self.assertEqual(
                expected, [*map(values, full_syncs.newest(self.database))])

    def test_old_entries_are_deleted(self):
        """Only the newest entries are kept."""
        for number in range(7):
            self.note(dataclasses.replace(GOOD, added=number), keep=3)
        self.assertEqual([6, 5, 4], [
            one.added for one in full_syncs.newest(self.database)])

    def test_text_that_a_column_does_not_take(self):
        """It is truncated and escaped, and never an error."""
        self.note(dataclasses.replace(
            GOOD, command='x --host \u0437' + 'y' * 999, host='h' * 999,
            failed=1, reason='no\0thing \U0001f600' + 'z' * 99999,
            removals='\u0437' * 999999))
        entry, = full_syncs.newest(self.database)
        self.assertTrue(entry.command.startswith('x --host \\u0437yyy'))
        self.assertTrue(entry.reason.startswith('no\\x00thing \\U0001f600'))
        self.assertEqual(full_syncs.REMOVALS_LENGTH, len(entry.removals))

    def test_many_at_once(self):
        """No writer gets an error, and every pass is counted."""
        def work(number):
            kept = store.Journal(self.conf).database
            for _turn in range(TURNS):
                full_syncs.add(kept, GOOD, keep=1000)

        processes.at_once(PROCESSES, work)
        self.assertEqual(PROCESSES * TURNS, sum(
            one.passes for one in full_syncs.newest(self.database)))


class TestCommand(test_sync_command.SyncTest):

    def setUp(self):
        super().setUp()
        self.database = self.journal.database

    def test_run_is_written_and_a_preview_is_not(self):
        """The entry has the command, the figures and each removal."""
        self.host('h1')
        self.host('pending', providers=False)
        # A restored database of nova lacks an aggregate that it once had.
        gone = uuidutils.generate_uuid()
        self.journal.ledger.remember([gone])
        stale = self.stale('stale', self.zone.uuid, gone)
        self.sync('--dry-run', '--prune')
        self.assertEqual([], full_syncs.newest(self.database))
        self.sync()
        self.sync('--prune', '--force', '--host', 'stale')
        newest = last, first = full_syncs.newest(self.database)
        figures = operator.attrgetter(
            'command', 'added', 'removed', 'stale', 'failed', 'status')
        self.assertEqual([
            ('placement sync_aggregates --prune --force --host stale',
             0, 2, 0, 0, 0),
            ('placement sync_aggregates', 1, 0, 2, 1, 6)],
            [*map(figures, newest)])
        text = 'host stale (provider %s): aggregate ' % stale.nodes[0]
        self.assertEqual({text + 'zone (%s)' % self.zone.uuid,
                          text + 'deleted (%s)' % gone},
                         {*last.removals.splitlines()})
        self.assertEqual('', first.removals)
        self.assertIn('Host pending: compute node', first.reason)
        self.assertLess(0, first.seconds)
        self.assertAlmostEqual(first.seconds,
                               first.ended_at - first.started_at, places=3)

    def test_history_that_cannot_be_written(self):
        """The sync completes, and reports the history error."""
        self.host('h1')
        self.journal.rows.all()
        path = pathlib.Path(existing.sqlite_file(fixtures.CONF))
        with sqlite3.connect(path) as kept:
            kept.execute('DROP TABLE syncs')
        done = self.sync('--quiet', '--no-prune')
        self.assertEqual(0, done.returncode, done.stderr)
        line, = done.stderr.splitlines()
        self.assertIn(
            'This sync is not recorded in the history: the database ', line)
        self.assertEqual([], self.cloud.drift())
        with self.assertRaises(exceptions.JournalUnavailable):
            full_syncs.newest(self.database)
