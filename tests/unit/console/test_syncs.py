# SPDX-License-Identifier: Apache-2.0
"""The result of a full sync as rows and lines, and its interruption.

After the second Ctrl-C the process ends without unwinding.
"""

import os
import signal

import fixtures
import testtools

from nova_aggregate_mirror.console import syncs
from nova_aggregate_mirror import source
from tests.unit import doubles
from tests.unit.reconcile import test_result


class TestRows(testtools.TestCase):

    def test_states(self):
        """They are the same in a dry run; what nova has to do has none."""
        for write in True, False:
            self.assertEqual(
                ['missing', 'stale', 'stale', 'foreign_aggregate',
                 'foreign_provider', 'unknown_provider', 'absent'],
                [row[0] for row in syncs.rows(test_result.judged(
                    'absent', 'unknown_provider', 'foreign_provider',
                    'foreign_aggregate', 'stale_kept', 'stale', 'missing',
                    'pending', 'unknown', 'disputed', write=write))])

    def test_document(self):
        """It says of each stale association whether it is kept."""
        document = syncs.document(test_result.judged(
            'missing', 'stale', 'stale_kept'))
        self.assertEqual([False, True],
                         [entry['kept'] for entry in document['stale']])
        self.assertEqual(1, len(document['missing']))

    def test_cell_that_does_not_answer(self):
        """Each provider that may be its compute node is left unchanged."""
        may_be = 'may be a compute node of cell cell9'
        nova = source.Nova({}, {}, {}, cells_down={'cell9': doubles.SILENT})
        for count, subject in (1, 'resource provider, which '), (
                2, 'resource providers, each of which '):
            result = test_result.judged(
                *['unknown_provider'] * count, nova=nova)
            self.assertIn('Unchanged: %d %s%s.' % (count, subject, may_be),
                          syncs.summary(result))
            self.assertEqual(
                [may_be] * count,
                [entry['detail'] for entry in syncs.document(result)[
                    'unknown_providers']])

    def test_effect(self):
        """What drift does to servers is said of it alone."""
        for states, expected in ((['stale'], [syncs.EFFECT]),
                                 (['pending', 'in_sync'], []), ([], [])):
            self.assertEqual(expected, syncs.effect(states))

    def test_table(self):
        """Names come first; an aggregate without a name has its UUID."""
        self.assertEqual(
            [('stale', ('h', 'n', ''), 'zone'),
             ('absent', ('', 'n', 'aggregate a'), '')],
            syncs.in_table([('stale', 'h', 'n', 'zone', 'a'),
                            ('absent', '', 'n', '', 'a')])[1])


class TestInterruption(testtools.TestCase):

    def test_reader_that_was_interrupted_as_well(self):
        """As with ``2>&1 | tee``: what is in flight is completed."""
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.console.syncs.STDERR', writer))
        with syncs.interruptible() as received:
            os.kill(os.getpid(), signal.SIGINT)
        self.assertEqual([signal.SIGINT], received)

    def test_second_signal(self):
        """The process ends without waiting for what is in flight."""
        exits, shouts = [], []
        self.useFixture(fixtures.MonkeyPatch('os._exit', exits.append))
        self.useFixture(fixtures.MonkeyPatch(
            'os.write', lambda _file, text: shouts.append(text)))
        with syncs.interruptible():
            os.kill(os.getpid(), signal.SIGTERM)
            self.assertEqual([], exits)
            os.kill(os.getpid(), signal.SIGINT)
        self.assertEqual([143], exits)
        self.assertEqual(
            '\n%s\n' % syncs.ABANDONED, shouts[1].decode())
