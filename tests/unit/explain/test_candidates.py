# SPDX-License-Identifier: Apache-2.0
"""What nova-scheduler reads from placement, and answers that are not that."""

import fixtures
import testtools

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.placement import workers

INVENTORY = {'total': 64, 'reserved': 4, 'allocation_ratio': 2.5,
             'min_unit': 1, 'max_unit': 64, 'step_size': 1}
NODES = frozenset('abcd')
QUERY = placement_query.parse(
    [('resources', 'MEMORY_MB:1,VCPU:1'), ('required', 'X')])


class Client:
    """Answers of placement by path."""

    def __init__(self, **answers):
        self._answers = answers
        self.paths = []

    def read(self, path, parse, provider=None):
        self.paths.append(path)
        name = path.partition('?')[0].rpartition('/')[2]
        call = errors.Call(lambda: causes.openstack_client('placement'), path)
        return parse(call, self._answers[name])


class TestReader(testtools.TestCase):

    def reader(self, **answers):
        self.client = Client(**answers)
        return candidates.CandidateReader(self.client)

    def test_candidates(self):
        """Parameters may be repeated, and are readable in a log."""
        found = self.reader(allocation_candidates={
            'allocation_requests': [{}], 'provider_summaries': {'a': {}},
        }).candidates([('member_of', 'in:x,y'), ('member_of', '!in:z')])
        self.assertEqual((1, frozenset('a')),
                         (len(found.requests), found.summaries.keys()))
        self.assertEqual(
            ['/allocation_candidates?member_of=in:x,y&member_of=!in:z'],
            self.client.paths)

    def test_providers(self):
        """Each has the provider at the top of its tree."""
        reader = self.reader(resource_providers={'resource_providers': [
            {'uuid': 'a', 'root_provider_uuid': 'a'},
            {'uuid': 'b', 'root_provider_uuid': 'a'}]})
        self.assertEqual({'a': 'a', 'b': 'a'}, reader.trees())
        reader.trees([('resources', 'VCPU:1')])
        self.assertEqual(
            ['/resource_providers', '/resource_providers?resources=VCPU:1'],
            self.client.paths)

    def test_name_that_no_trait_can_have(self):
        """It is one value of the query."""
        reader = self.reader(
            resource_classes={'resource_classes': [{'name': 'VCPU'}]},
            traits={'traits': []})
        self.assertEqual((['CUSTOM_X'], ['A&B']), reader.unknown(
            {'VCPU', 'CUSTOM_X'}, {'A&B'}))
        self.assertEqual('/traits?name=in:A%26B', self.client.paths[-1])

    def test_inventories(self):
        """What is free over several servers, never less than 0.

        A class without a usage was added between the two requests.
        """
        for usages, free in (({'VCPU': 0}, [150]), ({'VCPU': 149}, [1]),
                             ({'VCPU': 200}, [0]), ({}, [])):
            found = self.reader(
                inventories={'inventories': {'VCPU': INVENTORY}},
                usages={'usages': usages}).inventories('a')
            self.assertEqual(
                free, [inventory.free for inventory in found.values()])

    def test_allocations_of_a_deleted_provider(self):
        """It has none; those of other hosts can be explained."""
        def answer(*_arguments):
            raise exceptions.ProviderNotFound('no provider a')

        reader = self.reader()
        self.client.read = answer
        self.assertEqual({}, reader.allocations('a'))

    def test_malformed_answers(self):
        """They are an error that can be retried, not a traceback."""
        for read, answers in (
                (lambda one: one.candidates([]), {'allocation_candidates': {
                    'allocation_requests': {}, 'provider_summaries': {}}}),
                (lambda one: one.candidates([]), {'allocation_candidates': {
                    'allocation_requests': [], 'provider_summaries': None}}),
                (lambda one: one.trees(),
                 {'resource_providers': {'resource_providers': [{}]}}),
                (lambda one: one.trees(), {'resource_providers': {}}),
                (lambda one: one.inventories('a'),
                 {'inventories': {'inventories': []}, 'usages': {}}),
                (lambda one: one.inventories('a'),
                 {'inventories': {'inventories': {'VCPU': {}}},
                  'usages': {'usages': {'VCPU': 1}}})):
            self.assertRaises(exceptions.MalformedAnswer, read,
                              self.reader(**answers))


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
    return candidates.narrow(
        placement, sharing, workers.in_threads(), queries, NODES)


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
        condition that is known of it. The same applies to shared providers.
        """
        placement = Placement({'a': 'a', 'b': 'a', 'c': 'c', 'd': 'c'},
                              'c', 'cd', 'cd')
        observed = narrow(placement, QUERY)
        self.assertEqual({'candidates'}, {
            kind for kind, _parameters in placement.asked})
        self.assertEqual(list(map(frozenset, ('cd', 'abcd', 'abc'))),
                         passed(observed))
        self.assertEqual({'a': ['a', 'b'], 'c': ['c', 'd']}, observed.trees)
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
            'nova_aggregate_mirror.explain.candidates.MAX_FIGURES', 1))
        memory, vcpu = QUERY.conditions[:2]
        narrowed = candidates.Funnel(
            frozenset('abc'), [(memory, frozenset('c')), (vcpu, frozenset())],
            trees={node: [node] for node in 'abc'})
        return candidates.read_figures(
            Reader(), workers.in_threads(), narrowed, str)

    def test_nodes_that_fail_nothing_before_come_first(self):
        """Their reason is the condition that the figures are about."""
        self.assertEqual({'a': {}, 'c': {}}, self.read())

    def test_provider_that_is_deleted_meanwhile(self):
        """It is not said to have no inventory."""
        self.assertEqual({'c': {}}, self.read('a'))
