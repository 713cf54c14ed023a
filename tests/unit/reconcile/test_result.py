# SPDX-License-Identifier: Apache-2.0
"""The judgement of a full sync, its summary and its problems."""

import dataclasses

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror import source
from tests.unit import doubles

STOPPED = exceptions.Stopped('stopping')
FAILED = exceptions.ServiceFailed('500')
REFUSED = exceptions.RemovalsRefused('too many')


def association(number, state):
    return associations.Association(
        ('h%d' % number,), 'n%d' % number, 'zone', 'a',
        associations.State(state))


NODELESS = source.Nova({'a': 'zone'}, {'h1': frozenset('a')}, {})
MAPPED = source.Nova({'a': 'zone'}, {'h1': frozenset('a')}, {'n1': 'h1'})
UNMAPPED = dataclasses.replace(MAPPED, unmapped=frozenset({'h1'}))


def judged(*states, write=True, failed=(), unwritten=(), unfinished=(),
           nova=source.Nova({}, {}, {}), kind=outcome.PROVIDER, **options):
    providers = {uuid: outcome.Subject(kind, uuid)
                 for uuid in (*failed, *unwritten)}
    hosts = {host: outcome.Subject(outcome.HOST, host) for host in unfinished}
    done = outcome.Outcome(
        failed={**dict.fromkeys(providers.values(), FAILED),
                **dict.fromkeys(hosts.values(), STOPPED)},
        unwritten={providers[uuid] for uuid in unwritten},
        hosts={journal.Dirty(host): STOPPED for host in hosts})
    return result.Result(
        done, nova, [association(number, state)
                     for number, state in enumerate(states)],
        request=result.Request(write=write), **options)


class TestSummary(testtools.TestCase):

    def summary(self, *states, **options):
        return judged(*states, **options).summary()

    def test_changes(self):
        """Only those that were made, or would be."""
        self.assertEqual('1 association added, 2 removed.',
                         self.summary('missing', 'stale', 'stale'))
        self.assertEqual('1 association removed.', self.summary('stale'))
        self.assertEqual(
            'Placement differs from nova: 2 associations to add.',
            self.summary('missing', 'missing', write=False))

    def test_nothing_to_change(self):
        """What was compared is counted, that of the selection only."""
        nova = source.Nova(
            {'a': 'zone', 'b': 'rack'}, {}, {'n1': 'h1', 'n2': 'h2'})
        for request, said in (
                ({'write': False}, '2 aggregates, 2 compute nodes'),
                ({'hosts': frozenset({'h1'}), 'aggregates': frozenset('b')},
                 '1 aggregate, 1 compute node')):
            self.assertEqual(
                'Placement matches nova: ' + said, result.Result(
                    outcome.Outcome(), nova,
                    request=result.Request(**request)).summary())

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
            'stale_kept', refused=REFUSED))

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


class TestJudgement(testtools.TestCase):

    def judgement(self, *states, **options):
        return judged(*states, **options).judgement

    def test_success(self):
        """A provider that is not there yet can be in no aggregate."""
        self.assertEqual('success', self.judgement('missing', 'pending'))

    def test_partial_and_failure(self):
        """A failure or a refusal leaves something to do."""
        for options in ({'failed': ['n1']}, {'nova': NODELESS},
                        {'nova': UNMAPPED}, {'refused': REFUSED}):
            self.assertEqual('partial', self.judgement(**options))
        self.assertEqual('failure', self.judgement(not_compared=FAILED))


class TestStatus(testtools.TestCase):

    def test_lowest_that_applies(self):
        """Of all problems and, in a dry run, the drift."""
        down = source.Nova({}, {}, {}, cells_down={'cell9': doubles.SILENT})
        for status, states, options in (
                (0, ['missing', 'stale', 'stale_kept'], {}),
                (0, ['foreign_provider'], {'write': False}),
                (8, ['stale_kept'], {'refused': REFUSED}),
                (7, ['stale', 'stale_kept'], {
                    'write': False, 'refused': REFUSED}),
                (6, ['missing', 'pending'], {'write': False}),
                (5, ['pending'], {'nova': NODELESS}),
                (5, ['missing'], {'nova': down, 'write': False}),
                (4, ['pending'], {'nova': UNMAPPED}),
                (4, [], {'nova': dataclasses.replace(
                    NODELESS, unmapped=UNMAPPED.unmapped)}),
                (3, [], {'unwritten': ['n1'], 'nova': UNMAPPED}),
                (2, [], {'unwritten': ['n1'], 'failed': ['n2']}),
                (2, [], {'not_compared': FAILED})):
            self.assertEqual(
                status, judged(*states, **options).status(), options)

    def test_problems(self):
        """Each has one next step, its own or that of the failure."""
        for faulty, (text, step, failure) in (
                (judged('pending'), (
                    'Host h0: compute node n0 has no resource provider yet',
                    result.NO_PROVIDER, None)),
                (judged(nova=NODELESS), (
                    'Host h1: nova does not find its compute node', '', None)),
                (judged(nova=dataclasses.replace(
                    UNMAPPED, obstacles={'h1': ('no mapping', 'map it')})), (
                        'Host h1: no mapping', 'map it', None)),
                (judged(failed=['n1'], nova=MAPPED), (
                    'Host h1 (provider n1) is not mirrored', '',
                    FAILED.failure)),
                (judged(failed=['n1'], nova=MAPPED, kind=outcome.FOREIGN), (
                    'Host h1: the foreign aggregates of provider n1 are '
                    'unknown', '', FAILED.failure)),
                (judged(nova=dataclasses.replace(
                    MAPPED, cells_down={'cell9': doubles.SILENT})), (
                    '', '', dataclasses.replace(
                        doubles.SILENT,
                        consequence='its hosts are unchanged'))),
                (judged(refused=REFUSED), (
                    'Removals refused', '', REFUSED.failure))):
            problem, = faulty.problems
            self.assertEqual((text, step, failure), (
                problem.text, problem.step, problem.failure))

    def test_failures_of_a_dry_run(self):
        """It mirrors nothing; what it could not read is not compared."""
        for unwritten, text in ((), 'compared'), (('n1',), 'mirrored'):
            dry_run = judged(failed=['n1'], unwritten=unwritten, nova=MAPPED,
                             write=False)
            self.assertEqual(['Host h1 (provider n1) is not %s' % text], [
                problem.text for problem in dry_run.problems])
