# SPDX-License-Identifier: Apache-2.0
"""The full sync, and which journal rows it may close."""

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import progress
from nova_aggregate_mirror import reconciler
from tests.unit import ends


class Once(dict):
    """Errors that come once each."""

    def __getitem__(self, key):
        return self.pop(key)


class TestSync(ends.TestCase):

    def setUp(self):
        super().setUp()
        self.nova.hosts_of = {'a': {'h1', 'h2'}, 'b': {'h2'}}
        self.nova.nodes = {'n1': 'h1', 'n2': 'h2', 'n3': 'h3'}
        for node in self.nova.nodes:
            self.placement.create(node)

    def sync(self, **kwargs):
        return self.reconciler.sync(self.journal.rows(),
                                    reconciler.Request(**kwargs))

    def test_missing_associations_are_added(self):
        """Whatever the reason, a sync finds what placement lacks."""
        self.sync()
        self.assertEqual({'n1': {'a'}, 'n2': {'a', 'b'}, 'n3': set()},
                         self.placement.aggregates)

    def test_in_sync_nothing_is_written(self):
        """A second sync makes no write, and no read of single providers."""
        self.sync()
        self.log.clear()
        result = self.sync()
        self.assertEqual([('LIST', ''), ('TRUTH', '')], self.log)
        self.assertEqual([], result.outcome.changes)

    def test_stale_association_is_reported_and_left(self):
        """This sync removes only what the journal knows."""
        self.placement.create('n3', 'a', 'foreign')
        result = self.sync()
        self.assertEqual({'a', 'foreign'}, self.placement.aggregates['n3'])
        self.assertEqual(['n3: -a'], [str(one) for one in result.stale])

    def test_provider_that_lacks_one_keeps_the_stale_one(self):
        """Also where something is added nothing is removed."""
        self.placement.create('n1', 'b')
        self.sync()
        self.assertEqual({'a', 'b'}, self.placement.aggregates['n1'])

    def test_journalled_host_is_converged_both_ways(self):
        """What the journal knows is added and removed."""
        self.placement.create('n3', 'a')
        row = self.record('h3', ['n3'])
        self.journal.hand_over(row.id, 'refused')
        self.sync()
        self.assertEqual(set(), self.placement.aggregates['n3'])
        self.assertEqual([], self.journal.rows())

    def test_row_of_a_running_operation_is_converged_and_kept(self):
        """Rule 2: only its own process may close it."""
        self.placement.create('n3', 'a')
        row = self.record('h3', ['n3'])
        self.sync()
        self.assertEqual(set(), self.placement.aggregates['n3'])
        self.assertEqual([row], self.journal.rows())

    def test_deleted_aggregate_of_the_journal_is_removed(self):
        """A deletion that placement missed is made up for."""
        self.placement.create('n3', 'gone')
        row = self.record(aggregate='gone')
        self.journal.hand_over(row.id, 'refused')
        self.sync()
        self.assertEqual(set(), self.placement.aggregates['n3'])

    def test_placement_is_read_before_nova(self):
        """Rule 7: what nova commits in between is missing at the worst."""
        self.sync()
        self.assertLess(self.log.index(('LIST', '')),
                        self.log.index(('TRUTH', '')))

    def test_comparison_is_only_a_hint(self):
        """Rule 7: what differed and was mended meanwhile is not written."""
        read_all = self.nova.read_all

        def slow():
            answer = read_all()
            self.placement.write('n1', {'a'})
            self.nova.hosts_of['b'].discard('h2')
            return answer

        self.nova.read_all = slow
        self.sync()
        self.assertNotIn(('PUT', 'n1'), self.log)
        self.assertEqual({'a'}, self.placement.aggregates['n2'])

    def test_wrong_placement_is_named(self):
        """An empty placement is no cloud of pending providers."""
        self.placement.aggregates.clear()
        raised = self.sync().not_compared
        self.assertIsInstance(raised, exceptions.WrongPlacement)
        self.assertIn("none of them is one of nova's 3 compute nodes",
                      str(raised))
        self.assertIn('region RegionOne', str(raised))

    def test_missing_provider_is_pending(self):
        """It is reported with its host, if nova wants it anywhere."""
        del self.placement.aggregates['n2']
        del self.placement.aggregates['n3']
        result = self.sync()
        self.assertEqual({'n2': 'h2'}, result.outcome.pending)

    def test_many_rows_are_converged_in_batches(self):
        """More hosts than one batch takes are all mirrored."""
        for number in range(450):
            self.nova.nodes['m%d' % number] = 'many%d' % number
            self.placement.create('m%d' % number)
            self.nova.hosts_of['a'].add('many%d' % number)
        self.sync()
        self.assertEqual({'a'}, self.placement.aggregates['m449'])
        self.assertEqual({'a'}, self.placement.aggregates['m0'])
        # All of nova, and then each batch.
        self.assertEqual(1 + 3, self.log.count(('TRUTH', '')))

    def test_wrong_placement_leaves_the_journal(self):
        """Nothing of it would be found there, and so nothing be closed."""
        for row in (self.record('h1', ['n1']), self.record(aggregate='gone')):
            self.journal.hand_over(row.id, 'refused')
        self.placement.aggregates.clear()
        self.placement.create('of-another-region')
        self.assertRaises(exceptions.WrongPlacement, self.sync)
        self.assertEqual(2, len(self.journal.rows()))

    def test_preview_of_what_the_journal_holds(self):
        """The brake looks at what is left after it, as in a run."""
        hosts = ['s%d' % number for number in range(15)]
        for host in hosts:
            self.nova.nodes['of-' + host] = host
            self.placement.create('of-' + host, 'a')
        for host in hosts[:12]:
            row = self.record(host, ['of-' + host])
            self.journal.hand_over(row.id, 'refused')
        rows = self.journal.rows()
        before = dict(self.placement.generations)
        plan = self.sync(max_removed_share=0.3, write=False)
        self.assertEqual(before, self.placement.generations)
        self.assertEqual(rows, self.journal.rows())
        done = self.sync(max_removed_share=0.3)
        self.assertEqual(('', sorted(plan.outcome.changes)),
                         (plan.refused, sorted(done.outcome.changes)))

    def test_a_write_that_fails_once_is_made_again(self):
        """As when placement's database had a deadlock."""
        self.placement.broken = Once(
            {('PUT', 'n1'): exceptions.PlacementFailed('500')})
        result = self.sync()
        self.assertEqual({'n1': {'a'}, 'n2': {'a', 'b'}, 'n3': set()},
                         self.placement.aggregates)
        outcome = result.outcome
        self.assertEqual(({}, set(), {}), (
            outcome.failed, outcome.unwritten, outcome.unfinished))

    def test_the_only_write_is_made_again(self):
        """With nothing else to do, too."""
        self.sync()
        self.nova.hosts_of['b'].add('h1')
        self.placement.broken = Once(
            {('PUT', 'n1'): exceptions.PlacementFailed('500')})
        self.assertEqual({}, self.sync().outcome.failed)
        self.assertEqual({'a', 'b'}, self.placement.aggregates['n1'])

    def test_progress_counts_what_is_made_again_apart(self):
        """No bar goes past its end."""
        counts = []

        class Counter(progress.Silent):
            def expect(self, count):
                counts.append([count, 0])

            def advance(self):
                counts[-1][1] += 1

        self.placement.broken = Once(
            {('PUT', 'n1'): exceptions.PlacementFailed('500')})
        reconciler.Reconciler(
            self.journal, self.nova, self.placement,
            progress=Counter()).sync()
        self.assertEqual([[2, 2], [1, 1]], counts)

    def test_a_write_that_fails_again_is_told(self):
        """It is tried twice, and the others are done."""
        self.placement.broken['PUT', 'n1'] = exceptions.PlacementFailed('500')
        result = self.sync()
        self.assertEqual({'n1'}, set(result.outcome.failed))
        self.assertEqual(2, self.log.count(('PUT', 'n1')))
        self.assertEqual({'a', 'b'}, self.placement.aggregates['n2'])

    def test_where_every_write_fails_none_is_made_again(self):
        """A placement that is broken is not asked twice as much."""
        for node in ('n1', 'n2'):
            self.placement.broken['PUT', node] = exceptions.PlacementFailed(
                '500')
        self.assertEqual({'n1', 'n2'}, set(self.sync().outcome.failed))
        self.assertEqual(1, self.log.count(('PUT', 'n1')))

    def test_what_was_written_is_told_whatever_follows(self):
        """Also when placement or the journal goes away after it."""
        row = self.record('h1', ['n1'])
        self.journal.hand_over(row.id, 'refused')
        self.placement.broken['LIST', ''] = exceptions.PlacementFailed('503')
        result = self.sync()
        self.assertEqual(['n1: +a'], [str(one) for one
                                      in result.outcome.changes])
        self.assertIs(self.placement.broken['LIST', ''], result.not_compared)
        self.placement.broken.clear()
        away = exceptions.JournalUnavailable('disk is full')

        def full(*_args):
            raise away

        self.journal.emptied = full
        result = self.sync()
        self.assertEqual(['n2: +a +b'], [str(one) for one
                                         in result.outcome.changes])
        self.assertIs(away, result.outcome.failed['journal'])

    def test_ledger_that_cannot_be_read_is_a_failure(self):
        """What it knows is stale, or foreign: nobody can say."""
        self.placement.create('n3', 'old')
        self.journal.remember({'old'})

        def away(_uuids):
            raise exceptions.JournalUnavailable('away')

        self.journal.known = away
        result = self.sync(max_removed_share=0.9)
        self.assertIn('h3', result.outcome.failed)
        self.assertEqual({}, result.outcome.kept)

    def test_row_of_a_node_that_moved_is_about_two_hosts(self):
        """A request for one of them does not touch the other one's."""
        row = self.record('h1', ['n2'])
        self.journal.hand_over(row.id, 'refused')
        self.sync(hosts=frozenset({'h1'}))
        self.assertNotIn(('PUT', 'n2'), self.log)
        self.assertEqual([row.id], [one.id for one in self.journal.rows()])
        self.sync(hosts=frozenset({'h1', 'h2'}))
        self.assertEqual([], self.journal.rows())

    def test_placement_that_goes_away_is_asked_no_more(self):
        """The rest fails for the same reason, host by host."""
        for number in range(450):
            self.nova.nodes['m%03d' % number] = 'many%03d' % number
            self.placement.create('m%03d' % number)
            self.nova.hosts_of['a'].add('many%03d' % number)
        away = exceptions.PlacementUnreachable('refused')
        for node in self.nova.nodes:
            self.placement.broken['GET', node] = away
        result = self.sync()
        self.assertEqual(1, len([one for one in self.log
                                 if one[0] == 'GET']))
        self.assertGreaterEqual(len(result.outcome.failed), 452)
