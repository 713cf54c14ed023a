# SPDX-License-Identifier: Apache-2.0
"""The result of a full sync: rows, summary, judgement."""

import testtools

from nova_aggregate_mirror.console import sync_result
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror import source

STOPPED = exceptions.Stopped('stopping')
FAILED = exceptions.ServiceFailed('500')


def association(number, state):
    return associations.Association(
        ('h%d' % number,), 'n%d' % number, 'zone', 'a',
        associations.State(state))


NODELESS = source.Nova({'a': 'zone'}, {'h1': frozenset('a')}, {})
UNMAPPED = source.Nova({'a': 'zone'}, {'h1': frozenset('a')}, {'n1': 'h1'},
                       unmapped=frozenset({'h1'}))


def result(*states, write=True, failed=(), unfinished=(),
           nova=source.Nova({}, {}, {}), **options):
    done = outcome.Outcome(
        failed={outcome.Subject(outcome.PROVIDER, uuid): FAILED
                for uuid in failed},
        unfinished={journal.Dirty(host): STOPPED for host in unfinished})
    return sync_result.Result(
        full_sync.SyncOutcome(
            done, nova, [
                association(number, state)
                for number, state in enumerate(states)], **options),
        full_sync.Request(write=write))


class TestSummary(testtools.TestCase):

    def summary(self, *states, **options):
        return result(*states, **options).summary()

    def test_changes(self):
        """Only those that were made, or would be."""
        self.assertEqual('1 association added, 2 removed.',
                         self.summary('missing', 'stale', 'stale'))
        self.assertEqual('1 association removed.', self.summary('stale'))
        self.assertEqual('2 associations to add.', self.summary(
            'missing', 'missing', write=False))

    def test_nothing_to_change(self):
        """What was compared is counted, that of the selection only."""
        nova = source.Nova(
            {'a': 'zone', 'b': 'rack'}, {}, {'n1': 'h1', 'n2': 'h2'})
        for request, said in (
                ({'write': False}, '2 aggregates, 2 compute nodes'),
                ({'hosts': frozenset({'h1'}), 'aggregates': frozenset('b')},
                 '1 aggregate, 1 compute node')):
            self.assertEqual(
                'Placement matches nova: ' + said, sync_result.Result(
                    full_sync.SyncOutcome(outcome.Outcome(), nova, []),
                    full_sync.Request(**request)).summary())

    def test_failures(self):
        """Placement may not match nova then."""
        for write, said in (True, 'No association was changed.'), (
                False, 'No association would be changed.'):
            self.assertEqual(said, self.summary(failed=['n1'], write=write))
        self.assertEqual('1 association removed.',
                         self.summary('stale', failed=['n2', 'n3']))
        for nova in NODELESS, UNMAPPED:
            self.assertEqual('No association was changed.',
                             self.summary(nova=nova))
        self.assertEqual('', self.summary(not_compared=FAILED))

    def test_pending(self):
        """The rest of placement matches, and the exit status is another."""
        nova = source.Nova({'a': 'zone'}, {}, {'n0': 'h0', 'n1': 'h1'})
        self.assertEqual(
            'Placement matches nova: 1 aggregate, 2 compute nodes, 1 of them '
            'without a resource provider yet',
            self.summary('pending', nova=nova))

    def test_stale_associations_that_are_kept(self):
        self.assertEqual(
            '1 stale association kept: --prune removes stale associations.',
            self.summary('stale_kept'))

    def test_removals_that_are_refused(self):
        """They are a failure, and not listed as merely kept."""
        self.assertEqual('No association was changed.', self.summary(
            'stale_kept', refused=exceptions.RemovalsRefused('too many')))

    def test_interruption(self):
        """With what is left, in singular and plural."""
        again = ' not reconciled: run this command again.'
        self.assertEqual('Interrupted; 1 host or deleted aggregate' + again,
                         self.summary(unfinished=['h1']))
        self.assertEqual('Interrupted; 2 hosts or deleted aggregates' + again,
                         self.summary(unfinished=['h1', 'h2']))
        self.assertEqual(
            'Interrupted before the comparison: run this command again.',
            self.summary(not_compared=STOPPED))


class TestRows(testtools.TestCase):

    def test_actions(self):
        """They are the same in a dry run; what nova has to do has none."""
        for write in True, False:
            self.assertEqual(
                ['add', 'remove', 'stale_kept', 'foreign_aggregate',
                 'foreign_provider', 'absent'],
                [row[0] for row in result(
                    'absent', 'foreign_provider', 'foreign_aggregate',
                    'stale_kept', 'stale', 'missing', 'pending', 'unknown',
                    'disputed', write=write).rows()])

    def test_table(self):
        """Names come first; an aggregate without a name has its UUID."""
        self.assertEqual(
            [('add', ('h', 'n'), 'zone'),
             ('absent', ('n', 'aggregate a'), '')],
            sync_result.in_table([('add', 'h', 'n', 'zone', 'a'),
                                  ('absent', '', 'n', '', 'a')]))


class TestJudgement(testtools.TestCase):

    def judgement(self, *states, **options):
        return result(*states, **options).judgement

    def test_success(self):
        """A provider that is not there yet can be in no aggregate."""
        self.assertEqual('success', self.judgement('missing', 'pending'))

    def test_partial(self):
        """A failure or a refusal leaves something to do."""
        self.assertEqual('partial', self.judgement(failed=['n1']))
        for nova in NODELESS, UNMAPPED:
            self.assertEqual('partial', self.judgement(nova=nova))
        self.assertEqual('partial', self.judgement(
            refused=exceptions.RemovalsRefused('too many')))

    def test_failure(self):
        self.assertEqual('failure', self.judgement(not_compared=FAILED))
