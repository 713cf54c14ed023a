# SPDX-License-Identifier: Apache-2.0
"""The plan, for arbitrary nova and placement contents."""

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_aggregate_mirror import exceptions
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


class TestBrake(testtools.TestCase):

    def check(self, stale, right, share=0.3):
        """Check a plan with this many stale and correct associations."""
        current = {'s%02d' % number: frozenset({'a'})
                   for number in range(stale)}
        current.update(('r%02d' % number, frozenset({'b'}))
                       for number in range(right))
        desired = {provider: aggregates & {'b'}
                   for provider, aggregates in current.items()}
        owned = frozenset({'a', 'b'})
        plan.check_safe(plan.compute(desired, current, owned), current,
                        desired, owned, share)

    def refusal(self, *args, **kwargs):
        return str(self.assertRaises(exceptions.RemovalsRefused, self.check,
                                     *args, **kwargs))

    def test_few_removals_are_always_safe(self):
        """Ten of eleven: a small cloud may change that much in a day."""
        self.check(stale=10, right=1)

    def test_more_than_ten_and_more_than_the_share(self):
        """The refusal has its figures."""
        self.check(stale=11, right=100)
        self.assertEqual(
            '52.38% of the associations would be removed, which is over '
            '30.00% (11 of 21)', self.refusal(stale=11, right=10))

    def test_share_of_one_never_refuses_a_nova_that_has_members(self):
        """The operator has configured no limit."""
        self.check(stale=99, right=1, share=1.0)

    def test_empty_nova_is_refused_however_few(self):
        """It is indistinguishable from a lost table."""
        self.assertEqual(
            'nova reports no host in any aggregate; 1 association would '
            'be removed', self.refusal(stale=1, right=0, share=1.0))

    def test_nothing_to_remove_is_safe(self):
        """Even with an empty nova."""
        self.check(stale=0, right=0)

    def test_removals_from_foreign_providers_count(self):
        """They cannot be undone, and count with an empty nova, too."""
        for desired in ({}, {'n1': frozenset({'a'})}):
            self.assertRaises(
                exceptions.RemovalsRefused, plan.check_safe, [],
                {'n1': frozenset({'a'})}, desired, frozenset({'a'}), 0.3,
                foreign=200)
        plan.check_safe([], {'n1': frozenset({'a'})},
                        {'n1': frozenset({'a'})}, frozenset({'a'}), 0.3,
                        foreign=10)
