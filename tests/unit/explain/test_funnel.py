# SPDX-License-Identifier: Apache-2.0
"""What is asked of placement, and what is made of the answers."""

import fixtures
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import funnel
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.placement import workers

NODES = frozenset('abcd')
QUERY = placement_query.parse(
    [('resources', 'MEMORY_MB:1,VCPU:1'), ('required', 'X')])


class Placement:
    """Answers of placement, by the number of parameters that a query has."""

    def __init__(self, trees, *answers):
        self._trees = trees
        self._answers = iter(answers)
        self.asked = []

    def trees(self, parameters=()):
        if not parameters:
            return self._trees
        self.asked.append(('providers', parameters))
        return dict.fromkeys(next(self._answers))

    def candidates(self, parameters, limit=None):
        self.asked.append(('candidates', parameters))
        return candidates.Candidates([], dict.fromkeys(
            next(self._answers), {}))


def narrow(placement, *queries, sharing=frozenset()):
    return funnel.read(
        placement, sharing, workers.each(), queries, NODES)


def passed(observed):
    """Return the nodes that pass each condition."""
    return [nodes for _condition, nodes in observed.passed]


class TestNarrow(testtools.TestCase):

    def test_one_query_per_condition(self):
        """Each by itself: a node may fail several of them."""
        placement = Placement(
            dict(zip('abcx', 'abcx')), 'c', NODES | {'x'}, frozenset('bc'),
            frozenset('ac'))
        observed = narrow(placement, QUERY)
        self.assertEqual(frozenset('abc'), observed.existing)
        self.assertEqual(list(map(frozenset, ('abc', 'bc', 'ac'))),
                         passed(observed))
        self.assertEqual(frozenset('c'), observed.left)
        conditions = [('resources', 'MEMORY_MB:1'), ('resources', 'VCPU:1'),
                      ('required', 'X')]
        self.assertEqual(
            [('candidates', QUERY.parameters()), *(
                ('providers', [condition]) for condition in conditions)],
            placement.asked)

    def test_alternative_query(self):
        """Its own conditions replace those that it does not have."""
        other = placement_query.parse(
            [('resources', 'MEMORY_MB:1,PCPU:1'), ('required', 'X')])
        placement = Placement(
            dict(zip('abc', 'abc')), 'b', 'a', frozenset('abc'),
            frozenset('b'), frozenset('a'), frozenset('abc'))
        self.assertEqual(list(map(frozenset, ('abc', 'ab', 'abc'))),
                         passed(narrow(placement, QUERY, other)))
        self.assertEqual(6, len(placement.asked))

    def test_nested_providers(self):
        """Only allocation candidates know where resources may come from.

        The whole query is made once. What a node has failed is the only
        condition that is known of it.
        """
        placement = Placement({'a': 'a', 'b': 'a', 'c': 'c', 'd': 'c'},
                              'c', 'cd', 'cd')
        observed = narrow(placement, QUERY)
        self.assertEqual({'candidates'}, {
            kind for kind, _parameters in placement.asked})
        self.assertEqual(list(map(frozenset, ('cd', 'abcd', 'abc'))),
                         passed(observed))
        self.assertEqual({'a': ['a', 'b'], 'c': ['c', 'd']}, observed.trees)

    def test_shared_providers(self):
        """The same applies to those that may use them."""
        placement = Placement({'a': 'a'}, *['a'] * 3)
        narrow(placement, QUERY, sharing=frozenset('a'))
        self.assertEqual({'candidates'}, {
            kind for kind, _parameters in placement.asked})

    def test_child_of_another_host(self):
        """It does not matter to a host that has none."""
        placement = Placement(
            {'a': 'a', 'child': 'a', 'b': 'b'}, 'a', *['b'] * 3, *['a'] * 2)
        observed = narrow(placement, QUERY)
        self.assertEqual({'a': ['a', 'child'], 'b': ['b']}, observed.trees)
        self.assertEqual([frozenset('ab')] * 3, passed(observed))

    def test_placement_changes_meanwhile(self):
        """A node that reappears stays excluded."""
        for trees in dict(zip(NODES, NODES)), dict.fromkeys(NODES, 'a'):
            placement = Placement(trees, 'a', frozenset('ab'),
                                  frozenset('a'), frozenset('ab'))
            self.assertEqual(frozenset('a'), narrow(placement, QUERY).left)

    def test_placement_cuts_the_response_to_a_part(self):
        """A candidate of the whole query meets each of its conditions."""
        placement = Placement(dict(zip(NODES, NODES)), 'ab',
                              frozenset('cd'), frozenset('c'), frozenset('a'))
        self.assertEqual(list(map(frozenset, ('abcd', 'abc', 'ab'))),
                         passed(narrow(placement, QUERY)))

    def test_candidates_beyond_the_limit(self):
        """Nova-scheduler takes the first ones."""
        class Limited(Placement):
            def candidates(self, parameters, limit=None):
                answer = super().candidates(parameters)
                return candidates.Candidates(
                    [{'allocations': {node: {}}} for node in answer.summaries],
                    answer.summaries, limit)

        limited = placement_query.parse([('resources', 'A:1'), ('limit', '1')])
        observed = narrow(Limited(dict(zip('ab', 'ab')), 'ab', 'ab'), limited)
        self.assertEqual(frozenset('ab'), observed.left)
        self.assertEqual(frozenset('a'), observed.within_limit)

    def test_part_that_is_no_query(self):
        """It excludes nothing; the whole is what nova asks."""
        class Refusing(Placement):
            def trees(self, parameters=()):
                if parameters:
                    raise exceptions.RequestRejected('no resources')
                return super().trees()

        observed = narrow(Refusing({'a': 'a'}, 'a'), QUERY)
        self.assertEqual([frozenset('a')] * 3, passed(observed))


class TestFigures(testtools.TestCase):
    """Of which nodes the inventories are read."""

    def read(self, *deleted):
        class Reader:
            def inventories(self, provider):
                if provider in deleted:
                    raise exceptions.ProviderNotFound('deleted')
                return {}

        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.explain.funnel.MAX_FIGURES', 1))
        memory, vcpu = QUERY.conditions[:2]
        narrowed = funnel.Funnel(
            frozenset('abc'), [(memory, frozenset('c')), (vcpu, frozenset())],
            trees={node: [node] for node in 'abc'})
        return funnel.read_figures(
            Reader(), workers.each(), narrowed, str)

    def test_nodes_that_fail_nothing_before_come_first(self):
        """Their reason is the condition that the figures are about."""
        self.assertEqual({'a': {}, 'c': {}}, self.read())

    def test_provider_that_is_deleted_meanwhile(self):
        """It is not said to have no inventory."""
        self.assertEqual({'c': {}}, self.read('a'))
