# SPDX-License-Identifier: Apache-2.0
"""Converging hosts and deleted aggregates, by the rules of the protocol."""

from nova_aggregate_mirror import converge
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from tests.unit import ends


class TestHosts(ends.TestCase):

    def setUp(self):
        super().setUp()
        self.nova.hosts_of = {'a': {'h1'}, 'b': set()}
        self.nova.nodes = {'n1': 'h1'}
        self.placement.create('n1')

    def converge(self, *hosts, **kwargs):
        return self.reconciler.converge(
            [journal.Dirty(host=host) for host in hosts],
            converge.Mode(**kwargs))

    def test_missing_is_added_and_stale_of_ours_is_removed(self):
        """Afterwards a provider is in what nova says, and nothing else."""
        self.placement.create('n1', 'b', 'foreign')
        outcome = self.converge('h1')
        self.assertEqual({'a', 'foreign'}, self.placement.aggregates['n1'])
        self.assertEqual(['n1: +a -b'], [str(one) for one in outcome.changes])
        self.assertEqual({}, outcome.unfinished)

    def test_read_of_placement_comes_before_truth_and_write(self):
        """Rule 4: GET, then nova's truth in a new read, then PUT."""
        self.record('h1', ['n1'])
        self.reconciler.close(self.journal.rows())
        self.assertEqual([('GET', 'n1'), ('TRUTH', ''), ('PUT', 'n1')],
                         self.log)

    def test_conflict_starts_again_at_the_read(self):
        """Rule 4: after a 409 the provider and the truth are read again."""
        def interfere(provider):
            self.placement.before_put = lambda provider: None
            self.placement.write('n1', {'foreign'})
            self.nova.hosts_of['b'].add('h1')

        self.placement.before_put = interfere
        self.converge('h1')
        self.assertEqual({'a', 'b', 'foreign'},
                         self.placement.aggregates['n1'])
        self.assertEqual([('GET', 'n1'), ('TRUTH', ''), ('PUT', 'n1')],
                         self.log[-3:])

    def test_endless_conflict_is_a_failure(self):
        """Somebody who never stops writing does not hold us for ever."""
        self.placement.before_put = (
            lambda provider: self.placement.write(provider, {'foreign'}))
        outcome = self.converge('h1')
        self.assertIsInstance(outcome.failed['n1'],
                              exceptions.GenerationConflict)
        self.assertIn(journal.Dirty(host='h1'), outcome.unfinished)
        self.assertEqual({'n1'}, outcome.unwritten)

    def test_closing_converge_writes_even_when_nothing_differs(self):
        """Rule 5: the new generation kills a write that is still flying."""
        self.placement.create('n1', 'a')
        self.record('h1', ['n1'])
        before = self.placement.generations['n1']
        self.reconciler.close(self.journal.rows())
        self.assertGreater(self.placement.generations['n1'], before)

    def test_other_converge_writes_only_a_difference(self):
        """Rule 5: without a row to close, no write for nothing."""
        self.placement.create('n1', 'a')
        self.converge('h1')
        self.assertNotIn(('PUT', 'n1'), self.log)

    def test_every_node_of_a_host_is_mirrored(self):
        """An ironic host has many compute nodes."""
        self.nova.nodes.update({'n2': 'h1', 'n3': 'h1'})
        self.placement.create('n2')
        self.placement.create('n3')
        self.converge('h1')
        self.assertEqual([{'a'}] * 3, list(self.placement.aggregates.values()))

    def test_node_that_moved_follows_its_new_host(self):
        """A recorded node belongs to what its host of now is in."""
        self.nova.hosts_of['b'] = {'h2'}
        self.nova.nodes['n1'] = 'h2'
        self.placement.create('n1', 'a')
        self.record('h1', ['n1'])
        self.reconciler.close(self.journal.rows())
        self.assertEqual({'b'}, self.placement.aggregates['n1'])

    def test_recorded_node_without_compute_node_is_in_nothing_of_ours(self):
        """A service delete that lost its provider leaves no association."""
        self.nova.nodes = {}
        self.placement.create('n1', 'a', 'foreign')
        self.record('h1', ['n1'])
        self.reconciler.close(self.journal.rows())
        self.assertEqual({'foreign'}, self.placement.aggregates['n1'])
        self.assertEqual([], self.journal.rows())

    def test_aggregate_of_the_past_is_removed_through_the_ledger(self):
        """Rule 8: ours is what nova has now, or ever had."""
        self.journal.remember(['deleted'])
        self.placement.create('n1', 'deleted', 'foreign')
        self.converge('h1')
        self.assertEqual({'a', 'foreign'}, self.placement.aggregates['n1'])

    def test_added_aggregate_is_in_the_ledger_before_the_write(self):
        """Rule 8: what we put there can always be recognized as ours."""
        self.placement.before_put = lambda provider: self.assertEqual(
            frozenset({'a'}), self.journal.ledger())
        self.converge('h1')
        self.assertIn(('PUT', 'n1'), self.log)

    def test_without_prune_nothing_is_removed(self):
        """A sync that may not prune only adds."""
        self.placement.create('n1', 'b')
        self.converge('h1', prune=False)
        self.assertEqual({'a', 'b'}, self.placement.aggregates['n1'])

    def test_pending_provider_is_no_failure(self):
        """nova-compute will create it, and a sync will find it."""
        del self.placement.aggregates['n1']
        self.record('h1', ['n1'])
        outcome = self.reconciler.close(self.journal.rows())
        self.assertEqual({'n1': 'h1'}, outcome.pending)
        self.assertEqual([], self.journal.rows())

    def test_failed_provider_does_not_stop_the_others(self):
        """Whatever can be mirrored is."""
        self.nova.nodes['n2'] = 'h1'
        self.placement.create('n2')
        self.placement.broken['GET', 'n1'] = exceptions.PlacementFailed('503')
        self.record('h1', ['n1', 'n2'])
        outcome = self.reconciler.close(self.journal.rows())
        self.assertEqual({'a'}, self.placement.aggregates['n2'])
        self.assertEqual(['n1'], list(outcome.failed))
        self.assertEqual(1, len(self.journal.rows()))

    def test_unknown_outcome_of_a_write_keeps_the_row(self):
        """Rule 6: a row is closed only when every PUT is known to be done."""
        self.placement.broken['PUT', 'n1'] = exceptions.DeadlineExceeded('?')
        self.record('h1', ['n1'])
        outcome = self.reconciler.close(self.journal.rows())
        self.assertEqual(1, len(self.journal.rows()))
        self.assertEqual({'n1'}, outcome.unwritten)

    def test_placement_that_is_away_is_asked_once(self):
        """The second request would fail like the first."""
        self.nova.nodes['n2'] = 'h1'
        self.placement.broken['GET', 'n1'] = exceptions.PlacementUnreachable(
            'refused')
        self.record('h1', ['n1', 'n2'])
        self.reconciler.close(self.journal.rows())
        self.assertEqual([('GET', 'n1')], self.log)
        self.assertEqual(1, len(self.journal.rows()))

    def test_silent_cell_is_not_an_empty_cell(self):
        """What a cell cannot say is left as it is, and the row stays."""
        self.nova.silent = {'h1'}
        self.placement.create('n1', 'b')
        self.record('h1', ['n1'])
        outcome = self.reconciler.close(self.journal.rows())
        self.assertEqual({'b'}, self.placement.aggregates['n1'])
        self.assertIsInstance(outcome.failed['h1'], exceptions.CellUnavailable)
        self.assertEqual(1, len(self.journal.rows()))

    def test_nova_that_cannot_be_read_changes_nothing(self):
        """Without the truth nothing is written."""
        self.nova.broken = exceptions.NovaUnavailable('away')
        self.placement.create('n1', 'b')
        self.record('h1', ['n1'])
        outcome = self.reconciler.close(self.journal.rows())
        self.assertEqual({'b'}, self.placement.aggregates['n1'])
        self.assertIs(self.nova.broken, outcome.failed['h1'])
        self.assertEqual(1, len(self.journal.rows()))

    def test_without_the_journal_a_host_is_still_mirrored(self):
        """The ledger is missing, what nova has now is not."""
        self.conf.set_override('connection', 'sqlite:////proc/journal',
                               'aggregate_mirror_database')
        self.placement.create('n1', 'b', 'deleted')
        outcome = self.converge('h1')
        self.assertEqual({'a', 'deleted'}, self.placement.aggregates['n1'])
        self.assertIsInstance(outcome.unfinished[journal.Dirty(host='h1')],
                              exceptions.JournalUnavailable)

    def test_node_that_comes_meanwhile_is_mirrored_too(self):
        """Nova's answer names it, and its GET comes after."""
        self.record('h1', ['n1'])
        self.nova.nodes['n2'] = 'h1'
        self.placement.create('n2')
        self.reconciler.close(self.journal.rows())
        self.assertEqual({'a'}, self.placement.aggregates['n2'])


class TestDeleted(ends.TestCase):

    def setUp(self):
        super().setUp()
        self.placement.create('n1', 'gone', 'foreign')
        self.placement.create('shared-storage', 'gone')
        self.placement.create('n2', 'foreign')

    def test_deleted_aggregate_leaves_every_provider(self):
        """Also those that are no compute nodes: the spec says so."""
        self.record(aggregate='gone')
        self.reconciler.close(self.journal.rows())
        self.assertEqual(
            {'n1': {'foreign'}, 'shared-storage': set(), 'n2': {'foreign'}},
            self.placement.aggregates)
        self.assertEqual([], self.journal.rows())
        self.assertNotIn(('GET', 'n2'), self.log)

    def test_aggregate_that_still_exists_is_kept(self):
        """Rule 9: a deletion that nova refused removes nothing."""
        self.nova.hosts_of = {'gone': {'h1'}}
        self.record(aggregate='gone')
        self.reconciler.close(self.journal.rows())
        self.assertEqual({'gone', 'foreign'}, self.placement.aggregates['n1'])
        self.assertEqual([], self.journal.rows())

    def test_failed_search_keeps_the_row(self):
        """No answer is not the answer "nobody has it"."""
        self.placement.broken['MEMBERS', 'gone'] = (
            exceptions.MalformedAnswer('HTML'))
        self.record(aggregate='gone')
        outcome = self.reconciler.close(self.journal.rows())
        self.assertEqual(['gone'], list(outcome.failed))
        self.assertEqual(1, len(self.journal.rows()))

    def test_provider_that_vanishes_meanwhile_is_no_failure(self):
        """What is not there cannot have the aggregate."""
        self.placement.before_put = (
            lambda provider: self.placement.aggregates.pop(provider, None))
        self.record(aggregate='gone')
        outcome = self.reconciler.close(self.journal.rows())
        self.assertEqual({}, outcome.failed)
        self.assertEqual({}, outcome.pending)
        self.assertEqual([], self.journal.rows())


class TestOutcome(ends.TestCase):

    def test_one_error_of_many_is_over_when_all_are_right(self):
        """What is not known to be right stays so until it is."""
        away = exceptions.PlacementUnreachable('refused')
        first, second = journal.Dirty(host='h1'), journal.Dirty(host='h2')
        outcome = converge.Outcome(
            failed={'n1': away, 'n2': away}, unwritten={'n1', 'n2'},
            unfinished={first: away, second: away})
        outcome.mend(converge.Outcome(done={'n1'}))
        self.assertEqual({'n2': away}, outcome.failed)
        self.assertEqual({'n2'}, outcome.unwritten)
        self.assertIn(second, outcome.unfinished)
        outcome.mend(converge.Outcome(done={'n2'}))
        self.assertEqual(({}, set(), {}), (
            outcome.failed, outcome.unwritten, outcome.unfinished))

    def test_sum_keeps_everything(self):
        """Two outcomes make one that says what both said."""
        one, other = converge.Outcome(), converge.Outcome()
        error = exceptions.PlacementFailed('503')
        for name in ('done', 'missing', 'unwritten'):
            getattr(other, name).add('n1')
        for name in ('pending', 'failed', 'unfinished'):
            getattr(other, name)['n1'] = error
        other.changes.append('change')
        one.add(other)
        self.assertEqual(other, one)
