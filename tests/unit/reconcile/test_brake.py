# SPDX-License-Identifier: Apache-2.0
"""The brake: which plans may result from a damaged or wrong database."""

import testtools

from nova_aggregate_mirror.reconcile import brake
from nova_aggregate_mirror.reconcile import plan


class TestRefusal(testtools.TestCase):

    def check(self, stale, right, share=0.3):
        """Check a plan with this many stale and correct associations."""
        current = {'s%02d' % number: frozenset({'a'})
                   for number in range(stale)}
        current.update(('r%02d' % number, frozenset({'b'}))
                       for number in range(right))
        desired = {provider: aggregates & {'b'}
                   for provider, aggregates in current.items()}
        owned = frozenset({'a', 'b'})
        return brake.refusal(
            plan.compute(desired, current, owned), current, desired, owned,
            share)

    def test_what_is_safe(self):
        """Up to ten removals, the configured share, or none at all."""
        for stale, right, share in (
                (10, 1, 0.3), (11, 100, 0.3), (99, 1, 1.0), (0, 0, 0.3)):
            self.assertIsNone(self.check(stale, right, share))

    def test_what_is_refused(self):
        """The refusal has its figures; an empty nova may be a lost table."""
        for stale, right, share, text in (
                (11, 10, 0.3,
                 '52.38% of the associations would be removed, which is over '
                 '30.00% (11 of 21)'),
                (1, 0, 1.0, 'nova reports no host in any aggregate; '
                 '1 association would be removed')):
            self.assertEqual(text, str(self.check(stale, right, share)))

    def test_removals_from_foreign_providers_count(self):
        """They cannot be undone, and count with an empty nova, too."""
        for desired in ({}, {'n1': frozenset({'a'})}):
            for foreign, is_refused in (200, True), (0, False):
                self.assertEqual(is_refused, brake.refusal(
                    [], {'n1': frozenset({'a'})}, desired, frozenset({'a'}),
                    0.3, foreign) is not None)
        self.assertIsNone(brake.refusal(
            [], {'n1': frozenset({'a'})}, {'n1': frozenset({'a'})},
            frozenset({'a'}), 0.3, foreign=10))
