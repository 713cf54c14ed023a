# SPDX-License-Identifier: Apache-2.0
"""The full sync: what it adds, removes, keeps, closes and records."""

import collections
import contextlib
import dataclasses
from unittest import mock

import fixtures

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal import synced_ledger
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror import reconcile
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.reconcile import survey
from nova_aggregate_mirror import source
from tests.unit import doubles


FOREIGN, HOST, PROVIDER = outcome.FOREIGN, outcome.HOST, outcome.PROVIDER
Subject = outcome.Subject
FAILED = exceptions.ServiceFailed('500')
DOWN = exceptions.ServiceUnreachable('refused the connection')
NO_ANSWER = doubles.NO_ANSWER
N1 = Subject(PROVIDER, 'n1')


class SyncTest(doubles.TestCase):

    def setUp(self):
        super().setUp()
        self.ledger = self.journal.ledger
        self.nova.hosts_of = {'a': {'h1', 'h2'}, 'b': {'h2'}}
        self.nova.nodes = {'n1': 'h1', 'n2': 'h2', 'n3': 'h3'}
        for node in self.nova.nodes:
            self.placement.create(node)

    def sync(self, **kwargs):
        return full_sync.run(self.reconciler, self.journal.rows.all(),
                             full_sync.Request(**kwargs))

    def failed(self, **kwargs):
        return self.sync(**kwargs).outcome.failed

    def add_nodes(self, count, *aggregates):
        """Add compute nodes whose providers are in aggregates."""
        nodes = ['m%03d' % number for number in range(count)]
        for node in nodes:
            self.nova.nodes[node] = 'of-' + node
            self.placement.create(node, *aggregates)
        return nodes

    def add_hosts(self, count):
        """Add hosts to aggregate a; return their nodes."""
        nodes = self.add_nodes(count)
        self.nova.hosts_of['a'].update('of-' + node for node in nodes)
        return nodes

    @staticmethod
    def among(result, *states):
        return [association.pair for association in result.associations
                if association.state in states]

    def lock_journal(self):
        """Let another process hold the journal's database from now on."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.journal.db.sqlite.BUSY_TIMEOUT', 0.0))
        lock = contextlib.ExitStack()
        lock.enter_context(engine.Database(self.conf).open().begin())
        self.addCleanup(lock.close)

    def stop_at(self, party, method):
        """Let the process stop at the first call of a method."""
        stopped = []
        self.reconciler = self.new_reconciler(
            for_each=workers.in_threads(1, lambda: bool(stopped)))
        self.after_first(party, method, lambda: stopped.append(True))

    @staticmethod
    def after_first(party, method, action):
        """Run an action just after the first call of a method."""
        ask = getattr(party, method)

        def asked(*args):
            answer = ask(*args)
            if getattr(party, method) is asked:
                setattr(party, method, ask)
                action()
            return answer

        setattr(party, method, asked)


class TestHosts(SyncTest):
    """A comparison of some hosts, which writes nothing."""

    def compare(self, *hosts, patience=0.0):
        return full_sync.of_hosts(
            self.reconciler, frozenset(hosts), frozenset(), patience)

    def test_states(self):
        """Those of these hosts alone; the ledger is left as it is."""
        self.nova.hosts_of['c'] = {'h3'}
        self.nova.nodes['n4'] = 'h2'
        self.placement.write('n2', {'a', 'c', 'foreign'})
        compared = self.compare('h2')
        self.assertEqual(
            [('n2', 'b', 'missing'), ('n2', 'c', 'stale'),
             ('n4', 'a', 'pending'), ('n4', 'b', 'pending')],
            [(*association.pair, association.state.value)
             for association in compared.associations])
        self.assertEqual({'h2'}, set(compared.nova.members))
        self.assertEqual({'TRUTH', 'GET'}, {method for method, _ in self.log})
        self.assertEqual({}, self.ledger.entries())

    def test_outage(self):
        """It is one failure, whatever the number of nodes."""
        self.placement.broken = {('GET', 'n1'): DOWN, ('PROBE', ''): DOWN}
        compared = self.compare('h1', 'h2')
        self.assertEqual((DOWN, {}), (
            compared.not_compared, compared.outcome.failed))
        self.assertEqual({'h1', 'h2'}, set(compared.nova.members))
        self.nova.broken = exceptions.NovaUnavailable('no answer')
        self.assertIs(self.nova.broken, self.compare('h1', 'h2').not_compared)

    def test_outage_meanwhile(self):
        """What was read before it is compared."""
        self.placement.broken = {('GET', 'n2'): DOWN}
        self.after_first(
            self.placement, 'probe',
            lambda: self.placement.fail('PROBE', '', error=DOWN))
        compared = self.compare('h1', 'h2', patience=30.0)
        self.assertIsNone(compared.not_compared)
        self.assertEqual({Subject(PROVIDER, 'n2')}, {*compared.outcome.failed})
        self.assertEqual([('n1', 'a')], self.among(
            compared, associations.State.MISSING))


class TestSync(SyncTest):

    def test_in_sync_nothing_is_written(self):
        """A second sync neither writes nor reads single providers."""
        self.sync()
        self.log.clear()
        self.assertEqual([], self.sync().outcome.changes)
        self.assertEqual([('ALL', ''), ('MEMBERS', 'a'), ('MEMBERS', 'b'),
                          ('TRUTH', '')], self.log)

    def test_failure_clears_the_success_of_a_row_that_is_long_over(self):
        """The agent passes it as a handed-over row."""
        self.record('h1', ['n1'])
        self.sync()
        self.placement.broken['GET', 'n1'] = FAILED
        for stopping, cleared in ((True, False), (False, True)):
            row, = self.journal.rows.all()
            reconciler.drain(
                self.new_reconciler(
                    for_each=workers.in_threads(1, lambda: stopping)),
                [dataclasses.replace(row, running=False)])
            row, = self.journal.rows.all()
            self.assertEqual(cleared, row.mirrored_at is None)

    def test_comparison_is_only_a_hint(self):
        """Rule 7: a provider that was repaired meanwhile is not written."""
        def meanwhile():
            self.placement.write('n1', {'a'})
            self.nova.hosts_of['b'].discard('h2')

        self.after_first(self.nova, 'read_all', meanwhile)
        self.sync()
        self.assertNotIn(('PUT', 'n1'), self.log)
        self.assertEqual({'a'}, self.placement.aggregates['n2'])

    def test_wrong_placement(self):
        """It is named: that all providers are pending would be wrong.

        While a cell is not read, they may be those of its compute nodes. Rule
        13: the configuration may point to another cloud. Rows would find
        nothing there, so none is closed.
        """
        self.placement.aggregates.clear()
        for silent, kind, texts in (
                ({'h1', 'h2'}, exceptions.CellUnavailable, ['cell9']),
                (set(), exceptions.WrongPlacement,
                 ['nova has 3 compute nodes; ', 'region RegionOne'])):
            self.nova.silent = silent
            raised = self.sync().not_compared
            self.assertIsInstance(raised, kind)
            for text in texts:
                self.assertIn(text, str(raised))
            self.assertEqual({}, self.ledger.entries())
        self.hand_over('h1', ['n1'])
        self.placement.create('of-another-region')
        self.assertRaises(exceptions.WrongPlacement, self.sync)
        self.assertEqual(1, len(self.journal.rows.all()))

    def test_name_of_a_missing_provider_is_taken(self):
        """Nova-compute cannot create it, however often it is restarted.

        Each sync looks the names up, but none while no provider is missing.
        Of very many only some are looked up, with a request each.
        """
        self.sync()
        self.assertEqual([], self.sent('NAMED'))
        del self.placement.aggregates['n2']
        self.placement.create('other')
        for names, silent, text, step in (
                ({'other': 'name of h2'}, {}, 'has the name name of h2',
                 "set --name 'name of h2-old' other\""),
                # That of another compute node is never to be deleted.
                ({'n1': 'name of h2'}, {},
                 'that of another compute node, n1', ''),
                # Nor is one of a cell that did not answer.
                ({'other': 'name of h2'}, {'other': 'h3'},
                 'which may be a compute node of cell cell9', '')):
            self.placement.names = names
            self.nova.nodes |= silent
            self.nova.silent = {*silent.values()}
            (subject, error), = self.failed().items()
            self.assertEqual((Subject(PROVIDER, 'n2'), bool(step)),
                             (subject, bool(error.failure.step)))
            self.assertIn(text, str(error))
            self.assertIn(step, error.failure.step)
        self.nova.silent = set()
        self.placement.names = {}
        self.assertEqual({}, self.failed())
        for node in self.add_hosts(2 * survey.LOOKED_UP):
            del self.placement.aggregates[node]
        self.log.clear()
        self.sync()
        self.assertEqual(survey.LOOKED_UP, len(self.sent('NAMED')))

    def search(self):
        """Return the foreign aggregates found, the removable, the failures."""
        result = self.sync(foreign=True, write=False)
        return (self.among(result, 'foreign_aggregate'), result.removable,
                result.outcome.failed)

    def test_aggregates_that_nova_never_had(self):
        """Listed on request; storage may depend on one of another provider."""
        self.placement.create('n1', 'a', 'mine', 'storage')
        self.placement.create('disk', 'storage')
        self.assertEqual([], self.among(self.sync(), 'foreign_aggregate'))
        mine, storage = ('n1', 'mine'), ('n1', 'storage')
        self.assertEqual(([mine, storage], {'mine'}), self.search()[:2])
        # It may be that of an aggregate whose UUID in nova is none.
        self.nova.invalid = {source.HostAggregate('rack', 7, None)}
        self.assertEqual(frozenset(), self.search()[1])
        self.nova.invalid = set()
        self.ledger.remember({'mine'})
        self.assertEqual([storage], self.search()[0])
        self.sync()
        # One provider without an answer hides none of the others.
        self.placement.broken['GET', 'n2'] = NO_ANSWER
        self.placement.write('n3', {'other'})
        pairs, _removable, failed = self.search()
        self.assertEqual([storage, ('n3', 'other')], pairs)
        self.assertEqual({Subject(FOREIGN, 'n2'): NO_ANSWER}, failed)
        # After an outage, those that were not read are reported.
        self.placement.broken['PROBE', ''] = NO_ANSWER
        failed = self.search()[2]
        self.assertEqual(
            ['deadline_exceeded', 'not_tried'],
            [failed[Subject(FOREIGN, node)].failure.kind
             for node in ('n2', 'n3')])
        del self.placement.broken['PROBE', '']
        # A few of each batch may have none.
        *silent, last = nodes = self.add_hosts(5)
        for node in nodes:
            self.placement.write(node, {'a', 'last'})
        self.placement.fail('GET', *silent)
        self.reconciler = self.new_reconciler(batch=2)
        self.assertIn((last, 'last'), self.search()[0])

    def test_foreign_aggregates_that_were_not_searched_for(self):
        """What was silent is the reason, not another failure before it."""
        failed, *silent, last = self.add_hosts(5)
        self.sync()
        self.placement.broken['GET', failed] = FAILED
        self.placement.fail('GET', *silent)
        _pairs, _removable, failed = self.search()
        self.assertIn('no answer', str(failed[Subject(FOREIGN, last)]))

    def test_foreign_aggregate_that_is_gone_after_the_write(self):
        """The search finds what the provider has now, and nothing else."""
        self.placement.create('n1', 'mine')
        self.after_first(self.placement, 'put',
                         lambda: self.placement.write('n1', {'a'}))
        result = self.sync(foreign=True)
        self.assertEqual([], self.among(result, 'foreign_aggregate'))
        self.assertEqual(frozenset(), result.removable)

    def test_aggregate_that_a_user_creates_meanwhile(self):
        """Nova has it: what was read before is no reason to remove it."""
        self.sync()

        def create():
            self.nova.hosts_of['new'] = {'h1'}
            self.placement.aggregates['n1'] |= {'new'}

        self.after_first(self.nova, 'read_all', create)
        self.assertEqual(([], frozenset()), self.search()[:2])
        # Whether it has others cannot be said if nova does not answer.
        self.placement.aggregates['n1'] |= {'other'}
        error = exceptions.NovaUnavailable('no answer')
        self.after_first(self.placement, 'get',
                         lambda: setattr(self.nova, 'broken', error))
        pairs, _removable, failed = self.search()
        self.assertEqual(([], {Subject(FOREIGN, 'n1'): error}),
                         (pairs, failed))

    def test_interrupted_search_for_foreign_aggregates(self):
        """What was not read is reported, and not taken for clean."""
        self.sync()
        for node in 'n1', 'n2':
            self.placement.aggregates[node].add('other')
        self.stop_at(self.placement, 'get')
        pairs, removable, failed = self.search()
        self.assertEqual(([('n1', 'other')], frozenset()), (pairs, removable))
        self.assertEqual(
            {Subject(FOREIGN, node): exceptions.Stopped
             for node in ('n2', 'n3')},
            {subject: type(error) for subject, error in failed.items()})

    def mark_deleted(self, *aggregates):
        """Let a user delete aggregates that each node is in."""
        for node in 'n1', 'n2', 'n3':
            self.placement.aggregates[node] |= {*aggregates}
        self.ledger.remember(aggregates)
        for uuid in aggregates:
            self.ledger.mark(uuid)

    def test_removal_that_fails(self):
        """Another success with its provider does not make up for it."""
        self.sync()
        self.mark_deleted('gone')
        self.nova.hosts_of['c'] = {'h1'}
        for share, failed in (None, {N1: NO_ANSWER}), (0.5, {}):
            self.placement.broken = doubles.Once({('PUT', 'n1'): NO_ANSWER})
            self.placement.aggregates['n1'].discard('c')
            self.assertEqual(failed, self.failed(max_removed_share=share))
            self.assertEqual(bool(failed),
                             'gone' in self.placement.aggregates['n1'])
        # Nor does the removal of another aggregate.
        self.mark_deleted('g1', 'g2')
        self.placement.broken = doubles.Once(
            {('PUT', 'n1'): exceptions.RequestRejected('400')})
        result = self.sync()
        self.assertEqual(({N1}, exit_status.NOT_UPDATED),
                         (result.outcome.failed.keys(), result.status()))
        self.assertEqual({'a', 'c', 'g1'}, self.placement.aggregates['n1'])

    def test_removals_while_placement_is_unavailable(self):
        """The search for the next aggregate would fail like the first."""
        self.sync()
        self.mark_deleted('g1', 'g2')
        errors = dict.fromkeys(
            [('MEMBERS', 'g1'), ('PROBE', '')], NO_ANSWER)
        self.after_first(self.nova, 'read_all',
                         lambda: self.placement.broken.update(errors))
        self.assertEqual({
            Subject(outcome.AGGREGATE, uuid): NO_ANSWER
            for uuid in ('g1', 'g2')}, self.failed())
        self.assertEqual([('TRUTH', ''), ('MEMBERS', 'g1'), ('PROBE', '')],
                         self.log[-3:])

    def test_removal_that_was_made_without_an_answer(self):
        """The repair of the provider finds that, and nothing has failed."""
        self.sync()
        self.mark_deleted('gone')
        self.nova.hosts_of['c'] = {'h1'}

        def fail():
            raise NO_ANSWER

        self.after_first(self.placement, 'put', fail)
        self.assertEqual({}, self.failed())

    def test_stop_of_a_removal(self):
        """What is left is reported, and no sync is called a success."""
        self.sync()
        self.mark_deleted('gone')
        self.stop_at(self.placement, 'put')
        result = self.sync()
        self.assertEqual(['gone'], result.unprocessed)
        self.assertIn('Interrupted; 1 host', result.summary())

    def test_provider_that_is_created_during_the_drain(self):
        """That it did not exist is no contradiction."""
        del self.placement.aggregates['n1']
        self.hand_over('h1', ['n1'])

        def create():
            self.placement.create('n1')

        self.after_first(self.nova, 'read_all', lambda: self.after_first(
            self.nova, 'read', create))
        self.assertEqual({}, self.failed())
        self.assertEqual({'a'}, self.placement.aggregates['n1'])

    def test_preview_of_what_the_journal_holds(self):
        """The brake counts what is left after the journal, as in a run."""
        for node in self.add_nodes(15, 'a')[:12]:
            self.hand_over('of-' + node, [node])
        rows = self.journal.rows.all()
        before = dict(self.placement.generations)
        plan = self.sync(max_removed_share=0.3, write=False)
        self.assertEqual(before, self.placement.generations)
        self.assertEqual(rows, self.journal.rows.all())
        done = self.sync(max_removed_share=0.3)
        self.assertEqual((None, sorted(plan.outcome.changes)),
                         (plan.refused, sorted(done.outcome.changes)))

    def test_progress_counts_what_is_made_again_once(self):
        """The progress never exceeds its total."""
        display = mock.create_autospec(reconcile.Progress, instance=True)
        self.placement.broken = doubles.Once({('PUT', 'n1'): FAILED})
        full_sync.run(self.new_reconciler(display=display))
        display.step.assert_called_with(mock.ANY, 2)
        self.assertEqual(2, display.advance.call_count)

    def test_what_was_written_is_reported_whatever_follows(self):
        """Also if placement fails after the journal was drained."""
        self.hand_over('h1', ['n1'])
        self.placement.is_connected = False
        self.placement.broken['PROBE', ''] = FAILED
        result = self.sync()
        self.assertEqual(
            [outcome.Change('n1', ('a',))], result.outcome.changes)
        self.assertIs(FAILED, result.not_compared)

    def test_journal_that_is_unavailable_when_nova_was_read(self):
        """Without the ledger nothing is compared, and nothing is written."""
        self.after_first(self.nova, 'read_all', self.lock_journal)
        self.assertIsInstance(self.sync().not_compared,
                              exceptions.JournalUnavailable)
        self.assertEqual(set(), self.placement.aggregates['n1'])

    def test_journal_that_becomes_unavailable(self):
        """It is a failure, but nova's current state is still mirrored."""
        self.after_first(self.placement, 'get', self.lock_journal)
        judged = self.sync()
        self.assertEqual({'n1': {'a'}, 'n2': {'a', 'b'}, 'n3': set()},
                         self.placement.aggregates)
        [problem] = judged.problems
        self.assertEqual(
            (exit_status.COULD_NOT_RUN, 'partial',
             'The journal is not up to date', 'locked'),
            (judged.status(), judged.judgement, problem.text,
             problem.failure.kind))

    def test_row_of_a_node_that_moved_is_about_two_hosts(self):
        """A sync of h1 does not close a row that also concerns h2."""
        self.hand_over('h1', ['n2'])
        self.sync(hosts=frozenset({'h1'}))
        self.assertNotIn(('PUT', 'n2'), self.log)
        self.assertEqual(1, len(self.journal.rows.all()))
        self.sync(hosts=frozenset({'h1', 'h2'}))
        self.assertEqual([], self.journal.rows.all())

    def test_placement_that_becomes_unavailable_is_asked_no_more(self):
        """The remaining hosts fail with the same reason."""
        self.add_hosts(450)
        self.placement.fail('GET', *self.nova.nodes, error=DOWN)
        self.placement.fail('PROBE', '', error=DOWN)
        result = self.sync()
        self.assertEqual([('TRUTH', ''), ('GET', 'm000'), ('PROBE', '')], [
            one for one in self.log if one[0] in ('TRUTH', 'GET', 'PROBE')])
        self.assertGreaterEqual(len(result.outcome.failed), 452)

    def test_disputed_node_whose_provider_is_in_no_aggregate(self):
        """It is reported as not updated, though some hosts are in none."""
        self.nova.nodes = {'n1': 'h1', 'n2': 'h2'}
        self.nova.hosts_of = {'a': {'h1'}, 'b': {'h2'}}
        self.placement.create('n2', 'b')
        self.nova.twins = {'n1': 'h3'}
        for only in (), ('a',):
            outcome = self.sync(aggregates=frozenset(only)).outcome
            error, = outcome.failed.values()
            self.assertIsInstance(error, exceptions.Contradiction)
            self.assertEqual([{N1}] * 2, [
                {*outcome.failed}, outcome.unwritten])
        self.assertEqual({}, self.failed(aggregates=frozenset({'b'})))

    def test_aggregate_in_another_spelling(self):
        """Placement could be read but not updated, as the status says."""
        uuid = 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee'
        self.nova.hosts_of = {uuid: {'h1'}, 'b': {'h1', 'h2'}}
        self.placement.create('n2', 'b')
        for aggregates in {uuid.upper()}, {uuid.upper(), 'b'}:
            self.placement.write('n1', aggregates)
            outcome = self.sync().outcome
            self.assertIsInstance(outcome.failed[N1], exceptions.Contradiction)
            self.assertEqual({N1}, outcome.unwritten)
            self.assertEqual({uuid.upper(), 'b'},
                             self.placement.aggregates['n1'])

    def test_provider_without_an_answer(self):
        """While placement answers others, they are all repaired.

        It is asked again by itself, after them, and reported with its error.
        """
        for method, error in (('GET', NO_ANSWER), ('PUT', NO_ANSWER),
                              ('GET', DOWN)):
            for count in 1, 3:
                nodes = self.add_hosts(20)
                self.placement.broken = {(method, 'm005'): error}
                self.log.clear()
                outcome = full_sync.run(self.new_reconciler(
                    for_each=workers.in_threads(count))).outcome
                self.assertEqual(['m005'], [
                    node for node in nodes
                    if self.placement.aggregates[node] != {'a'}])
                subject = Subject(PROVIDER, 'm005')
                self.assertEqual({subject: error}, outcome.failed)
                self.assertEqual([2, 2], [
                    self.log.count((method, 'm005')),
                    self.log.count(('PROBE', ''))])
                self.assertEqual(method == 'PUT', subject in outcome.unwritten)

    def test_many_providers_without_an_answer(self):
        """All others of their batch, and the next batch, are mirrored."""
        nodes = self.add_hosts(20)
        self.nova.hosts_of['a'] -= {'h1', 'h2'}
        self.nova.hosts_of['b'].clear()
        silent = nodes[1:10]
        self.placement.fail('GET', *silent)
        outcome = full_sync.run(self.new_reconciler(batch=10)).outcome
        self.assertEqual(silent, [node for node in nodes if 'a' not in
                                  self.placement.aggregates[node]])
        self.assertEqual({Subject(PROVIDER, node): NO_ANSWER
                          for node in silent}, outcome.failed)

    def test_deleted_aggregates_of_a_provider_without_an_answer(self):
        """They leave all others; it is asked once."""
        for uuid in 'gone', 'older':
            self.ledger.mark(uuid)
        for provider in 'n3', 'storage':
            self.placement.create(provider, 'gone', 'older')
        self.placement.fail('PUT', 'n3')
        self.assertEqual({Subject(PROVIDER, 'n3'): NO_ANSWER}, self.failed())
        self.assertEqual(set(), self.placement.aggregates['storage'])
        self.assertEqual(1, self.log.count(('PUT', 'n3')))

    def unread(self, *aggregates, **current):
        """Let the comparison read placement, but not these aggregates."""
        read = survey.read_memberships
        errors = dict.fromkeys(aggregates, FAILED)
        self.patch(survey, 'read_memberships',
                   lambda *args: (current or read(*args)[0], errors))
        return read

    def test_aggregate_that_could_not_be_read(self):
        """No difference, drift or removal is reported; it is named."""
        self.placement.create('n2', 'gone')
        self.placement.create('n3', 'b')
        self.ledger.remember(['gone', 'old'])
        self.unread('b', 'gone', n3=frozenset())
        result = self.sync(max_removed_share=1.0)
        self.assertEqual(
            {Subject(outcome.UNREAD, uuid): FAILED for uuid in ('b', 'gone')},
            result.outcome.failed)
        self.assertEqual([('n1', 'a'), ('n2', 'a')],
                         sorted(one.pair for one in result.drift))
        # What the comparison had not read is left as it is in n3.
        self.assertEqual({'b'}, self.placement.aggregates['n3'])
        self.assertEqual({'a'}, self.placement.aggregates['n1'])

    def test_only_aggregate_that_could_not_be_read(self):
        """Nothing is compared, and not everything instead."""
        self.nova.hosts_of = {'a': {'h1'}}
        self.placement.create('n3', 'a')
        self.unread('a', n3=frozenset())
        self.assertEqual([], [*self.sync(max_removed_share=1.0).drift])
        self.assertEqual(0, self.log.count(('GET', 'n1')))

    def test_ledger_after_an_aggregate_could_not_be_read(self):
        """It is not taken for empty: it is neither cleared nor forgotten."""
        self.ledger.remember(['old'])
        self.sync()
        self.now += 8 * 24 * 3600
        read = self.unread('old')
        self.sync()
        self.assertIn('old', self.ledger.entries())
        self.patch(survey, 'read_memberships', read)
        self.sync()
        self.assertNotIn('old', self.ledger.entries())

    def test_provider_that_is_listed_and_not_found(self):
        """One of several placements answers: it is not pending.

        If it was deleted, it is: nova-compute creates it again.
        """
        self.placement.write('n1', {'b'})
        self.placement.broken['GET', 'n1'] = exceptions.ProviderNotFound('404')
        error = self.failed()[N1]
        self.assertIsInstance(error, exceptions.Contradiction)
        self.assertIn('and lists it', str(error))
        self.after_first(self.nova, 'read_all',
                         lambda: self.placement.aggregates.pop('n1'))
        result = self.sync()
        self.assertEqual({}, result.outcome.failed)
        self.assertEqual([('n1', 'a')], self.among(result, 'pending'))


class TestLedger(SyncTest):
    """Rules 8, 12 and 13: when a sync writes the ledger."""

    def test_sync_that_finds_nothing_to_do_feeds_the_ledger(self):
        """Rule 12: nova's own mirroring may already have done everything.

        An aggregate without hosts may have had some, and be deleted next.
        """
        self.nova.hosts_of['c'] = set()
        self.placement.create('n1', 'a')
        self.placement.create('n2', 'a', 'b')
        self.assertEqual([], self.sync().outcome.changes)
        self.assertEqual(dict.fromkeys('abc', journal.LedgerEntry()),
                         self.ledger.entries())

    def assert_absent(self, expected, **kwargs):
        """Sync; assert whether an absence is recorded then."""
        self.clock += self.conf.aggregate_mirror.max_call_age
        self.sync(max_removed_share=0.3, **kwargs)
        self.now += 1
        self.assertEqual(
            expected, self.ledger.entries()['gone'].absent > 0, kwargs)

    def test_only_a_sync_of_everything_notes_or_ends_an_absence(self):
        """Rule 13: a dry run or a sync of some hosts does not.

        Nor does it forget entries or clear marks.
        """
        some = {'write': False}, {'hosts': frozenset({'h1'})}
        self.ledger.remember(['gone'])
        self.sync(write=False, max_removed_share=0.3)
        self.assertEqual({'gone'}, set(self.ledger.entries()))
        for kwargs in some[1], {'aggregates': frozenset({'a'})}:
            self.assert_absent(False, **kwargs)
        self.ledger.mark('b')
        self.sync()
        self.nova.hosts_of['gone'] = set()
        for kwargs in some:
            self.assert_absent(True, **kwargs)
            self.assertTrue(self.ledger.entries()['b'].deleted)
        self.assert_absent(False)

    def test_deleted_aggregate_is_forgotten_after_placement_is_empty(self):
        """Not while a provider has it, however long it is absent."""
        self.ledger.remember(['gone'])
        self.placement.create('storage', 'gone')
        for _sync in range(3):
            self.sync()
            self.assertIn('gone', self.ledger.entries())
            self.now += synced_ledger.FORGET_AFTER + 1
        self.placement.write('storage', ())
        self.sync()
        self.assertNotIn('gone', self.ledger.entries())


class VanishedTest(SyncTest):
    """A host and a shared storage in an aggregate that nova lacks."""

    def setUp(self):
        super().setUp()
        self.providers = 'n3', 'storage'
        for provider in self.providers:
            self.placement.create(provider, 'gone', 'foreign')

    def assert_everywhere(self, *aggregates):
        self.assert_have({*aggregates}, {*aggregates})

    def assert_have(self, *expected):
        """Assert what the host and the storage have."""
        self.assertEqual([*expected], [
            self.placement.aggregates[provider]
            for provider in self.providers])


class TestMarked(VanishedTest):
    """Rule 9: an aggregate that a user deleted through nova-api."""

    def setUp(self):
        super().setUp()
        self.ledger.mark('gone')

    def test_it_is_removed_from_every_provider(self):
        """Also from other kinds of providers, and without prune."""
        result = self.sync()
        self.assert_everywhere('foreign')
        self.assertEqual([('storage', 'gone'), ('n3', 'gone')],
                         self.among(result, 'stale'))
        self.assertEqual(
            {'missing': 3, 'stale': 2}, collections.Counter(
                association.state.value for association in result.drift))

    def test_deletion_while_the_sync_reads(self):
        """The mark is seen, since it was written before nova's commit."""
        self.nova.hosts_of['newer'] = {'h3'}
        self.placement.create('storage', 'newer')
        self.sync()

        def delete():
            self.open_journal().ledger.mark('newer')
            del self.nova.hosts_of['newer']

        self.after_first(survey, 'read_memberships', delete)
        self.sync()
        self.assertEqual(set(), self.placement.aggregates['storage'])

    def test_brake_does_not_hold_it(self):
        """Nor is it counted as a removal by the brake.

        An empty nova keeps its associations; this removal is still done.
        """
        self.sync()
        self.add_nodes(30, 'gone')
        result = self.sync(max_removed_share=0.0)
        self.assertIsNone(result.refused)
        self.assertEqual(30, len(result.outcome.changes))
        self.placement.write('storage', {'gone', 'foreign'})
        self.nova.hosts_of = {}
        result = self.sync(max_removed_share=0.3)
        self.assertIn('no compute node in any', str(result.refused))
        self.assertEqual(({'a'}, {'foreign'}), (
            self.placement.aggregates['n1'],
            self.placement.aggregates['storage']))

    def test_dry_run(self):
        """It shows each provider, and removes nothing."""
        changes = self.sync(write=False).outcome.changes
        self.assertEqual(
            [outcome.Change(provider, (), ('gone',))
             for provider in self.providers],
            [change for change in changes if change.remove])
        self.assert_everywhere('gone', 'foreign')

    def test_sync_of_some_hosts(self):
        """Rule 13: it touches neither other hosts nor foreign providers."""
        result = self.sync(hosts=frozenset({'h1'}), max_removed_share=0.3)
        self.assert_everywhere('gone', 'foreign')
        self.assertEqual([], self.among(result, 'stale', 'absent'))
        self.assertEqual([{'a'}, set()], [
            self.placement.aggregates[node] for node in ('n1', 'n2')])

    def test_deletion_that_nova_refused(self):
        """The aggregate is mirrored normally, and its old mark cleared."""
        self.nova.hosts_of['gone'] = {'h3'}
        self.placement.create('n1', 'a', 'gone')
        for _sync in range(2):
            self.sync(max_removed_share=0.3)
            self.assert_everywhere('gone', 'foreign')
            self.assertEqual({'a'}, self.placement.aggregates['n1'])
            self.clock += self.conf.aggregate_mirror.max_call_age
        self.assertFalse(self.ledger.entries()['gone'].deleted)


class TestUnmarked(VanishedTest):
    """Rule 9: an aggregate that vanished from nova in some other way."""

    def setUp(self):
        super().setUp()
        self.ledger.remember(['gone'])

    def later(self, hours, **kwargs):
        self.now += 3600 * hours
        return self.sync(**{'max_removed_share': 0.3, **kwargs})

    def test_removal_that_succeeds(self):
        """It makes up for no other failure of its provider."""
        self.sync()
        self.placement.aggregates['n1'] = {'gone'}
        self.placement.broken = doubles.Once(
            {('PUT', 'n1'): exceptions.RequestRejected('400')})
        result = self.later(comparison.FOREIGN_AFTER, max_removed_share=1.0)
        self.assertEqual(set(), self.placement.aggregates['n1'])
        self.assertIn(N1, result.outcome.failed)

    def test_brake_holds_it(self):
        """Also for other providers, however long it is absent."""
        nodes = self.add_nodes(11, 'gone')
        for hours in (0, 48):
            result = self.later(hours)
            self.assertIsInstance(result.refused, exceptions.RemovalsRefused)
            self.assertEqual({'gone'}, self.placement.aggregates[nodes[7]])
            self.assert_everywhere('gone', 'foreign')

    def test_other_providers_after_a_day_of_absence(self):
        """With prune it is removed from compute nodes only at first.

        A database restored by mistake would be noticed within a day.
        """
        self.assertEqual(
            [('storage', 'gone')], self.among(self.later(0), 'absent'))
        self.later(23.9)
        self.assert_have({'foreign'}, {'gone', 'foreign'})
        result = self.later(0.1, write=False)
        self.assertEqual([outcome.Change('storage', (), ('gone',))],
                         result.outcome.changes)
        self.assert_have({'foreign'}, {'gone', 'foreign'})
        self.later(0)
        self.assert_everywhere('foreign')
