# SPDX-License-Identifier: Apache-2.0
"""The state of each association and of each aggregate."""

import testtools

from nova_aggregate_mirror.osc import comparison
from nova_aggregate_mirror import source

NOVA = source.Nova(
    aggregates={'a': 'zone', 'b': 'rack'},
    members={'h1': frozenset('ab'), 'h2': frozenset('a'),
             'far': frozenset('a'), 'lonely': frozenset('b')},
    nodes={'n1': 'h1', 'n2': 'h2', 'n3': 'h3'}, hosts_down=frozenset({'far'}))
CURRENT = {'n1': frozenset('a'), 'n3': frozenset('b'), 'x': frozenset('ab')}


class TestComparison(testtools.TestCase):

    def states(self, uuid):
        return {(one.host, one.provider): one.state for one
                in comparison.associations(uuid, NOVA, CURRENT)}

    def test_associations(self):
        """A host in a cell that is down is not "no compute node"."""
        self.assertEqual({
            ('h1', 'n1'): 'mirrored', ('h2', 'n2'): 'pending',
            ('far', ''): 'cell down', ('', 'x'): 'other provider',
        }, self.states('a'))
        self.assertEqual({
            ('h1', 'n1'): 'missing', ('h3', 'n3'): 'stale',
            ('lonely', ''): 'no compute node', ('', 'x'): 'other provider',
        }, self.states('b'))

    def test_hosts_that_share_a_compute_node(self):
        """Each of them has its association."""
        self.assertEqual(
            [('h1', 'n1', 'mirrored'), ('twin', 'n1', 'mirrored')],
            [(association.host, association.provider, association.state)
             for association in comparison.associations(
                'a', source.Nova(
                    {'a': 'zone'}, dict.fromkeys(
                        ['h1', 'twin'], frozenset('a')), {'n1': 'h1'},
                    shared={'n1': (source.NodeRow('', 'n1', 'h1'),
                                   source.NodeRow('', 'n1', 'twin'))}),
                {'n1': frozenset('a')})])

    def test_state_of_an_aggregate(self):
        """Repairable states come first; foreign providers do not count."""
        for states, expected in (
                ((), 'mirrored'), (('mirrored', 'other provider'), 'mirrored'),
                (('pending', 'mirrored'), 'pending'),
                (('pending', 'no compute node'), 'no compute node'),
                (('cell down', 'no compute node'), 'cell down'),
                (('cell down', 'stale'), 'differs'),
                (('missing', 'mirrored'), 'differs')):
            self.assertEqual(expected, comparison.state(
                comparison.Association('h', 'p', True, True, state)
                for state in states))
