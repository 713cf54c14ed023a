# SPDX-License-Identifier: Apache-2.0
"""Changes of providers."""

import testtools

from nova_aggregate_mirror.reconcile import outcome


class TestChange(testtools.TestCase):

    def test_description(self):
        """Aggregates by name and UUID, and only what changes."""
        names = {'a': 'zone-a', 'b': 'rack-b'}
        for change, text in (
                (outcome.Change('p1', ('a', 'b')),
                 'added zone-a (a), rack-b (b)'),
                (outcome.Change('p1', (), ('deleted',)), 'removed deleted'),
                (outcome.Change('p1', ('a',), ('b',)),
                 'added zone-a (a); removed rack-b (b)')):
            self.assertEqual(text, change.describe(names))
