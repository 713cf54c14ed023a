# SPDX-License-Identifier: Apache-2.0
"""The binding of a journal to its nova."""

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal import nova_identity
from tests import statements
from tests.unit import doubles


class TestBinding(doubles.TestCase):

    def other(self, *cells, aggregates=()):
        """Return the journal, and functions that read another nova."""
        mappings = {cell: 'name of %s (%s)' % (cell, cell) for cell in cells}
        return (self.open_journal().database, lambda: mappings,
                lambda: dict.fromkeys(aggregates, ''))

    def own(self):
        """Return the journal, and functions that read a nova in memory."""
        return (self.open_journal().database, self.nova.cell_mappings,
                self.nova.aggregates)

    def bound(self):
        """Return the binding of an agent of that nova."""
        return binding.Binding(*self.own())

    def bind_to(self, *cells):
        """Bind the journal as the agent of another nova would."""
        return binding.Binding(*self.other(*cells)).bind()

    def check(self):
        """Check the journal for the nova in memory."""
        return nova_identity.check(*self.own())

    def stored(self):
        return self.journal.database.run(nova_identity.cells)

    def test_second_nova_is_refused(self):
        """The error has the cells of both novas, and what keeps the ledger."""
        self.bind_to('a1', 'a2')
        self.journal.ledger.remember({'of a'})
        second = self.other('b2', 'b1', aggregates={'of b'})
        agent = binding.Binding(*second)
        for call in (agent.bind, lambda: nova_identity.check(*second),
                     agent.bind):
            error = self.assertRaises(exceptions.WrongNova, call)
            self.assertEqual(
                'the journal belongs to another nova, with the cells a1, a2; '
                'this nova has the cells name of b1 (b1), name of b2 (b2), '
                'and no aggregate of the journal: give each nova a database '
                'of its own in [aggregate_mirror_database] connection; only '
                'if this nova was rebuilt, with new cell mappings and '
                'aggregates, run "nova-aggregate-mirror-manage journal bind"',
                str(error))
        self.assertEqual({'a1', 'a2'}, self.stored())

    def test_one_common_cell_makes_it_the_same_nova(self):
        """Cells are added and deleted; the journal follows them."""
        running = self.bound()
        self.journal.ledger.remember({'deleted'})
        for cells in (('a1',), ('a1', 'a2'), ('a2', 'a3')):
            self.nova.mapped = dict.fromkeys(cells, '')
            for agent in running, self.bound():
                self.assertTrue(agent.bind())
                self.assertEqual(set(cells), self.stored())
        self.assertRaises(exceptions.WrongNova, self.bind_to, 'a1')

    def test_one_common_aggregate_makes_it_the_same_nova(self):
        """All cell mappings may be deleted and created again.

        A nova that has none meanwhile is recognized, too.
        """
        running = self.bound()
        running.bind()
        self.journal.ledger.remember({'a', 'deleted'})
        self.nova.hosts_of = {'a': set(), 'b': set()}
        for mapped, cell in ({}, doubles.CELL), ({'new': ''}, 'new'):
            self.nova.mapped = mapped
            self.check()
            for agent in running, self.bound():
                self.assertTrue(agent.bind())
                self.assertEqual({cell}, self.stored())

    def test_aggregate_that_a_user_deletes(self):
        """Its mark shows that the nova which had it is rid of it."""
        self.bound().bind()
        self.journal.ledger.mark('a')
        self.nova.mapped = {'new': ''}
        self.assertRaises(exceptions.WrongNova, self.check)
        self.journal.ledger.remember({'b'})
        self.nova.hosts_of = {'a': set()}
        self.assertRaises(exceptions.WrongNova, self.check)
        self.assertRaises(exceptions.WrongNova, self.bound().bind)

    def test_journal_without_content(self):
        """It is bound anew, by the agent that leads.

        If it has only rows, whose they are is not known.
        """
        self.bound().bind()
        self.nova.mapped = {'new': ''}
        agent = self.bound()
        self.assertFalse(self.check())
        self.assertFalse(agent.bind())
        self.assertEqual({doubles.CELL}, self.stored())
        self.assertTrue(agent.bind(leads=True))
        self.assertEqual({'new'}, self.stored())
        self.record('h1')
        self.nova.mapped = {'newer': ''}
        self.assertRaises(exceptions.WrongNova, self.check)
        self.assertRaises(
            exceptions.WrongNova, self.bound().bind, leads=True)

    def test_journal_that_another_agent_binds_meanwhile(self):
        """The cells that it has stored are not replaced unseen."""
        self.bound().bind()
        self.journal.ledger.remember({'a'})
        self.nova.mapped = {'new': ''}

        def aggregates():
            self.bind_to(doubles.CELL, 'a1')
            return {'a': ''}

        agent = binding.Binding(
            self.journal.database, self.nova.cell_mappings, aggregates)
        self.assertFalse(agent.bind())
        self.assertEqual({doubles.CELL, 'a1'}, self.stored())

    def test_journal_of_the_same_cells(self):
        """Nothing else is read."""
        self.assertEqual(set(), self.stored())
        nova = self.journal.database, self.nova.cell_mappings, None
        agent = binding.Binding(*nova)
        agent.bind()
        for call in agent.bind, lambda: nova_identity.check(*nova):
            with statements.Statements() as executed:
                call()
            self.assertEqual(
                ['cells'],
                [text.split('FROM ')[1].split()[0] for text in executed.seen])

    def test_journal_that_is_not_bound(self):
        """A nova without cells binds none, and uses no other nova's journal.

        A check stores nothing: nova-api and the status check only compare.
        """
        new = binding.Binding(*self.other())
        self.assertTrue(new.bind())
        self.assertFalse(nova_identity.check(*self.other('a1')))
        self.assertEqual(set(), self.stored())
        self.bind_to('a1')
        self.assertTrue(nova_identity.check(*self.other('a1')))
        self.journal.ledger.remember({'of a'})
        error = self.assertRaises(exceptions.WrongNova, new.bind)
        self.assertIn('this nova has the cells none', str(error))
        self.assertEqual({'a1'}, self.stored())

    def test_nova_that_cannot_be_read(self):
        """The nova is unknown, so the next call tries again.

        Once bound, the agent continues.
        """
        bound = self.bound()
        self.nova.broken = exceptions.NovaUnavailable('refused')
        self.assertRaises(exceptions.NovaUnavailable, bound.bind)
        # A journal that is not bound yet is not compared with nova.
        self.assertFalse(self.check())
        self.nova.broken = None
        bound.bind()
        self.assertEqual({doubles.CELL}, self.stored())
        self.nova.broken = exceptions.NovaUnavailable('refused')
        self.assertRaises(exceptions.NovaUnavailable, self.check)
        self.assertTrue(bound.bind())
