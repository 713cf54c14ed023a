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

    def narrow(self, *rules, overlaps=(), asked=NOTHING):
        return constraints.narrow(
            rules, {frozenset(pair) for pair in overlaps}, asked, UNBOUNDED)

    def test_query(self):
        """What rules add to the query of nova, and what they leave out."""
        odd = keyed_aggregates.key_of(7, 'zone-one')
        only_a = constraints.MemberOf((aggregates('a'),))
        for rules, options, *expected in (
                # A host must be in an aggregate of each rule.
                ([required('a', 'b'), required('c')], {},
                 aggregates('c'), aggregates('a', 'b')),
                # A set that nova requires already is not sent again.
                ([required('a', 'b')], {'asked': only_a}),
                ([required('a', 'b'), required('a'), required('a')], {},
                 aggregates('a')),
                # No UUID: the guard checks the hosts of such an aggregate.
                ([required('a', odd)], {})):
            self.assertEqual((constraints.MemberOf(tuple(expected)), 0),
                             self.narrow(*rules, **options))
        for rule, options, forbidden in (
                # Matching aggregates do not restrict.
                (divided(['a'], 'abc'), {}, 'bc'),
                (divided(['a'], ['b', odd]), {}, 'b'),
                # An aggregate of a host in both kinds cannot be forbidden.
                (divided(['a'], 'bc'), {
                    'overlaps': [('a', 'b'), ('b', 'c')]}, 'c'),
                # Only those that nova does not forbid are added and counted.
                (divided([], 'bc'), {'asked': constraints.MemberOf(
                    forbidden=aggregates('b'))}, 'c')):
            self.assertEqual(
                (constraints.MemberOf(forbidden=aggregates(*forbidden)), 0),
                self.narrow(rule, **options))

    def test_nothing_matches(self):
        """An empty set never enters a query; the error names the rule."""
        error = self.assertRaises(constraints.Unsatisfiable, self.narrow,
                                  required('a'), required(subject='spec ssd'))
        self.assertIn('spec ssd', str(error))


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
        # Nothing fails if nova asks for more already.
        asked = constraints.MemberOf((self.LARGE,), self.LARGE)
        self.assertEqual((NOTHING, 3), self.narrow(0, asked))
