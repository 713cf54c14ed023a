# SPDX-License-Identifier: Apache-2.0
"""The binding of a journal to its nova."""

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import binding
from tests.unit import doubles


class TestBinding(doubles.TestCase):

    def binding(self, *cells):
        """Return the binding of an agent whose nova has these cells."""
        nova = doubles.Nova([])
        nova.mapped = {cell: 'name of %s (%s)' % (cell, cell)
                       for cell in cells}
        return binding.Binding(self.open_journal().database, nova)

    def stored(self):
        return self.journal.database.run(binding.cells)

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
        for cells in (('a1',), ('a1', 'a2'), ('a2', 'a3')):
            self.binding(*cells).bind()
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
        nova = self.nova
        bound = binding.Binding(self.journal.database, nova)
        bound.bind()
        nova.broken = exceptions.NovaUnavailable('refused')
        bound.bind()
        bound.check()

    def test_nova_that_cannot_be_read(self):
        """The nova is unknown, so the next call tries again."""
        bound = binding.Binding(self.journal.database, self.nova)
        self.nova.broken = exceptions.NovaUnavailable('refused')
        self.assertRaises(exceptions.NovaUnavailable, bound.bind)
        # A journal that is not bound yet is not compared with nova.
        bound.check()
        self.nova.broken = None
        bound.bind()
        self.assertEqual({doubles.CELL}, self.stored())
        checked = binding.Binding(self.journal.database, self.nova)
        self.nova.broken = exceptions.NovaUnavailable('refused')
        self.assertRaises(exceptions.NovaUnavailable, checked.check)

    def test_cells_that_are_replaced_one_by_one(self):
        """The journal follows a running agent's nova to its new cells."""
        bound = binding.Binding(self.journal.database, self.nova)
        for cells in (('a',), ('a', 'b'), ('b',)):
            self.nova.mapped = {cell: 'name of ' + cell for cell in cells}
            bound.bind()
        self.assertEqual({'b'}, self.stored())
        self.binding('b').check()
