# SPDX-License-Identifier: Apache-2.0
"""The binding of a journal to its nova."""

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import nova_identity
from tests.unit import doubles


class TestBinding(doubles.TestCase):

    def binding(self, *cells):
        """Return the binding of an agent whose nova has these cells."""
        mappings = {cell: 'name of %s (%s)' % (cell, cell) for cell in cells}
        return nova_identity.Binding(
            self.open_journal().database, lambda: mappings)

    def bound(self):
        """Return the binding of an agent of a nova that may change."""
        return nova_identity.Binding(
            self.open_journal().database, self.nova.cell_mappings)

    def stored(self):
        return self.journal.database.run(nova_identity.cells)

    def test_check_stores_nothing(self):
        """nova-api and the status check only compare."""
        self.binding('a1').check()
        self.assertEqual(set(), self.stored())
        self.binding('a1').bind()
        self.binding('a1').check()

    def test_journal_that_is_bound_after_a_check(self):
        """nova-api may start before the first agent of either nova."""
        second = self.binding('b1')
        second.check()
        self.binding('a1').bind()
        self.assertRaises(exceptions.WrongNova, second.check)

    def test_second_nova_is_refused(self):
        """The error has the cells of both novas, and the option to change."""
        self.binding('a1', 'a2').bind()
        second = self.binding('b2', 'b1')
        for method in (second.bind, second.check, second.bind):
            error = self.assertRaises(exceptions.WrongNova, method)
            self.assertEqual(
                'the journal belongs to another nova, with the cells a1, a2; '
                'this nova has the cells name of b1 (b1), name of b2 (b2). '
                'Give each nova a database of its own in '
                '[aggregate_mirror_database] connection', str(error))
        self.assertEqual({'a1', 'a2'}, self.stored())

    def test_one_common_cell_makes_it_the_same_nova(self):
        """Cells are added and deleted; the journal follows them."""
        running = self.bound()
        for cells in (('a1',), ('a1', 'a2'), ('a2', 'a3')):
            self.nova.mapped = dict.fromkeys(cells, '')
            for agent in running, self.bound():
                agent.bind()
                self.assertEqual(set(cells), self.stored())
        self.assertRaises(exceptions.WrongNova, self.binding('a1').bind)

    def test_nova_without_cells(self):
        """It binds no journal, and does not use another nova's journal."""
        new = self.binding()
        new.bind()
        self.assertEqual(set(), self.stored())
        self.binding('a1').bind()
        error = self.assertRaises(exceptions.WrongNova, new.bind)
        self.assertIn('this nova has the cells none', str(error))
        self.assertEqual({'a1'}, self.stored())

    def test_bound_agent_goes_on_without_nova(self):
        """Once bound, the agent continues while nova cannot be read."""
        bound = self.bound()
        bound.bind()
        self.nova.broken = exceptions.NovaUnavailable('refused')
        bound.bind()
        bound.check()

    def test_nova_that_cannot_be_read(self):
        """The nova is unknown, so the next call tries again."""
        bound = self.bound()
        self.nova.broken = exceptions.NovaUnavailable('refused')
        self.assertRaises(exceptions.NovaUnavailable, bound.bind)
        # A journal that is not bound yet is not compared with nova.
        bound.check()
        self.nova.broken = None
        bound.bind()
        self.assertEqual({doubles.CELL}, self.stored())
        checked = self.bound()
        self.nova.broken = exceptions.NovaUnavailable('refused')
        self.assertRaises(exceptions.NovaUnavailable, checked.check)
