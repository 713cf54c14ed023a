# SPDX-License-Identifier: Apache-2.0
"""Rules and the resulting query, one situation per test."""

from urllib import parse

from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.source import keyed_aggregates

NOTHING = constraints.MemberOf()
UNBOUNDED = 65536


def aggregates(*uuids_):
    return frozenset(uuids_)


def required(*matching, subject='it'):
    return constraints.Rule(subject, aggregates(*matching), required=True)


def divided(matching, restricting):
    return constraints.Rule('it', aggregates(*matching),
                            aggregates(*restricting))


class TestNarrow(testtools.TestCase):

    def narrow(self, *rules, overlaps=(), asked=NOTHING, budget=UNBOUNDED):
        return constraints.narrow(
            rules, {frozenset(pair) for pair in overlaps}, asked, budget)

    def test_required_aggregates(self):
        """A host must be in an aggregate of each rule."""
        both = constraints.MemberOf((aggregates('c'), aggregates('a', 'b')))
        self.assertEqual(
            (both, 0), self.narrow(required('a', 'b'), required('c')))

    def test_nothing_matches(self):
        """An empty set never enters a query; the error names the rule."""
        error = self.assertRaises(constraints.Unsatisfiable, self.narrow,
                                  required('a'), required(subject='spec ssd'))
        self.assertIn('spec ssd', str(error))

    def test_implied_set_is_left_out(self):
        """A set that nova already requires is not sent again."""
        asked = constraints.MemberOf((aggregates('a'),))
        self.assertEqual((NOTHING, 0), self.narrow(
            required('a', 'b'), asked=asked))
        self.assertEqual((asked, 0), self.narrow(
            required('a', 'b'), required('a'), required('a')))

    def test_aggregate_without_a_uuid(self):
        """The query does not exclude its hosts, and the guard checks them."""
        odd = keyed_aggregates.key_of(7, 'zone-one')
        self.assertEqual((NOTHING, 0), self.narrow(required('a', odd)))
        self.assertEqual(
            (constraints.MemberOf(forbidden=aggregates('b')), 0),
            self.narrow(divided(['a'], ['b', odd])))

    def test_restricting_aggregates_are_forbidden(self):
        """Matching aggregates do not restrict."""
        self.assertEqual(
            (constraints.MemberOf(forbidden=aggregates('b', 'c')), 0),
            self.narrow(divided(['a'], ['a', 'b', 'c'])))

    def test_host_in_both_kinds(self):
        """An aggregate of such a host cannot be forbidden."""
        self.assertEqual(
            (constraints.MemberOf(forbidden=aggregates('c')), 0),
            self.narrow(divided(['a'], ['b', 'c']),
                        overlaps=[('a', 'b'), ('b', 'c')]))

    def test_forbidden_already(self):
        """Only missing aggregates are added and counted."""
        asked = constraints.MemberOf(forbidden=aggregates('b'))
        self.assertEqual(
            (constraints.MemberOf(forbidden=aggregates('c')), 0),
            self.narrow(divided([], ['b', 'c']), asked=asked))


class TestBudget(testtools.TestCase):

    SMALL, LARGE = aggregates(uuids.a), aggregates(uuids.b, uuids.c)

    def narrow(self, budget, asked=NOTHING):
        return constraints.narrow(
            [required(*self.LARGE), required(*self.SMALL),
             divided([], [uuids.d, uuids.e])], set(), asked, budget)

    def test_size_is_what_nova_sends(self):
        """The size equals the bytes of the query that nova generates."""
        objects.register_all()
        query = constraints.MemberOf((self.SMALL, self.LARGE),
                                     aggregates(uuids.d, uuids.e))
        group = objects.RequestGroup(
            resources={'VCPU': 1}, aggregates=list(query.required),
            forbidden_aggregates=set(query.forbidden))
        sent = [one for one in group.to_queryparams() if one[0] == 'member_of']
        self.assertEqual(3, len(sent))
        self.assertEqual(len(parse.urlencode(sent)), query.size())

    def test_everything_fits_exactly(self):
        """A query that uses the whole budget is sent."""
        forbidden = aggregates(uuids.d, uuids.e)
        everything = constraints.MemberOf((self.SMALL, self.LARGE), forbidden)
        self.assertEqual((everything, 0), self.narrow(everything.size()))
        added, left_out = self.narrow(everything.size() - 1)
        self.assertEqual((1, everything.required, 1),
                         (left_out, added.required, len(added.forbidden)))

    def test_small_sets_come_first(self):
        """A set is never truncated: that would exclude hosts."""
        small = constraints.MemberOf((self.SMALL,))
        self.assertEqual((small, 3), self.narrow(small.size()))
        self.assertEqual((NOTHING, 4), self.narrow(small.size() - 1))

    def test_what_nova_asks_counts(self):
        """The limit applies to the whole URL."""
        asked = constraints.MemberOf((aggregates(uuids.zone),))
        small = constraints.MemberOf((self.SMALL,))
        budget = (asked | small).size()
        self.assertEqual((small, 3), self.narrow(budget, asked))
        self.assertEqual((NOTHING, 4), self.narrow(budget - 1, asked))

    def test_nova_asks_for_more_already(self):
        """Then nothing is added, and nothing fails."""
        asked = constraints.MemberOf((self.LARGE,), self.LARGE)
        added, left_out = self.narrow(0, asked)
        self.assertEqual((NOTHING, 3), (added, left_out))
