# SPDX-License-Identifier: Apache-2.0
"""A change as text."""

import testtools

from nova_aggregate_mirror.reconcile import plan


class TestChange(testtools.TestCase):

    def test_description(self):
        """Aggregates by name and UUID, and only what changes."""
        names = {'a': 'zone-a', 'b': 'rack-b'}
        for change, text in (
                (plan.Change('p1', ('a', 'b')),
                 'added zone-a (a), rack-b (b)'),
                (plan.Change('p1', (), ('deleted',)), 'removed deleted'),
                (plan.Change('p1', ('a',), ('b',)),
                 'added zone-a (a); removed rack-b (b)')):
            self.assertEqual(text, change.describe(names))
