# SPDX-License-Identifier: Apache-2.0
"""The result of a full sync as rows and lines."""

import testtools

from nova_aggregate_mirror.console import sync_result
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
                [row[0] for row in sync_result.rows(test_result.judged(
                    'absent', 'unknown_provider', 'foreign_provider',
                    'foreign_aggregate', 'stale_kept', 'stale', 'missing',
                    'pending', 'unknown', 'disputed', write=write))])

    def test_document(self):
        """It says of each stale association whether it is kept."""
        document = sync_result.document(test_result.judged(
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
                          sync_result.summary(result))
            self.assertEqual(
                [may_be] * count,
                [entry['detail'] for entry in sync_result.document(result)[
                    'unknown_providers']])

    def test_effect(self):
        """What drift does to servers is said of it alone."""
        for states, expected in ((['stale'], [sync_result.EFFECT]),
                                 (['pending', 'in_sync'], []), ([], [])):
            self.assertEqual(expected, sync_result.effect(states))

    def test_table(self):
        """Names come first; an aggregate without a name has its UUID."""
        self.assertEqual(
            [('stale', ('h', 'n', ''), 'zone'),
             ('absent', ('', 'n', 'aggregate a'), '')],
            sync_result.in_table([('stale', 'h', 'n', 'zone', 'a'),
                                  ('absent', '', 'n', '', 'a')])[1])
