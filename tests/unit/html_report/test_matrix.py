# SPDX-License-Identifier: Apache-2.0
"""The matrix of hosts by aggregates: state of each cell, and order."""

import testtools

from nova_aggregate_mirror.html_report import matrix
from nova_aggregate_mirror import source

State = matrix.State


def nova(members, nodes, names=('a', 'b', 'c'), **kwargs):
    return source.Nova(
        {name: 'name of ' + name for name in names},
        {host: frozenset(uuids) for host, uuids in members.items()},
        nodes, **kwargs)


class TestRows(testtools.TestCase):

    def rows(self, seen):
        """Return the hosts of each row, with the states of its cells."""
        return [([host.name for host in row.hosts],
                 {cell.aggregate: cell.state for cell in row.cells})
                for row in matrix.rows(seen)]

    def test_each_state(self):
        """Each state is shown, and rows with drift come first."""
        seen = matrix.Seen(
            nova({'right': 'a', 'missing': 'ab', 'pending': 'a',
                  'nodeless': 'a', 'unknown': 'a', 'hidden': 'a'},
                 {'n1': 'right', 'n2': 'missing', 'n3': 'pending',
                  'n4': 'unknown', 'n5': 'stale', 'n6': 'none'}),
            missing={('n2', 'b')}, stale={('n5', 'c')}, pending={'n3'},
            unknown={'n4', 'hidden'})
        self.assertEqual([
            (['missing'], {'a': State.RIGHT, 'b': State.MISSING}),
            (['stale'], {'c': State.STALE}),
            (['hidden', 'unknown'], {'a': State.UNKNOWN}),
            (['nodeless'], {'a': State.NO_NODE}),
            (['pending'], {'a': State.PENDING}),
            (['right'], {'a': State.RIGHT}),
            (['none'], {})], self.rows(seen))
        self.assertEqual([True] * 5 + [False] * 2,
                         [row.differs for row in matrix.rows(seen)])

    def test_some_nodes_of_a_host(self):
        """The cell shows how many nodes are affected."""
        seen = matrix.Seen(
            nova({'ironic': 'a'}, {'n%d' % n: 'ironic' for n in range(3)}),
            missing={('n0', 'a'), ('n2', 'a')}, pending={'n1'})
        row, = matrix.rows(seen)
        self.assertEqual((matrix.Cell('a', State.MISSING, '2/3'),), row.cells)
        self.assertEqual(('n0', 'n1', 'n2'), row.hosts[0].nodes)

    def test_stale_of_what_has_no_host(self):
        """A provider that is no compute node has its own row."""
        seen = matrix.Seen(nova({}, {}), stale={('storage', 'gone')})
        self.assertEqual([([''], {'gone': State.STALE})], self.rows(seen))
        row, = matrix.rows(seen)
        self.assertEqual(('storage',), row.hosts[0].nodes)

    def test_marks_keep_hosts_apart(self):
        """Marked hosts have their own row, before hosts in sync."""
        seen = matrix.Seen(
            nova({'h1': 'a', 'h2': 'a'}, {'n1': 'h1', 'n2': 'h2'}),
            marks={'h2': ('in the journal',)})
        self.assertEqual([['h2'], ['h1']],
                         [hosts for hosts, _cells in self.rows(seen)])
        self.assertTrue(matrix.rows(seen)[0].differs)


class TestColumns(testtools.TestCase):

    def test_order_and_figures(self):
        """Those with drift come first; a deleted aggregate has no name."""
        seen = matrix.Seen(
            nova({'h1': 'ab', 'h2': 'ab'}, {'n1': 'h1', 'n2': 'h2'}),
            missing={('n1', 'b')}, stale={('n2', 'gone')})
        found = matrix.columns(seen, matrix.rows(seen))
        self.assertEqual([
            ('gone', '', {State.STALE: 1}),
            ('b', 'name of b', {State.MISSING: 1, State.RIGHT: 1}),
            ('a', 'name of a', {State.RIGHT: 2}),
            ('c', 'name of c', {})],
            [(one.uuid, one.name, one.counts) for one in found])
