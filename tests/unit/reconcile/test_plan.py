# SPDX-License-Identifier: Apache-2.0
"""The plan, for arbitrary nova and placement contents."""

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_aggregate_mirror.reconcile import plan

PROVIDERS = ['p%d' % number for number in range(6)]
OURS = ['ours-%d' % number for number in range(4)]
FOREIGN = ['foreign-%d' % number for number in range(3)]


def memberships(aggregates):
    return st.dictionaries(st.sampled_from(PROVIDERS),
                           st.frozensets(st.sampled_from(aggregates)))


_given = hypothesis.given(
    desired=memberships(OURS[:3]), current=memberships(OURS + FOREIGN),
    owned=st.frozensets(st.sampled_from(OURS[3:])).map(
        lambda old: old | frozenset(OURS[:3])))


def clouds(test):
    """Run a test with many clouds, without a time limit for each."""
    return hypothesis.settings(deadline=None, suppress_health_check=[
        hypothesis.HealthCheck.too_slow])(_given(test))


def applied(changes, current):
    result = dict(current)
    for change in changes:
        result[change.provider] = change.apply(current[change.provider])
    return result


class TestPlan(testtools.TestCase):

    @clouds
    def test_foreign_aggregate_is_kept(self, desired, current, owned):
        """A change only has aggregates that nova has or had."""
        for change in plan.compute(desired, current, owned):
            self.assertLessEqual({*change.add, *change.remove}, owned)
        after = applied(plan.compute(desired, current, owned), current)
        for provider, aggregates in current.items():
            self.assertEqual(aggregates - owned, after[provider] - owned)

    @clouds
    def test_provider_without_compute_node_is_kept(self, desired, current,
                                                   owned):
        """A change only has providers of compute nodes."""
        for change in plan.compute(desired, current, owned):
            self.assertIn(change.provider, desired)

    @clouds
    def test_applied_plan_keeps_the_promise(self, desired, current, owned):
        """A provider is in an aggregate iff its host is a member."""
        after = applied(plan.compute(desired, current, owned), current)
        for provider in desired.keys() & current.keys():
            self.assertEqual(desired[provider], after[provider] & owned)

    @clouds
    def test_second_plan_is_empty(self, desired, current, owned):
        """An applied plan leaves nothing to do."""
        after = applied(plan.compute(desired, current, owned), current)
        self.assertEqual([], plan.compute(desired, after, owned))

    @clouds
    def test_changes_are_ordered_and_real(self, desired, current, owned):
        """Two runs act alike, and no change is without effect."""
        changes = plan.compute(desired, current, owned)
        self.assertEqual(sorted(changes), changes)
        self.assertTrue(all(changes))
        self.assertEqual(len(changes), len({one.provider for one in changes}))
        for change in changes:
            self.assertEqual(tuple(sorted(change.add)), change.add)
            self.assertEqual(tuple(sorted(change.remove)), change.remove)

    @clouds
    def test_provider_that_does_not_exist(self, desired, current, owned):
        """It is never written."""
        self.assertLessEqual(
            {change.provider
             for change in plan.compute(desired, current, owned)},
            current.keys())

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
