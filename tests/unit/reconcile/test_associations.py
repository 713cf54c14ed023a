# SPDX-License-Identifier: Apache-2.0
"""The state of each association, as compared and after a sync."""

import dataclasses

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror import source

NOVA = source.Nova(
    aggregates={'a': 'zone', 'b': 'rack'},
    members={'h1': frozenset('ab'), 'h2': frozenset('a'),
             'far': frozenset('a'), 'lonely': frozenset('b')},
    nodes={'n1': 'h1', 'n2': 'h2', 'n3': 'h3'}, hosts_down={'far': ['cell2']})
CURRENT = {'n1': frozenset('a'), 'n3': frozenset('bg'), 'x': frozenset('abdg')}
LEDGER = {'d': journal.LedgerEntry(deleted=True),
          'g': journal.LedgerEntry(absent=60.0)}
TWINS = source.Nova(
    {'a': 'zone', 'b': 'rack'},
    {'h1': frozenset('ab'), 'twin': frozenset('a')}, {'n1': 'h1'},
    shared={'n1': (source.NodeRow('', 'n1', 'h1'),
                   source.NodeRow('', 'n1', 'twin'))})


def states(compared):
    return {(','.join(one.hosts) or one.provider, one.aggregate_uuid):
            one.state.value for one in compared}


class TestCompare(testtools.TestCase):

    def compare(self, current=CURRENT, nova=NOVA, hosts=(), only=(),
                **options):
        return associations.compare(comparison.Comparison(
            current, nova, LEDGER, frozenset(only), frozenset(hosts)),
            **options)

    def test_differences(self):
        """Each has its state, and a foreign provider its reason."""
        self.assertEqual({
            ('h1', 'b'): 'missing', ('h2', 'a'): 'pending',
            ('h3', 'b'): 'stale', ('h3', 'g'): 'stale',
            ('x', 'a'): 'foreign_provider', ('x', 'b'): 'foreign_provider',
            ('x', 'd'): 'stale', ('x', 'g'): 'absent',
        }, states(self.compare()))
        self.assertEqual({('x', 60.0)}, {
            (one.provider, one.absent_for) for one in self.compare()
            if one.absent_for})

    def test_provider_that_may_be_a_compute_node(self):
        """Of a cell, a row or a host that was not read: it is not foreign."""
        row = source.NodeRow('cell1', 'no UUID', 'odd')
        for unread in ({'cells_down': {'cell2': 'refused'}},
                       {'invalid_nodes': frozenset({row})},
                       {'unlisted': frozenset({'h4'})}):
            compared = states(self.compare(
                nova=dataclasses.replace(NOVA, **unread)))
            self.assertEqual({
                ('x', 'a'): 'unknown_provider',
                ('x', 'b'): 'unknown_provider', ('x', 'd'): 'stale',
                ('x', 'g'): 'unknown_provider',
            }, {pair: compared[pair] for pair in compared if 'x' in pair})

    def test_without_prune(self):
        """Aggregates that users deleted are removed nevertheless."""
        kept = states(self.compare(prune=False))
        self.assertEqual(
            {('h3', 'b'): 'stale_kept', ('h3', 'g'): 'stale_kept',
             ('x', 'd'): 'stale'},
            {pair: kept[pair] for pair in kept if 'stale' in kept[pair]})

    def test_scope(self):
        """Other hosts and other aggregates are left out."""
        self.assertEqual({('h2', 'a'): 'pending'},
                         states(self.compare(hosts=['h2'])))
        self.assertEqual({('h1', 'b'): 'missing', ('h3', 'b'): 'stale'},
                         states(self.compare(hosts=['h1', 'h3'], only='b')))

    def test_hosts_that_share_a_compute_node(self):
        """It is one association, with all of them."""
        self.assertEqual(
            {('h1,twin', 'a'): 'missing', ('h1,twin', 'b'): 'disputed'},
            states(self.compare({'n1': frozenset('b')}, TWINS)))

    def test_complete(self):
        """A host in a cell that is down is not "without compute node"."""
        differences = self.compare()
        self.assertEqual({
            ('h1', 'a'): 'in_sync', ('far', 'a'): 'unknown',
            ('lonely', 'b'): 'without_compute_node', **states(differences)},
            states(associations.complete(NOVA, differences)))

    def test_what_could_not_be_compared(self):
        """By compute node or by host; drift stays what it is."""
        for unknown in 'n1', 'h1':
            compared = states(associations.complete(
                NOVA, self.compare(), [unknown]))
            self.assertEqual(('unknown', 'missing'), (
                compared['h1', 'a'], compared['h1', 'b']))


class TestAfter(testtools.TestCase):

    def test_after_a_sync(self):
        """As compared before it; changes keep their state.

        Foreign aggregates are added; what others have repaired is left out.
        What was neither changed nor in sync is unknown, or without provider.
        """
        differences = associations.compare(comparison.Comparison(
            CURRENT, NOVA, LEDGER, frozenset('b')))
        node = outcome.Subject(outcome.PROVIDER, 'n3')
        for result, expected in (
                ({'changes': [outcome.Change('n1', ('b',)),
                              outcome.Change('n3', (), ('b',))],
                  'kept': {'n3': frozenset('f')}, 'done': {'n1', 'n3'}},
                 {('h1', 'b'): 'missing', ('h3', 'b'): 'stale',
                  ('h3', 'f'): 'foreign_aggregate'}),
                ({'done': {'n1', 'n3'}}, {}),
                ({'pending': {'n1'}, 'done': {'n3'},
                  'failed': {node: exceptions.ServiceFailed('')}},
                 {('h1', 'b'): 'pending', ('h3', 'b'): 'unknown'})):
            found = states(associations.after_sync(
                differences, outcome.Outcome(**result), NOVA))
            self.assertEqual(expected, {
                pair: state for pair, state in found.items()
                if pair[0] in ('h1', 'h3')})
