# SPDX-License-Identifier: Apache-2.0
"""The changes for arbitrary nova and placement contents, and the brake."""

import dataclasses

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror import source

PROVIDERS = ['p%d' % number for number in range(6)]
OURS = ['ours-%d' % number for number in range(4)]
FOREIGN = ['foreign-%d' % number for number in range(3)]


def memberships(aggregates):
    return st.dictionaries(st.sampled_from(PROVIDERS),
                           st.frozensets(st.sampled_from(aggregates)))


def clouds(test):
    """Run a test with many clouds, without a time limit for each."""
    return hypothesis.settings(deadline=None, suppress_health_check=[
        hypothesis.HealthCheck.too_slow])(hypothesis.given(
            desired=memberships(OURS[:3]), current=memberships(OURS + FOREIGN),
            deleted=st.frozensets(st.sampled_from(OURS[3:])))(test))


def compare(desired, current, deleted=(), aggregates=OURS[:3]):
    """Compare a nova in which each compute node is its own host."""
    return comparison.Comparison(
        current, source.Nova(
            dict.fromkeys(aggregates, 'name'), desired,
            {node: node for node in desired}),
        dict.fromkeys(deleted, journal.LedgerEntry()))


class TestChanges(testtools.TestCase):

    @clouds
    def test_applied_changes_keep_the_promise(self, desired, current, deleted):
        """A provider is in an owned aggregate iff its host is a member.

        Other providers, and aggregates that are not owned, are left as they
        are, and nothing is left to do.
        """
        compared = compare(desired, current, deleted)
        after = compared.after(compared.changes)
        self.assertEqual(current.keys(), after.current.keys())
        for provider, aggregates in current.items():
            self.assertEqual(
                desired[provider] | aggregates - compared.owned
                if provider in desired else aggregates,
                after.current[provider])
        self.assertEqual([], after.changes)

    @clouds
    def test_changes_are_ordered_and_real(self, desired, current, deleted):
        """Two runs act alike, and no change is without effect."""
        changes = compare(desired, current, deleted).changes
        self.assertEqual(sorted(changes), changes)
        self.assertTrue(all(changes))
        providers = {change.provider for change in changes}
        self.assertLessEqual(providers, desired.keys() & current.keys())
        self.assertEqual(len(changes), len(providers))
        for change in changes:
            self.assertEqual(tuple(sorted(change.add)), change.add)
            self.assertEqual(tuple(sorted(change.remove)), change.remove)


class TestRefusal(testtools.TestCase):
    """The brake: what may result from a damaged or wrong database."""

    def check(self, stale, right, share=0.3):
        """Check this many stale and correct associations."""
        current = {'s%02d' % number: frozenset({'a'})
                   for number in range(stale)}
        current.update(('r%02d' % number, frozenset({'b'}))
                       for number in range(right))
        desired = {provider: aggregates & {'b'}
                   for provider, aggregates in current.items()}
        return compare(desired, current, aggregates='ab').refusal(share)

    def test_what_is_safe(self):
        """Up to ten removals, the configured share, or none at all."""
        for stale, right, share in (
                (10, 1, 0.3), (11, 100, 0.3), (99, 1, 1.0), (0, 0, 0.3),
                (11, 0, comparison.UNLIMITED), (11, 0, None)):
            self.assertIsNone(self.check(stale, right, share))

    def test_what_is_refused(self):
        """The refusal has its figures; an empty nova may be a lost table."""
        for stale, right, share, text in (
                (11, 10, 0.3,
                 '52.38% of the associations would be removed, which is over '
                 '30.00% (11 of 21)'),
                (1, 0, 1.0, 'nova has no compute node in any aggregate; '
                 '1 association would be removed')):
            refusal = self.check(stale, right, share).failure
            self.assertEqual((text, comparison.REVIEW),
                             (refusal.observation, refusal.step))

    def test_members_of_a_cell_that_did_not_answer(self):
        """Nova reports them, so that its answer is not empty."""
        compared = compare({'n1': frozenset()}, {'n1': frozenset({'a'})},
                           aggregates='a')
        self.assertIsNotNone(compared.refusal(0.3))
        nova = dataclasses.replace(
            compared.nova, hosts_down={'far': frozenset({'cell2'})})
        self.assertIsNone(
            dataclasses.replace(compared, nova=nova).refusal(0.3))

    def test_removals_from_foreign_providers_count(self):
        """They cannot be undone, and count with an empty nova, too."""
        ledger = {'gone': journal.LedgerEntry(absent=comparison.FOREIGN_AFTER)}
        member = {'n1': frozenset({'a'})}
        for desired, foreign, is_refused in (
                ({}, 200, True), ({}, 0, False), (member, 200, True),
                (member, 0, False), (member, 10, False)):
            current = {'x%d' % number: frozenset({'gone'})
                       for number in range(foreign)}
            refusal = dataclasses.replace(
                compare(desired, current | desired, aggregates='a'),
                ledger=ledger).refusal(0.3)
            self.assertEqual(is_refused, refusal is not None)
