# SPDX-License-Identifier: Apache-2.0
"""Rules and the query that says them, one situation each."""

from urllib import parse

from nova import objects
from nova.scheduler.filters import extra_specs_ops
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_aggregate_mirror.scheduler import constraints

NOTHING = constraints.Query()
UNBOUNDED = 65536


def aggregates(*uuids_):
    return frozenset(uuids_)


def required(*matching, subject='it'):
    return constraints.Rule(subject, aggregates(*matching), required=True)


def divided(matching, restricting):
    return constraints.Rule('it', aggregates(*matching),
                            aggregates(*restricting))


class TestRule(testtools.TestCase):

    def test_host_in_a_matching_aggregate(self):
        """It passes, whatever else it is in."""
        rule = divided(['mine'], ['mine', 'theirs'])
        self.assertTrue(rule.passes({'mine', 'theirs', 'other'}))

    def test_host_in_a_restricting_aggregate(self):
        """It does not pass without a matching one."""
        rule = divided(['mine'], ['mine', 'theirs'])
        self.assertFalse(rule.passes({'theirs', 'other'}))

    def test_host_in_neither(self):
        """It passes unless the rule is required."""
        self.assertTrue(divided(['mine'], ['theirs']).passes({'other'}))
        self.assertFalse(required('mine').passes({'other'}))


class TestExtraSpecs(testtools.TestCase):

    def keys(self, *specs):
        return constraints.extra_spec_keys(specs)

    def matching(self, wanted, *values):
        rule, = constraints.flavor_extra_specs(
            {'cpu': wanted}, {value: {'cpu': value} for value in values},
            extra_specs_ops.match)
        return rule.matching

    def test_bare_and_scoped_keys(self):
        """Both are about aggregates; other scopes are not."""
        self.assertEqual(
            {'ssd': 'ssd', 'aggregate_instance_extra_specs:trait:x': 'trait:x',
             'aggregate_instance_extra_specs:ssd': 'ssd'},
            self.keys('ssd', 'aggregate_instance_extra_specs:ssd', 'hw:ssd',
                      'aggregate_instance_extra_specs:trait:x', ':ssd'))

    def test_both_spellings_of_a_key(self):
        """Each is a rule of its own."""
        rules = constraints.flavor_extra_specs(
            {'ssd': 'a', 'aggregate_instance_extra_specs:ssd': 'b'},
            {'1': {'ssd': 'a'}, '2': {'ssd': 'b'}}, extra_specs_ops.match)
        self.assertEqual([{'2'}, {'1'}], [rule.matching for rule in rules])

    def test_value_that_is_no_number(self):
        """It is no match, where nova's filter would end the request."""
        self.assertRaises(ValueError, extra_specs_ops.match, 'many', '>= 8')
        self.assertEqual({'16'}, self.matching('>= 8', 'many', '16', '4'))

    def test_operator_without_operand(self):
        """It matches nothing, likewise."""
        self.assertRaises(IndexError, extra_specs_ops.match, '8', '<or>')
        self.assertEqual(frozenset(), self.matching('<or>', '8'))


class TestNarrow(testtools.TestCase):

    def narrow(self, *rules, together=(), asked=NOTHING, budget=UNBOUNDED):
        return constraints.narrow(
            rules, {frozenset(pair) for pair in together}, asked, budget)

    def test_required_aggregates(self):
        """A host must be in one of each rule's."""
        self.assertEqual(
            (constraints.Query((aggregates('c'), aggregates('a', 'b'))), 0),
            self.narrow(required('a', 'b'), required('c')))

    def test_nothing_matches(self):
        """An empty set never gets into a query; the text says what it was."""
        error = self.assertRaises(constraints.Unsatisfiable, self.narrow,
                                  required('a'), required(subject='spec ssd'))
        self.assertIn('spec ssd', str(error))

    def test_implied_set_is_left_out(self):
        """Nova requires a zone already; saying less again costs bytes."""
        asked = constraints.Query((aggregates('a'),))
        self.assertEqual((NOTHING, 0), self.narrow(
            required('a', 'b'), asked=asked))
        self.assertEqual(
            (constraints.Query((aggregates('a'),)), 0),
            self.narrow(required('a', 'b'), required('a'), required('a')))

    def test_restricting_aggregates_are_forbidden(self):
        """Those that match do not restrict."""
        self.assertEqual(
            (constraints.Query(forbidden=aggregates('b', 'c')), 0),
            self.narrow(divided(['a'], ['a', 'b', 'c'])))

    def test_host_in_both_kinds(self):
        """The aggregate that it is in cannot be forbidden as a whole."""
        self.assertEqual(
            (constraints.Query(forbidden=aggregates('c')), 0),
            self.narrow(divided(['a'], ['b', 'c']),
                        together=[('a', 'b'), ('b', 'c')]))

    def test_forbidden_already(self):
        """Only what is missing is added, and it is all that is counted."""
        asked = constraints.Query(forbidden=aggregates('b'))
        self.assertEqual(
            (constraints.Query(forbidden=aggregates('c')), 0),
            self.narrow(divided([], ['b', 'c']), asked=asked))


class TestBudget(testtools.TestCase):

    SMALL, LARGE = aggregates(uuids.a), aggregates(uuids.b, uuids.c)

    def narrow(self, budget, asked=NOTHING):
        return constraints.narrow(
            [required(*self.LARGE), required(*self.SMALL),
             divided([], [uuids.d, uuids.e])], set(), asked, budget)

    def test_size_is_what_nova_sends(self):
        """The bytes that nova's own code makes of a query."""
        objects.register_all()
        query = constraints.Query((self.SMALL, self.LARGE),
                                  aggregates(uuids.d, uuids.e))
        group = objects.RequestGroup(
            resources={'VCPU': 1}, aggregates=list(query.required),
            forbidden_aggregates=set(query.forbidden))
        sent = [one for one in group.to_queryparams() if one[0] == 'member_of']
        self.assertEqual(3, len(sent))
        self.assertEqual(len(parse.urlencode(sent)), query.size())

    def test_everything_fits_exactly(self):
        """The budget is the most that may be taken."""
        forbidden = aggregates(uuids.d, uuids.e)
        everything = constraints.Query((self.SMALL, self.LARGE), forbidden)
        self.assertEqual((everything, 0), self.narrow(everything.size()))
        added, left_out = self.narrow(everything.size() - 1)
        self.assertEqual((1, everything.required, 1),
                         (left_out, added.required, len(added.forbidden)))

    def test_small_sets_come_first(self):
        """A set is never cut: that would exclude hosts."""
        small = constraints.Query((self.SMALL,))
        self.assertEqual((small, 3), self.narrow(small.size()))
        self.assertEqual((NOTHING, 4), self.narrow(small.size() - 1))

    def test_what_nova_asks_counts(self):
        """The URL has one limit for all of it."""
        asked = constraints.Query((aggregates(uuids.zone),))
        small = constraints.Query((self.SMALL,))
        budget = (asked | small).size()
        self.assertEqual((small, 3), self.narrow(budget, asked))
        self.assertEqual((NOTHING, 4), self.narrow(budget - 1, asked))

    def test_nova_asks_for_more_already(self):
        """Then nothing is added, and nothing fails."""
        asked = constraints.Query((self.LARGE,), self.LARGE)
        added, left_out = self.narrow(0, asked)
        self.assertEqual((NOTHING, 3), (added, left_out))
