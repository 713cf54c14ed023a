# SPDX-License-Identifier: Apache-2.0
"""What ``journal list``, ``retry`` and ``forget`` print and do."""

import json

import fixtures

from nova_aggregate_mirror.cmd import journal_rows
from tests.unit import ends


class TestJournalRows(ends.TestCase):

    def setUp(self):
        super().setUp()
        self.out = self.useFixture(fixtures.StringStream('out'))
        self.err = self.useFixture(fixtures.StringStream('err'))
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', self.out.stream))
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', self.err.stream))

    def text(self, stream):
        stream.stream.seek(0)
        return stream.stream.read()

    def failed_row(self, host='h1', error='refused'):
        self.record(host, ['n1'])
        claimed = self.journal.rows()[-1]
        self.journal.hand_over(claimed.id, error)
        return claimed.id

    def show(self, form):
        return journal_rows.show(self.journal, form, now=lambda: self.now)

    def test_empty_journal(self):
        """A script reads an empty list; a person is told."""
        self.assertEqual(0, self.show('json'))
        self.assertEqual([], json.loads(self.text(self.out)))
        self.assertEqual(0, self.show('table'))
        self.assertIn('nothing is left', self.text(self.out))

    def test_table_says_what_why_and_how_long(self):
        """All that an operator wants to know at three in the morning."""
        self.failed_row(error='placement refused')
        self.record(aggregate='gone')
        self.now += 75
        self.show('table')
        _, _, _, host, aggregate, _ = self.text(self.out).splitlines()
        for expected in ('host h1', 'due', '75 s', 'placement refused'):
            self.assertIn(expected, host)
        self.assertIn('deleted aggregate gone', aggregate)
        self.assertIn('its operation runs', aggregate)

    def test_json_has_everything(self):
        """With times that a program can read."""
        number = self.failed_row()
        self.show('json')
        self.assertEqual([{
            'id': number, 'host': 'h1', 'nodes': ['n1'],
            'aggregate_uuid': None, 'request_id': None, 'state': 'due',
            'created_at': '1970-01-01T00:16:40+00:00',
            'next_attempt_at': '1970-01-01T00:16:40+00:00',
            'attempts': 1, 'last_error': 'refused',
        }], json.loads(self.text(self.out)))

    def test_waiting_and_claimed_rows(self):
        """Who has it, or until when it waits."""
        self.failed_row()
        self.journal.claim(10)
        self.show('table')
        self.assertIn('an agent works on it', self.text(self.out))
        row, = self.journal.rows()
        self.journal.retry_later({row: 'still refused'})
        self.show('table')
        self.assertIn('next attempt in 1 s', self.text(self.out))

    def test_retry_makes_rows_due(self):
        """All of them, or those that are named; an unknown one is named."""
        self.failed_row()
        self.journal.retry_later({
            row: 'refused' for row in self.journal.claim(10)})
        self.assertEqual([], self.journal.claim(10))
        self.assertEqual(0, journal_rows.retry(self.journal, []))
        self.assertEqual(1, len(self.journal.claim(10)))
        self.assertEqual(1, journal_rows.retry(self.journal, [4711]))
        self.assertIn('no row 4711', self.text(self.err))

    def test_forget_takes_out_what_nobody_works_on(self):
        """A row of an operation that runs stays: it is not over."""
        number = self.failed_row()
        running = self.record('h2')
        self.assertEqual(0, journal_rows.forget(self.journal, [number]))
        self.assertEqual(2, journal_rows.forget(self.journal, [running.id]))
        self.assertIn('still runs', self.text(self.err))
        self.assertEqual([running], self.journal.rows())
        self.assertEqual(1, journal_rows.forget(self.journal, [number]))
