# SPDX-License-Identifier: Apache-2.0
"""Converging hosts and deleted aggregates, by the rules of the protocol."""

import dataclasses
import logging

import fixtures

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror.reconcile import reconciler
from tests.unit import doubles

AGGREGATE, HOST, PROVIDER = outcome.AGGREGATE, outcome.HOST, outcome.PROVIDER
Subject = outcome.Subject
Outcome = outcome.Outcome


class TestHosts(doubles.TestCase):

    def setUp(self):
        super().setUp()
        self.nova.hosts_of = {'a': {'h1'}, 'b': set()}
        self.nova.nodes = {'n1': 'h1'}
        self.placement.create('n1')
        self.written = self.useFixture(fixtures.FakeLogger(
            'nova_aggregate_mirror', level=logging.INFO))

    def converge(self, *hosts, **kwargs):
        return self.reconciler.converge(
            [journal.Dirty(host) for host in hosts],
            provider_writes.Mode(**kwargs))

    def test_log_names_host_and_aggregates(self):
        """Each with its UUID; a deleted aggregate has no name."""
        self.journal.ledger.remember(['deleted'])
        self.placement.create('n1', 'b', 'deleted', 'foreign')
        self.converge('h1')
        self.converge('h1')
        self.assertEqual(
            'Host h1 (provider n1): added name of a (a); removed name of b '
            '(b), deleted\n', self.written.output)

    def test_log_of_a_provider_without_compute_node(self):
        """Nova does not say on which host it was."""
        self.nova.nodes = {}
        self.placement.create('n1', 'a')
        self.hand_over('h1', ['n1'])
        self.drain()
        self.assertEqual(
            'Provider n1: removed name of a (a)\n', self.written.output)

    def test_log_of_a_dry_run(self):
        """A change that is not made is not logged."""
        self.converge('h1', write=False)
        self.assertEqual('', self.written.output)

    def test_conflict_starts_again_at_the_read(self):
        """Rule 4: after a 409 the provider and the truth are read again."""
        def interfere(provider):
            self.placement.before_put = lambda provider: None
            self.placement.write('n1', {'foreign'})
            self.nova.hosts_of['b'].add('h1')

        self.placement.before_put = interfere
        self.assertEqual(1, self.converge('h1').conflicts)
        self.assertEqual({'a', 'b', 'foreign'},
                         self.placement.aggregates['n1'])
        self.assertEqual([('GET', 'n1'), ('TRUTH', ''), ('PUT', 'n1')],
                         self.log[-3:])

    def test_endless_conflict_is_a_failure(self):
        """A client that never stops writing does not block the converge."""
        self.placement.before_put = (
            lambda provider: self.placement.write(provider, {'foreign'}))
        outcome = self.converge('h1')
        self.assertIsInstance(outcome.failed[Subject(PROVIDER, 'n1')],
                              exceptions.GenerationConflict)
        self.assertIn(journal.Dirty('h1'), outcome.unfinished)
        self.assertEqual({Subject(PROVIDER, 'n1')}, outcome.unwritten)
        # The first round only finds the node.
        self.assertEqual(provider_writes.ROUNDS - 1, outcome.conflicts)

    def test_endless_conflicts_of_many_do_not_delay_others(self):
        """Rule 14: a retry that helps none of them is the last one."""
        hosts = ['h%02d' % number for number in range(12)]
        healthy = hosts.pop()
        self.nova.hosts_of['a'] = {*hosts, healthy}
        self.nova.nodes = {'of-' + host: host for host in [*hosts, healthy]}
        for node in self.nova.nodes:
            self.placement.create(node)

        def interfere(provider):
            if provider != 'of-' + healthy:
                self.placement.write(provider, {'foreign'})

        self.placement.before_put = interfere
        requests = [journal.Dirty(host, frozenset({'of-' + host}))
                    for host in (*hosts, healthy)]
        outcome = self.new_reconciler(batch=6).converge(requests)
        self.assertEqual({Subject(PROVIDER, 'of-' + host) for host in hosts},
                         {*outcome.failed})
        self.assertEqual({'of-' + healthy}, outcome.done)
        puts = self.sent('PUT')
        # The first batch is retried once; the second one is not.
        self.assertEqual(2 * 6 + 6, len(puts))

    def test_recorded_node_follows_its_current_host(self):
        """The orphan of a service delete keeps no owned association."""
        self.nova.hosts_of['b'] = {'h2'}
        for nodes, aggregates in (
                ({'n1': 'h2'}, {'b', 'foreign'}), ({}, {'foreign'})):
            self.nova.nodes = nodes
            self.placement.create('n1', 'a', 'foreign')
            self.hand_over('h1', ['n1'])
            self.drain()
            self.assertEqual(aggregates, self.placement.aggregates['n1'])
            self.assertEqual([], self.journal.rows.all())

    def test_added_aggregate_is_in_the_ledger_before_the_write(self):
        """Rule 8: also if another provider is in it already."""
        self.nova.hosts_of['a'] = {'h1', 'h2'}
        self.nova.nodes['n2'] = 'h2'
        self.placement.create('n2', 'a')
        self.placement.before_put = lambda provider: self.assertEqual(
            {'a'}, set(self.journal.ledger.entries()))
        self.converge('h1', 'h2')
        self.assertIn(('PUT', 'n1'), self.log)

    def test_what_is_kept_of_a_changed_provider(self):
        """Aggregates that were never nova's, beside those that it gets.

        What was read last counts: another client may have replaced what the
        first read found.
        """
        self.assertEqual({'n1': set()}, self.converge('h1').kept)
        self.placement.create('n1', 'foreign')
        self.assertEqual({'n1': {'foreign'}}, self.converge('h1').kept)
        self.assertEqual({}, self.converge('h1').kept)
        for aggregates in (), ('a',), ('other',):
            self.placement.create('n1', 'foreign')

            def interfere(provider, aggregates=aggregates):
                self.placement.before_put = lambda provider: None
                self.placement.write('n1', aggregates)

            self.placement.before_put = interfere
            self.assertEqual({'n1': {*aggregates} - {'a'}},
                             self.converge('h1').kept)

    def test_without_prune_nothing_is_removed(self):
        """A sync that may not prune only adds."""
        self.placement.create('n1', 'b')
        self.converge('h1', prune=False)
        self.assertEqual({'a', 'b'}, self.placement.aggregates['n1'])

    def test_pending_provider_is_no_failure(self):
        """nova-compute will create it, and a sync will find it."""
        del self.placement.aggregates['n1']
        self.hand_over('h1', ['n1'])
        outcome = self.drain()
        self.assertEqual({'n1'}, outcome.pending)
        self.assertEqual([], self.journal.rows.all())

    def test_write_that_a_sick_backend_answered(self):
        """It begins again at its GET, at once; only the second one counts."""
        for error in (exceptions.ServiceFailed('503'),
                      exceptions.MalformedAnswer('HTML')):
            self.placement.create('n1')
            failures = [error]

            def fail_once(provider):
                if failures:
                    self.placement.broken['PUT', 'n1'] = failures.pop()
                else:
                    self.placement.broken.clear()

            self.placement.before_put = fail_once
            self.hand_over('h1', ['n1'])
            self.log.clear()
            outcome = self.drain()
            self.assertEqual(
                [('GET', 'n1'), ('TRUTH', ''), ('PUT', 'n1')] * 2, self.log)
            self.assertEqual({'a'}, self.placement.aggregates['n1'])
            self.assertEqual(({}, set()),
                             (outcome.failed, outcome.unwritten))
            self.assertEqual([], self.journal.rows.all())

    def test_write_that_fails_again(self):
        """Rule 6: it is a failure, and is not repeated any more.

        Nor is one without an answer, which may have succeeded.
        """
        self.hand_over('h1', ['n1'])
        for error, puts in ((exceptions.ServiceFailed('503'), 2),
                            (exceptions.DeadlineExceeded('no answer'), 1)):
            self.placement.broken['PUT', 'n1'] = error
            self.log.clear()
            outcome = self.drain()
            self.assertEqual(puts, self.log.count(('PUT', 'n1')))
            self.assertEqual({Subject(PROVIDER, 'n1'): error}, outcome.failed)
            self.assertEqual({Subject(PROVIDER, 'n1')}, outcome.unwritten)
            self.assertEqual(1, len(self.journal.rows.all()))

    def test_write_that_is_to_be_sent_later(self):
        """A short pause is made; a long one would delay the others."""
        pauses = []
        self.useFixture(fixtures.MonkeyPatch('time.sleep', pauses.append))
        for seconds, puts in (0.5, 3), (30.0, 1):
            error = exceptions.ServiceFailed('429')
            error.retry_after = seconds
            self.placement.broken['PUT', 'n1'] = error
            self.hand_over('h1', ['n1'])
            self.log.clear()
            reconciler.drain(self.reconciler, self.journal.rows.all()[-1:])
            self.assertEqual(puts, self.log.count(('PUT', 'n1')))
        self.assertEqual(0.5, max(pauses))

    def test_process_that_stops_during_a_batch(self):
        """The hosts that were not reached are interrupted, and not failed."""
        self.nova.nodes['n2'] = 'h1'
        self.placement.create('n2')
        stopped = []
        self.placement.before_put = lambda _provider: stopped.append(True)
        mirror = self.new_reconciler(
            for_each=workers.in_threads(stopping=lambda: bool(stopped)))
        dirty = journal.Dirty('h1', frozenset(self.nova.nodes))
        outcome = mirror.converge([dirty])
        self.assertEqual({'n1'}, outcome.done)
        self.assertIsInstance(outcome.unfinished[dirty], exceptions.Stopped)

    def test_provider_that_was_only_slow(self):
        """It is mirrored with patience, like the others."""
        self.nova.nodes['n2'] = 'h1'
        self.placement.create('n2')
        self.placement.broken['GET', 'n1'] = exceptions.DeadlineExceeded('1')
        probe = self.placement.probe

        def recover():
            probe()
            self.placement.broken.clear()

        self.placement.probe = recover
        self.hand_over('h1', ['n1', 'n2'])
        self.assertEqual({}, self.drain().failed)
        self.assertEqual({'n1': {'a'}, 'n2': {'a'}}, self.placement.aggregates)
        self.assertEqual([], self.journal.rows.all())

    def test_failed_provider_does_not_stop_the_others(self):
        """Every provider that can be mirrored is mirrored."""
        self.nova.nodes['n2'] = 'h1'
        self.placement.create('n2')
        self.placement.broken['GET', 'n1'] = exceptions.ServiceFailed('503')
        self.hand_over('h1', ['n1', 'n2'])
        outcome = self.drain()
        self.assertEqual({'a'}, self.placement.aggregates['n2'])
        self.assertEqual([Subject(PROVIDER, 'n1')], list(outcome.failed))
        self.assertEqual(1, len(self.journal.rows.all()))

    def test_silent_cell_is_not_an_empty_cell(self):
        """Its nodes keep their associations, and the row stays."""
        self.nova.silent = {'h1'}
        self.placement.create('n1', 'b')
        self.hand_over('h1', ['n1'])
        outcome = self.drain()
        self.assertEqual({'b'}, self.placement.aggregates['n1'])
        row, = self.journal.rows.all()
        error = outcome.unfinished[row.dirty]
        self.assertIs(error, outcome.failed[Subject(HOST, 'h1')])
        self.assertIsInstance(error, exceptions.CellUnavailable)
        self.assertEqual({'cell9'}, error.cells)

    def test_nova_that_cannot_be_read_changes_nothing(self):
        """Without nova's state nothing is written."""
        self.nova.broken = exceptions.NovaUnavailable('refused')
        self.placement.create('n1', 'b')
        self.hand_over('h1', ['n1'])
        outcome = self.drain()
        self.assertEqual({'b'}, self.placement.aggregates['n1'])
        self.assertIs(self.nova.broken, outcome.failed[Subject(HOST, 'h1')])
        self.assertEqual(1, len(self.journal.rows.all()))

    def test_without_the_journal_a_host_is_still_mirrored(self):
        """Without the ledger, nova's current aggregates are still known."""
        self.conf.set_override('connection', 'sqlite:////proc/journal',
                               'aggregate_mirror_database')
        self.placement.create('n1', 'b', 'deleted')
        outcome = self.converge('h1')
        self.assertEqual({'a', 'deleted'}, self.placement.aggregates['n1'])
        self.assertIsInstance(outcome.unfinished[journal.Dirty('h1')],
                              exceptions.JournalUnavailable)
        # Whether it is stale or foreign is not known.
        self.assertEqual({}, outcome.kept)

    def test_row_of_a_running_operation_is_converged_and_kept(self):
        """Rule 2: its own call closes it; a difference is written at once."""
        row = self.record('h1', ['n1'])
        outcome = self.drain()
        self.assertEqual({'a'}, self.placement.aggregates['n1'])
        self.assertEqual([dataclasses.replace(row, mirrored_at=self.now)],
                         self.journal.rows.all())
        self.assertEqual({}, outcome.unfinished)
        self.log.clear()
        self.drain()
        self.assertNotIn(('PUT', 'n1'), self.log)

    def test_operations_of_one_request(self):
        """What one of them may still do does not hide how another failed."""
        self.hand_over('h1', ['n1'])
        self.record('h1', ['n1'])
        self.placement.create('n1', 'a')
        self.placement.broken['PUT', 'n1'] = exceptions.ServiceFailed('500')
        outcome = self.drain()
        self.assertEqual([journal.Dirty('h1', frozenset({'n1'}))],
                         list(outcome.unfinished))
        self.assertEqual([None, None], [
            row.mirrored_at for row in self.journal.rows.all()])

    def test_row_that_cannot_be_written_is_a_failure(self):
        """Handed over or not; changes in placement are still reported."""
        for write in self.hand_over, self.record:
            row = write('h1', ['n1'])
            self.placement.create('n1')
            self.placement.before_put = (
                lambda provider: self.conf.set_override(
                    'connection', 'sqlite:////proc/journal',
                    'aggregate_mirror_database'))
            drained = reconciler.drain(reconciler.Reconciler(
                self.journal.ledger, self.nova, self.placement,
                self.open_journal().rows), [row])
            self.assertEqual([outcome.Change('n1', ('a',))], drained.changes)
            self.assertEqual([outcome.JOURNAL], list(drained.failed))
            self.assertIs(drained.failed[outcome.JOURNAL],
                          drained.unfinished.get(row.dirty))
            self.conf.clear_override('connection', 'aggregate_mirror_database')

    def test_row_in_sync_whose_time_cannot_be_written(self):
        """It stays mirrored: the journal failed, not the host."""
        self.record('h1', ['n1'])
        self.drain()
        before = self.journal.rows.all()
        self.useFixture(fixtures.MockPatchObject(
            self.journal.rows, 'set_mirrored',
            side_effect=exceptions.JournalUnavailable('lost')))
        self.assertEqual([outcome.JOURNAL], list(self.drain().failed))
        self.assertEqual(before, self.journal.rows.all())

    def test_node_that_comes_meanwhile_is_mirrored_too(self):
        """Nova's answer has the new node; its GET comes after that."""
        self.hand_over('h1', ['n1'])
        self.nova.nodes['n2'] = 'h1'
        self.placement.create('n2')
        self.drain()
        self.assertEqual({'a'}, self.placement.aggregates['n2'])

    def test_cell_that_answers_in_a_later_round(self):
        """Its node is converged as well; rule 4: after its own GET."""
        self.nova.hosts_of['a'].add('h2')
        self.nova.nodes['n2'] = 'h2'
        self.placement.create('n2')
        self.nova.silent = {'h1'}

        def answer(provider):
            self.placement.before_put = lambda provider: None
            self.placement.write(provider, ())
            self.nova.silent = set()

        self.placement.before_put = answer
        self.hand_over('h2', ['n1', 'n2'])
        self.assertEqual({}, self.drain().unfinished)
        self.assertEqual({'n1': {'a'}, 'n2': {'a'}}, self.placement.aggregates)
        self.assertEqual([], self.journal.rows.all())
        self.assertEqual([('GET', 'n1'), ('TRUTH', ''), ('PUT', 'n1')],
                         self.log[-3:])

    def test_cell_that_answers_in_the_last_round(self):
        """Its node is not converged, and the row does not wait for cells."""
        self.nova.hosts_of['a'].add('h2')
        self.nova.nodes['n2'] = 'h2'
        self.placement.create('n2')
        self.nova.silent = {'h1'}

        def interfere(provider):
            self.placement.write(provider, ())
            if self.log.count(('PUT', 'n2')) == provider_writes.ROUNDS - 2:
                self.nova.silent = set()

        self.placement.before_put = interfere
        row = self.hand_over('h2', ['n1', 'n2'])
        outcome = self.drain()
        self.assertEqual(set(), reconciler.waiting(outcome))
        # A conflict would count as one that no retry resolves.
        self.assertIs(exceptions.Retriable,
                      type(outcome.unfinished[row.dirty]))
        self.assertEqual('nova reported it only in the last attempt',
                         str(outcome.failed[Subject(PROVIDER, 'n1')]))
        self.assertIsNone(self.journal.rows.all()[0].mirrored_at)


class TestDeleted(doubles.TestCase):

    def setUp(self):
        super().setUp()
        self.placement.create('n1', 'gone', 'foreign')
        self.placement.create('shared-storage', 'gone')
        self.placement.create('n2', 'foreign')

    def remove(self, **kwargs):
        return provider_writes.remove(
            self.reconciler, 'gone', provider_writes.Mode(**kwargs))

    def test_aggregate_that_nova_has_is_kept(self):
        """A deletion that nova refused removes nothing."""
        self.nova.hosts_of = {'gone': {'h1'}}
        outcome = self.remove()
        self.assertEqual({'gone', 'foreign'}, self.placement.aggregates['n1'])
        self.assertEqual(({}, []), (outcome.failed, outcome.changes))

    def test_read_of_placement_comes_before_truth_and_write(self):
        """Rule 4: also for providers that are no compute nodes."""
        self.remove()
        self.assertEqual(
            [('MEMBERS', 'gone'), ('GET', 'n1'), ('GET', 'shared-storage'),
             ('TRUTH', ''), ('PUT', 'n1'), ('PUT', 'shared-storage')],
            self.log)

    def test_failed_search_is_a_failure(self):
        """Without a response, providers may still have the aggregate."""
        error = exceptions.MalformedAnswer('HTML')
        self.placement.broken['MEMBERS', 'gone'] = error
        self.assertEqual(
            {Subject(AGGREGATE, 'gone'): error}, self.remove().failed)

    def test_provider_that_vanishes_meanwhile_is_no_failure(self):
        """A deleted provider cannot have the aggregate."""
        self.placement.before_put = (
            lambda provider: self.placement.aggregates.pop(provider, None))
        outcome = self.remove()
        self.assertEqual(({}, set()), (outcome.failed, outcome.pending))

    def test_process_that_stops_leaves_the_rest(self):
        """The rest is reported as not done, without any request."""
        stopping = self.new_reconciler(
            for_each=workers.in_threads(stopping=lambda: True))
        failed = provider_writes.remove(
            stopping, 'gone', provider_writes.Mode()).failed
        self.assertIsInstance(
            failed[Subject(AGGREGATE, 'gone')], exceptions.Stopped)
        self.assertEqual([], self.log)


class TestOutcome(doubles.TestCase):

    def test_one_error_of_many_is_over_when_all_are_right(self):
        """A provider stays unwritten until it is known to be in sync."""
        error = exceptions.ServiceUnreachable('refused')
        first, second = journal.Dirty('h1'), journal.Dirty('h2')
        one, other = Subject(PROVIDER, 'n1'), Subject(PROVIDER, 'n2')
        outcome = Outcome(
            failed={one: error, other: error}, unwritten={one, other},
            hosts={first: error, second: error})
        self.assertEqual({first: error, second: error}, outcome.unfinished)
        outcome.merge(Outcome(done={'n1'}, hosts={first: None}))
        self.assertEqual({other: error}, outcome.failed)
        self.assertEqual({other}, outcome.unwritten)
        self.assertEqual({second: error}, outcome.unfinished)
        outcome.merge(Outcome(done={'n2'}, hosts={second: None}))
        self.assertEqual(({}, set(), {}), (
            outcome.failed, outcome.unwritten, outcome.unfinished))

    def test_sum_keeps_everything(self):
        """The sum has everything that both outcomes have."""
        error = exceptions.ServiceFailed('503')
        subject = Subject(PROVIDER, 'n1')
        other = Outcome(
            changes=[outcome.Change('n1', ('a',))],
            kept={'n1': frozenset({'foreign'})}, done={'n2'}, missing={'n3'},
            pending={'n3'}, failed={subject: error},
            unwritten={subject},
            hosts={journal.Dirty('h1'): error})
        one = Outcome()
        one.merge(other)
        self.assertEqual(other, one)

    def test_subjects_are_shown_as_text(self):
        """A provider, a host and an aggregate of the same name differ."""
        subjects = [Subject(kind, 'x') for kind in (PROVIDER, HOST, AGGREGATE)]
        self.assertEqual(
            ['provider x', 'host x', 'deleted aggregate x', 'journal'],
            [str(one) for one in (*subjects, outcome.JOURNAL)])
        self.assertEqual(3, len(set(subjects)))
