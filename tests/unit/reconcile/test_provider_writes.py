# SPDX-License-Identifier: Apache-2.0
"""Converging hosts and deleted aggregates, by the rules of the protocol."""

import collections
import functools
import logging
import math

import fixtures
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import transport
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror.reconcile import reconciler
from tests.unit import doubles

AGGREGATE, HOST, PROVIDER = outcome.AGGREGATE, outcome.HOST, outcome.PROVIDER
Subject = outcome.Subject
Outcome = outcome.Outcome
N1 = Subject(PROVIDER, 'n1')
REPEATED = [('GET', 'n1'), ('TRUTH', ''), ('PUT', 'n1')]
"""Rule 4: the order of the requests of an attempt."""
LONG = 60.0


class ConvergeTest(doubles.TestCase):

    def setUp(self):
        super().setUp()
        self.nova.hosts_of = {'a': {'h1'}, 'b': set()}
        self.add('n1')

    def add(self, *nodes, host='h1'):
        for node in nodes:
            self.nova.nodes[node] = host
            self.placement.create(node)

    def interfere_once(self, interfere):
        """Do something just before the next PUT."""
        def before(provider):
            self.placement.before_put = lambda provider: None
            interfere(provider)

        self.placement.before_put = before

    def replace_always(self, provider):
        """Write as a client does that never stops writing."""
        self.placement.write(provider, {'foreign'})

    def assert_no_row(self):
        self.assertEqual([], self.journal.rows.all())


class TestHosts(ConvergeTest):

    def setUp(self):
        super().setUp()
        self.written = self.useFixture(fixtures.FakeLogger(
            'nova_aggregate_mirror', level=logging.INFO))

    def converge(self, *hosts, **kwargs):
        return self.reconciler.converge(
            [journal.Dirty(host) for host in hosts],
            provider_writes.Mode(**kwargs))

    def test_log_names_host_and_aggregates(self):
        """Each with its UUID; a deleted aggregate has no name.

        A change that is not made is not logged. Of a provider without a
        compute node, nova does not say on which host it was.
        """
        self.journal.ledger.remember(['deleted'])
        self.placement.create('n1', 'b', 'deleted', 'foreign')
        for write in False, True, True:
            self.converge('h1', write=write)
        self.nova.nodes = {}
        self.hand_over('h1', ['n1'])
        self.drain()
        self.assertEqual(
            'Host h1 (provider n1): added name of a (a); removed name of b '
            '(b), deleted\nProvider n1: removed name of a (a)\n',
            self.written.output)

    def test_conflict_starts_again_at_the_read(self):
        """Rule 4: after a 409 the provider and the truth are read again."""
        def interfere(provider):
            self.placement.write('n1', {'foreign'})
            self.nova.hosts_of['b'].add('h1')

        self.interfere_once(interfere)
        self.assertEqual(1, self.converge('h1').conflicts)
        self.assertEqual({'a', 'b', 'foreign'},
                         self.placement.aggregates['n1'])
        self.assertEqual(REPEATED, self.log[-3:])

    def test_endless_conflicts(self):
        """A client that never stops writing does not block the converge.

        Three providers are tried in each round, more only once more.
        """
        self.placement.before_put = self.replace_always
        for nodes, puts in ((), 5), (('n2', 'n3'), 5), (('n4',), 2):
            self.add(*nodes)
            self.log.clear()
            dirty = journal.Dirty('h1', frozenset(self.nova.nodes))
            outcome = self.reconciler.converge([dirty], provider_writes.Mode())
            self.assertEqual(puts, self.log.count(('PUT', 'n1')))
            self.assertEqual(puts * len(dirty.nodes), outcome.conflicts)
            self.assertIsInstance(
                outcome.failed[N1], exceptions.GenerationConflict)
            self.assertIn(dirty, outcome.unfinished)
            self.assertIn(N1, outcome.unwritten)

    def test_endless_conflicts_of_many_do_not_delay_others(self):
        """Rule 14: a retry that helps none of them is the last one."""
        *nodes, healthy = ['m%02d' % number for number in range(12)]
        for node in (*nodes, healthy):
            self.add(node, host='of-' + node)
            self.nova.hosts_of['a'].add('of-' + node)
        self.placement.before_put = lambda provider: (
            provider == healthy or self.replace_always(provider))
        requests = [journal.Dirty('of-' + node, frozenset({node}))
                    for node in (*nodes, healthy)]
        outcome = self.new_reconciler(batch=6).converge(requests)
        self.assertEqual({Subject(PROVIDER, node) for node in nodes},
                         {*outcome.failed})
        self.assertEqual({healthy}, outcome.done)
        # The first batch is retried once; the second one is not.
        self.assertEqual(2 * 6 + 6, len(self.sent('PUT')))

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
            self.assert_no_row()

    def test_added_aggregate_is_in_the_ledger_before_the_write(self):
        """Rule 8: also if another provider is in it already."""
        self.nova.hosts_of['a'].add('h2')
        self.add('n2', host='h2')
        self.placement.write('n2', 'a')
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
            self.interfere_once(
                functools.partial(self.placement.write, aggregates=aggregates))
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
        self.assertEqual({'n1'}, self.drain().pending)
        self.assert_no_row()

    def test_write_that_a_sick_backend_answered(self):
        """It begins again at its GET, at once; only the second one counts.

        That one has all the time that is left.
        """
        attempts, write = [], self.placement.put

        def put(*arguments):
            attempts.append(transport.ATTEMPT.get())
            write(*arguments)

        self.placement.put = put
        for error in (exceptions.ServiceFailed('503'),
                      exceptions.MalformedAnswer('HTML')):
            self.placement.create('n1')
            self.placement.broken = doubles.Once({('PUT', 'n1'): error})
            self.hand_over('h1', ['n1'])
            self.log.clear()
            outcome = self.drain()
            self.assertEqual(REPEATED * 2, self.log)
            self.assertEqual({'a'}, self.placement.aggregates['n1'])
            self.assertEqual(({}, set()), (outcome.failed, outcome.unwritten))
            self.assert_no_row()
        self.assertEqual([0, math.inf] * 2, attempts)

    def test_write_that_became_unnecessary(self):
        """Rule 5: it is sent all the same, as the first may land later."""
        self.interfere_once(
            lambda _provider: self.nova.hosts_of['a'].discard('h1'))
        self.placement.broken = doubles.Once(
            {('PUT', 'n1'): exceptions.ServiceFailed('504')})
        generation = self.placement.generations['n1']
        outcome = self.converge('h1')
        self.assertEqual(2, self.log.count(('PUT', 'n1')))
        self.assertLess(generation, self.placement.generations['n1'])
        self.assertEqual(({}, set()), (
            outcome.failed, self.placement.aggregates['n1']))

    def test_write_that_fails_again(self):
        """Rule 6: it is a failure, and is not repeated any more.

        Nor is one without an answer, which may have succeeded.
        """
        self.hand_over('h1', ['n1'])
        for error, puts in ((exceptions.ServiceFailed('503'), 2),
                            (doubles.NO_ANSWER, 1)):
            self.placement.broken['PUT', 'n1'] = error
            self.log.clear()
            outcome = self.drain()
            self.assertEqual(puts, self.log.count(('PUT', 'n1')))
            self.assertEqual(({N1: error}, {N1}),
                             (outcome.failed, outcome.unwritten))
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
        self.add('n2')
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
        self.add('n2')
        self.placement.broken = doubles.Once(
            {('GET', 'n1'): doubles.NO_ANSWER})
        self.hand_over('h1', ['n1', 'n2'])
        self.assertEqual({}, self.drain().failed)
        self.assertEqual({'n1': {'a'}, 'n2': {'a'}}, self.placement.aggregates)
        self.assert_no_row()

    def test_nova_that_cannot_be_read_changes_nothing(self):
        """A silent cell is not an empty cell; without nova there is none.

        Nodes keep their associations, and the row stays.
        """
        self.placement.create('n1', 'b')
        row = self.hand_over('h1', ['n1'])
        for silent, broken, kind, cells in (
                ({'h1'}, None, exceptions.CellUnavailable, {'cell9'}),
                (set(), exceptions.NovaUnavailable('refused'),
                 exceptions.NovaUnavailable, set())):
            self.nova.silent, self.nova.broken = silent, broken
            outcome = self.drain()
            self.assertEqual({'b'}, self.placement.aggregates['n1'])
            error = outcome.unfinished[row.dirty]
            self.assertIs(error, outcome.failed[Subject(HOST, 'h1')])
            self.assertIsInstance(error, kind)
            self.assertEqual(cells, error.cells)
            self.assertEqual(1, len(self.journal.rows.all()))

    def test_without_the_journal_a_host_is_still_mirrored(self):
        """Without the ledger, nova's current aggregates are still known."""
        doubles.hide_journal(self.conf)
        self.placement.create('n1', 'b', 'deleted')
        outcome = self.converge('h1')
        self.assertEqual({'a', 'deleted'}, self.placement.aggregates['n1'])
        error, = outcome.unfinished.values()
        self.assertIsInstance(error, exceptions.JournalUnavailable)
        # Whether it is stale or foreign is not known.
        self.assertEqual({}, outcome.kept)

    def test_operations_of_one_request(self):
        """What one of them may still do does not hide how another failed."""
        self.hand_over('h1', ['n1'])
        dirty = self.record('h1', ['n1']).dirty
        self.placement.create('n1', 'a')
        self.placement.broken['PUT', 'n1'] = exceptions.ServiceFailed('500')
        outcome = self.drain()
        self.assertEqual([dirty], list(outcome.unfinished))
        self.assertEqual([None, None], [
            row.mirrored_at for row in self.journal.rows.all()])

    def lose(self, method):
        """Let the journal fail in a method that writes its rows."""
        return fixtures.MockPatchObject(
            self.journal.rows, method,
            side_effect=exceptions.JournalUnavailable('lost'))

    def test_row_that_cannot_be_written_is_a_failure(self):
        """Handed over or not; changes in placement are still reported."""
        for write, method in ((self.hand_over, 'close'),
                              (self.record, 'set_mirrored')):
            write('h1', ['n1'])
            row, = self.journal.rows.all()
            self.placement.create('n1')
            with self.lose(method):
                drained = reconciler.drain(self.reconciler, [row])
            self.assertEqual([outcome.Change('n1', ('a',))], drained.changes)
            self.assertEqual([outcome.JOURNAL], list(drained.failed))
            self.assertIs(drained.failed[outcome.JOURNAL],
                          drained.unfinished.get(row.dirty))
            self.journal.rows.close([row.id])

    def test_row_in_sync_whose_time_cannot_be_written(self):
        """It stays mirrored: the journal failed, not the host."""
        self.record('h1', ['n1'])
        self.drain()
        before = self.journal.rows.all()
        with self.lose('set_mirrored'):
            self.assertEqual([outcome.JOURNAL], list(self.drain().failed))
        self.assertEqual(before, self.journal.rows.all())

    def hand_over_silent(self):
        """Hand over a row of which a silent cell has a compute node."""
        self.nova.hosts_of['a'].add('h2')
        self.add('n2', host='h2')
        self.nova.silent = {'h1'}
        return self.hand_over('h2', ['n1', 'n2'])

    def test_cell_that_answers_in_a_later_round(self):
        """Its node is converged as well; rule 4: after its own GET."""
        self.hand_over_silent()

        def answer(provider):
            self.placement.write(provider, ())
            self.nova.silent = set()

        self.interfere_once(answer)
        self.assertEqual({}, self.drain().unfinished)
        self.assertEqual({'n1': {'a'}, 'n2': {'a'}}, self.placement.aggregates)
        self.assert_no_row()
        self.assertEqual(REPEATED, self.log[-3:])

    def test_cell_that_answers_in_the_last_round(self):
        """Its node is not converged, and the row does not wait for cells."""
        row = self.hand_over_silent()

        def interfere(provider):
            self.placement.write(provider, ())
            if self.log.count(('PUT', 'n2')) == provider_writes.ROUNDS - 2:
                self.nova.silent = set()

        self.placement.before_put = interfere
        outcome = self.drain()
        self.assertEqual(set(), reconciler.waiting(outcome))
        # A conflict would count as one that no retry resolves.
        self.assertIs(exceptions.Retriable,
                      type(outcome.unfinished[row.dirty]))
        self.assertEqual('nova reported it only in the last attempt',
                         str(outcome.failed[N1]))
        self.assertIsNone(self.journal.rows.all()[0].mirrored_at)


class TestRequests(ConvergeTest):
    """Which providers are asked again, and how long each is waited for."""

    def converge(self, **mode):
        """Converge; return the outcome, and the waits for each provider.

        A wait tells whether a request had the long patience.
        """
        ask, waits = self.placement._ask, collections.defaultdict(list)

        def note(method, what):
            if method == 'GET':
                waits[what].append(deadline.remaining() > LONG / 2)
            ask(method, what)

        self.placement._ask = note
        dirty = journal.Dirty('h1', frozenset(self.nova.nodes))
        return self.reconciler.converge(
            [dirty], provider_writes.Mode(**mode)), waits

    def test_single_provider(self):
        """It delays no other."""
        self.assertEqual({'n1': [True]}, self.converge(patience=LONG)[1])

    def test_single_provider_of_a_request(self):
        """It is asked once more if all of placement is slow."""
        self.placement.broken = doubles.Once(dict.fromkeys(
            [('GET', 'n1'), ('PROBE', '')], doubles.NO_ANSWER))
        self.assertEqual({'n1'}, self.converge()[0].done)

    def test_providers_that_hang(self):
        """All of them are asked with patience, once the others are written."""
        self.add('n2', 'n3')
        self.placement.fail('GET', 'n1', 'n2')
        answer, waits = self.converge(patience=LONG)
        self.assertEqual(({'n3'}, None), (answer.done, answer.outage))
        self.assertEqual({'n1': [False, True], 'n2': [False, True],
                          'n3': [False]}, waits)

    def test_provider_that_fails_at_once(self):
        """Patience would not help it. A missing one is reported, too."""
        self.add('n2', 'n3')
        self.nova.nodes['n0'] = 'h1'
        error = exceptions.ServiceFailed('503')
        self.placement.fail('GET', 'n1', error=error)
        self.placement.fail('GET', 'n2')
        answer, waits = self.converge(patience=LONG)
        self.assertEqual(({'n0'}, error), (answer.missing, answer.failed[N1]))
        self.assertEqual(([False], [False, True]), (waits['n1'], waits['n2']))


class TestRowLocks(testtools.TestCase):

    def test_more_locked_rows_than_a_step_waits_for(self):
        """It waits a few times, and then writes no row of any statement."""
        locks, waits = reconciler.RowLocks(), []

        def wait(ids):
            waits.append(ids)
            raise exceptions.JournalLocked('locked')

        first, later = ['a', 'b', 'c', 'd'], ['e', 'f']
        locks.write(wait, first)
        self.assertEqual([first, ['a'], ['b']], waits)
        locks.write(wait, later)
        self.assertEqual(reconciler.MOST_TIMEOUTS, len(waits))
        self.assertEqual({*first, *later}, locks.locked.keys())
        self.assertEqual({'a', 'b'}, locks.waited)


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


class TestOutcome(testtools.TestCase):

    def test_one_error_of_many_is_over_when_all_are_right(self):
        """A provider stays unwritten until it is known to be in sync."""
        first, second = journal.Dirty('h1'), journal.Dirty('h2')
        one, other = N1, Subject(PROVIDER, 'n2')
        error = exceptions.ServiceUnreachable('refused')
        outcome = Outcome(
            failed={one: error, other: error}, unwritten={one, other},
            hosts={first: error, second: error})
        for later, failed, unfinished in (
                (Outcome(), [one, other], [first, second]),
                (Outcome(done={'n1'}, hosts={first: None}), [other], [second]),
                (Outcome(done={'n2'}, hosts={second: None}), [], [])):
            outcome.merge(later)
            self.assertEqual(
                (dict.fromkeys(failed, error), {*failed},
                 dict.fromkeys(unfinished, error)),
                (outcome.failed, outcome.unwritten, outcome.unfinished))

    def test_sum_keeps_everything(self):
        """The sum has everything that both outcomes have."""
        error = exceptions.ServiceFailed('503')
        other = Outcome(
            changes=[outcome.Change('n1', ('a',))],
            kept={'n1': frozenset({'foreign'})}, done={'n2'}, missing={'n3'},
            pending={'n3'}, failed={N1: error}, unwritten={N1},
            hosts={journal.Dirty('h1'): error})
        one = Outcome()
        one.merge(other)
        self.assertEqual(other, one)

    def test_subjects_are_shown_as_text(self):
        """A provider, a host and an aggregate of the same name differ."""
        subjects = [Subject(kind, 'x') for kind in (PROVIDER, HOST, AGGREGATE)]
        self.assertEqual(
            ['provider x', 'host x', 'deleted aggregate x', 'journal'],
            [str(subject) for subject in (*subjects, outcome.JOURNAL)])
