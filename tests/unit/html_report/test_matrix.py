# SPDX-License-Identifier: Apache-2.0
"""The matrix of hosts by aggregates: state of each cell, and order."""

import testtools

from nova_aggregate_mirror.html_report import matrix
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror import source

State = matrix.State


def nova(members, nodes):
    return source.Nova(
        {name: 'name of ' + name for name in 'abc'},
        {host: frozenset(uuids) for host, uuids in members.items()}, nodes)


def shown(nova, unknown=(), **states):
    """Return all associations; ``states``: node and aggregate by state."""
    return matrix.shown(associations.complete(nova, [
        associations.Association(
            tuple(nova.hosts_of(node)), node,
            nova.aggregates.get(uuid, ''), uuid, State(state))
        for state, pairs in states.items() for node, uuid in pairs], unknown))


class TestRows(testtools.TestCase):

    def rows(self, nova, marks={}, **states):
        """Return the hosts of each row, with the states of its cells."""
        self.found = matrix.rows(nova, shown(nova, **states), marks)
        return [([host.name for host in row.hosts],
                 {cell.aggregate: cell.state for cell in row.cells})
                for row in self.found]

    def test_each_state(self):
        """Each state is shown, and rows with drift come first."""
        cloud = nova({'right': 'a', 'missing': 'ab', 'pending': 'a',
                      'nodeless': 'a', 'unknown': 'a', 'hidden': 'a'},
                     {'n1': 'right', 'n2': 'missing', 'n3': 'pending',
                      'n4': 'unknown', 'n5': 'stale', 'n6': 'none'})
        self.assertEqual([
            (['missing'], {'a': State.IN_SYNC, 'b': State.MISSING}),
            (['stale'], {'c': State.STALE}),
            (['hidden', 'unknown'], {'a': State.UNKNOWN}),
            (['nodeless'], {'a': State.NO_NODE}),
            (['pending'], {'a': State.PENDING}),
            (['right'], {'a': State.IN_SYNC}),
            (['none'], {})], self.rows(
                cloud, unknown=['n4', 'hidden'], missing=[('n2', 'b')],
                stale_kept=[('n5', 'c')], pending=[('n3', 'a')],
                foreign_aggregate=[('n1', 'f')]))
        self.assertEqual([True] * 5 + [False] * 2,
                         [row.differs for row in self.found])

    def test_some_nodes_of_a_host(self):
        """The cell shows how many nodes are affected."""
        self.rows(nova({'ironic': 'a'}, {'n%d' % n: 'ironic'
                                         for n in range(3)}),
                  missing=[('n0', 'a'), ('n2', 'a')], pending=[('n1', 'a')])
        row, = self.found
        self.assertEqual(
            (matrix.MatrixCell('a', State.MISSING, '2/3'),), row.cells)
        self.assertEqual(('n0', 'n1', 'n2'), row.hosts[0].nodes)

    def test_stale_of_what_has_no_host(self):
        """A provider that is no compute node is in no row of hosts."""
        self.assertEqual(
            [([name], {'gone': State.STALE}) for name in ('', 'h1')],
            self.rows(nova({}, {'n1': 'h1'}), stale=[
                ('storage', 'gone'), ('n1', 'gone')]))
        row, _of_host = self.found
        self.assertEqual(('storage',), row.hosts[0].nodes)

    def test_marks_keep_hosts_apart(self):
        """Marked hosts have their own row, before hosts in sync."""
        self.assertEqual(
            [['h2'], ['h1']], [hosts for hosts, _cells in self.rows(
                nova({'h1': 'a', 'h2': 'a'}, {'n1': 'h1', 'n2': 'h2'}),
                {'in the journal': {'h2'}})])
        self.assertTrue(self.found[0].differs)


class TestColumns(testtools.TestCase):

    def test_order_and_figures(self):
        """Those with drift come first; a deleted aggregate has no name."""
        cloud = nova({'h1': 'ab', 'h2': 'ab'}, {'n1': 'h1', 'n2': 'h2'})
        self.assertEqual([
            ('gone', '', {State.STALE: 1}),
            ('b', 'name of b', {State.MISSING: 1, State.IN_SYNC: 1}),
            ('a', 'name of a', {State.IN_SYNC: 2}),
            ('c', 'name of c', {})], self.columns(
                cloud, missing=[('n1', 'b')], stale=[('n2', 'gone')]))

    def test_nodes_of_a_host(self):
        """Associations are counted, not hosts."""
        self.assertEqual(
            {State.MISSING: 2, State.PENDING: 1}, self.columns(
                nova({'ironic': 'a'}, dict.fromkeys(
                    ['n0', 'n1', 'n2'], 'ironic')), pending=[('n1', 'a')],
                missing=[('n0', 'a'), ('n2', 'a')])[0][2])

    def columns(self, nova, **states):
        return [(column.uuid, column.name, column.counts)
                for column in matrix.columns(nova, shown(nova, **states))]
