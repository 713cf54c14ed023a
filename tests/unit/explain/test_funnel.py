# SPDX-License-Identifier: Apache-2.0
"""What is asked of placement, and what is made of the answers."""

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import funnel
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.placement import candidates
from nova_aggregate_mirror.placement import parallel

NODES = frozenset('abcd')
QUERY = placement_query.parse(
    [('resources', 'MEMORY_MB:1,VCPU:1'), ('required', 'X')])


class Placement:
    """Answers of placement, by the number of parameters that a query has."""

    def __init__(self, trees, *answers):
        self._trees = trees
        self._answers = iter(answers)
        self.asked = []

    def trees(self):
        return self._trees

    def providers(self, parameters):
        self.asked.append(('providers', parameters))
        return next(self._answers)

    def candidates(self, parameters):
        self.asked.append(('candidates', parameters))
        return candidates.Candidates([], dict.fromkeys(
            next(self._answers), {}))


def narrow(placement, *queries, sharing=False):
    return funnel.narrow(
        placement, sharing, parallel.Workers().each, queries, NODES)


class TestNarrow(testtools.TestCase):

    def test_one_query_per_condition(self):
        """Each with all conditions before it; other providers are left out."""
        placement = Placement(
            dict.fromkeys('abcx', '') | dict(zip('abcx', 'abcx')),
            'c', NODES | {'x'}, frozenset('bc'), frozenset('c'))
        observed = narrow(placement, QUERY)
        self.assertEqual(frozenset('abc'), observed.existing)
        self.assertEqual(list(map(frozenset, ('abcd', 'bc', 'c'))),
                         observed.passed)
        self.assertEqual(
            ['candidates', 'providers', 'providers', 'providers'],
            [kind for kind, _parameters in placement.asked])
        self.assertEqual([('resources', 'MEMORY_MB:1')],
                         placement.asked[1][1])

    def test_nested_providers(self):
        """Only allocation candidates know where resources may come from.

        The whole query is made once.
        """
        placement = Placement({'a': 'a', 'b': 'a'}, *['ab'] * 3)
        narrow(placement, QUERY)
        self.assertEqual({'candidates'}, {
            kind for kind, _parameters in placement.asked})

    def test_shared_providers(self):
        """The same applies to them."""
        placement = Placement({'a': 'a'}, *['a'] * 3)
        narrow(placement, QUERY, sharing=True)
        self.assertEqual({'candidates'}, {
            kind for kind, _parameters in placement.asked})

    def test_placement_changes_meanwhile(self):
        """A node that reappears stays excluded."""
        placement = Placement(dict(zip(NODES, NODES)), 'a',
                              frozenset('ab'), frozenset('a'),
                              frozenset('ab'))
        self.assertEqual(list(map(frozenset, ('ab', 'a', 'a'))),
                         narrow(placement, QUERY).passed)

    def test_placement_cuts_the_response_to_a_part(self):
        """A candidate of the whole query meets each of its conditions."""
        placement = Placement(dict(zip(NODES, NODES)), 'ab',
                              frozenset('cd'), frozenset('c'), frozenset('a'))
        self.assertEqual(list(map(frozenset, ('abcd', 'abc', 'ab'))),
                         narrow(placement, QUERY).passed)

    def test_part_that_is_no_query(self):
        """It excludes nothing; the whole is what nova asks."""
        class Refusing(Placement):
            def providers(self, parameters):
                raise exceptions.RequestRejected('no resources')

        observed = narrow(Refusing({'a': 'a'}, 'a'), QUERY)
        self.assertEqual([NODES] * 3, observed.passed)
