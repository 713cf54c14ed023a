# SPDX-License-Identifier: Apache-2.0
"""The judgement of a full sync, its summary, problems and history."""

import dataclasses
from unittest import mock

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.reconcile import sync_history
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

    def test_figures(self):
        """Only changes that were made, or would be, or what keeps them.

        A failure is none, and a refusal is not listed as merely kept. An
        interruption has what is left.
        """
        differs = 'Placement differs from nova: 2 associations to add.'
        unchanged = 'No association was changed.'
        again = ' not reconciled: run this command again.'
        for states, options, said in (
                (['missing', 'stale', 'stale'], {},
                 '1 association added, 2 removed.'),
                (['stale'], {}, '1 association removed.'),
                (['missing', 'missing'], {'write': False}, differs),
                ([], {'failed': ['n1']}, unchanged),
                ([], {'failed': ['n1'], 'write': False},
                 'No association would be changed.'),
                (['stale'], {'failed': ['n2', 'n3']},
                 '1 association removed.'),
                ([], {'nova': NODELESS}, unchanged),
                ([], {'nova': UNMAPPED}, unchanged),
                ([], {'not_compared': FAILED}, ''),
                # The rest matches, and the exit status is another.
                (['pending'], {'nova': source.Nova(
                    {'a': 'zone'}, {}, {'n0': 'h0', 'n1': 'h1'})},
                 'Placement matches nova: 1 aggregate, 2 compute nodes, 1 of '
                 'them without a resource provider yet'),
                (['stale_kept'], {}, '1 stale association kept: --prune '
                 'removes stale associations.'),
                (['stale_kept'], {'refused': REFUSED}, unchanged),
                ([], {'unfinished': ['h1']},
                 'Interrupted; 1 host or deleted aggregate' + again),
                ([], {'unfinished': ['h1', 'h2']},
                 'Interrupted; 2 hosts or deleted aggregates' + again),
                ([], {'not_compared': STOPPED}, 'Interrupted before the '
                 'comparison: run this command again.')):
            self.assertEqual(said, judged(*states, **options).summary())

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


class TestJudgement(testtools.TestCase):

    def test_each(self):
        """A provider that is not there yet can be in no aggregate.

        A failure or a refusal leaves something to do.
        """
        for expected, states, options in (
                ('success', ['missing', 'pending'], {}),
                ('partial', [], {'failed': ['n1']}),
                ('partial', [], {'nova': NODELESS}),
                ('partial', [], {'nova': UNMAPPED}),
                ('partial', [], {'refused': REFUSED}),
                ('failure', [], {'not_compared': FAILED})):
            self.assertEqual(expected, judged(*states, **options).judgement)


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
        """Each has one next step, its own or that of the failure.

        A dry run mirrors nothing; what it could not read is not compared.
        """
        host = 'Host h1 (provider n1) is not '
        for faulty, text, step, failure in (
                (judged('pending'),
                 'Host h0: compute node n0 has no resource provider yet',
                 result.NO_PROVIDER, None),
                (judged(nova=NODELESS),
                 'Host h1: nova does not find its compute node', '', None),
                (judged(nova=dataclasses.replace(
                    UNMAPPED, obstacles={'h1': ('no mapping', 'map it')})),
                 'Host h1: no mapping', 'map it', None),
                (judged(failed=['n1'], nova=MAPPED), host + 'mirrored', '',
                 FAILED.failure),
                (judged(failed=['n1'], nova=MAPPED, write=False),
                 host + 'compared', '', FAILED.failure),
                (judged(unwritten=['n1'], nova=MAPPED, write=False),
                 host + 'mirrored', '', FAILED.failure),
                (judged(failed=['n1'], nova=MAPPED, kind=outcome.FOREIGN),
                 'Host h1: the foreign aggregates of provider n1 are unknown',
                 '', FAILED.failure),
                (judged(nova=dataclasses.replace(
                    MAPPED, cells_down={'cell9': doubles.SILENT})),
                 '', '', dataclasses.replace(
                     doubles.SILENT, consequence='its hosts are unchanged')),
                (judged(refused=REFUSED),
                 'Removals refused', '', REFUSED.failure)):
            problem, = faulty.problems
            self.assertEqual((text, step, failure), (
                problem.text, problem.step, problem.failure))


class TestLines(testtools.TestCase):

    def test_one_step(self):
        """It is that of the failure, or of the problem."""
        failure = exceptions.ServiceFailed(
            'answered 500', 'placement', step='see its log').failure
        self.assertEqual(
            ['Host h1 is not mirrored: placement answered 500: see its log',
             'Host h2 has no host mapping: map it'],
            problems.lines([
                problems.Problem(
                    'h1', 'Host h1 is not mirrored', failure=failure),
                problems.Problem('h2', 'Host h2 has no host mapping', 'map it')
            ], ''))

    def test_many_with_the_same_failure(self):
        """The first of them are listed; a command lists all."""
        same = problems.Problem('h', 'a', failure=FAILED.failure)
        texts = problems.lines(12 * [same], '"-f json"')
        self.assertEqual([str(same)] * 10, texts[:-1])
        self.assertEqual(
            '... and 2 more of the same kind; "-f json" lists all', texts[-1])


class TestHistory(testtools.TestCase):

    def entry(self, sync, interruption=0, **request):
        """Return the entry of a sync in the history."""
        with mock.patch.object(full_syncs, 'add', autospec=True) as add:
            sync_history.note(
                mock.sentinel.database, 'agent', 1.0, dataclasses.replace(
                    sync, request=result.Request(**request),
                    interruption=interruption))
        [call] = add.mock_calls
        return call.args[1]

    def test_whether_nova_was_compared(self):
        """In a full sync, even if it could not read a provider."""
        for compared, arguments in (
                (True, {}), (False, {'interruption': 130}),
                (False, {'hosts': frozenset({'h1'})}),
                (False, {'write': False, 'observes': True})):
            self.assertIs(compared, self.entry(
                judged(failed=['n1']), **arguments).compared)
        self.assertFalse(self.entry(full_sync.without_comparison(
            FAILED, result.Request())).compared)

    def test_removals(self):
        """They are listed in full: nothing else has them afterwards.

        What is only observed is cut: a command lists all of it.
        """
        count = sync_history.MOST + 1
        stale = ['stale'] * count
        for listed, request in (
                (count, {}),
                (sync_history.MOST, {'write': False, 'observes': True})):
            sync = self.entry(judged(*stale), **request)
            self.assertEqual(
                (count, listed),
                (sync.removed, len(sync.removals.splitlines())))
