# SPDX-License-Identifier: Apache-2.0
"""The comparison that the report shows."""

import dataclasses

import testtools

from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.html_report import collect
from nova_aggregate_mirror.html_report import report
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror import source
from tests.unit import doubles

REQUEST = result.Request(0.3, write=False)


class TestMarks(testtools.TestCase):

    def test_hosts_that_share_a_compute_node(self):
        """Each is marked if their provider could not be compared."""
        done = outcome.Outcome()
        for node in 'n1', 'n2':
            done.failed[outcome.Subject(outcome.PROVIDER, node)] = (
                exceptions.ServiceFailed('500'))
        nova = source.Nova({}, {}, {'n1': 'h1'}, shared={
            'n1': (source.NodeRow('', 'n1', 'h1'),
                   source.NodeRow('', 'n1', 'twin'))})
        collected = collect.Content(
            result.Result(done, nova, request=REQUEST),
            collect.JournalContent(), {}, '')
        self.assertEqual(
            dict.fromkeys(['h1', 'n2', 'twin'], ('could not be compared',)),
            report.marks(collected))


class TestRepair(doubles.TestCase):

    def test_observed(self):
        """What is only observed is repaired by no command.

        Providers without a compute node are no hosts; each failure is listed.
        """
        names = ['n%02d' % number for number in range(12)]
        comparison = result.Result(
            outcome.Outcome(failed={
                outcome.Subject(outcome.PROVIDER, name):
                exceptions.ServiceFailed('500') for name in names}),
            source.Nova({}, {}, {}), [associations.Association(
                (), name, '', 'gone', associations.State.STALE, True)
                for name in names], request=REQUEST)
        syncs = full_syncs.Entry('agent', 'ctl', 0, 1, 1, mode=conf.OBSERVE),
        for observes, entries, repaired in (
                (False, (), True), (True, (), False), (False, syncs, False)):
            page = ''.join(report.render(collect.Content(
                comparison, collect.JournalContent(syncs=entries), {}, '',
                observes=observes), 2))
            self.assertEqual(repaired, report.REPAIR in page)
            self.assertNotEqual(repaired, 'The agent only observes.' in page)
            for text in ('attention: 0 of 0;', 'Provider n11 is not compared',
                         '<b>12 providers without a known host</b>'):
                self.assertIn(text, page)

    def test_refused(self):
        """The command would refuse it, too; the problem has the step."""
        comparison = result.Result(
            outcome.Outcome(), source.Nova({}, {}, {}), [
                associations.Association(
                    (), 'n1', '', 'gone', associations.State.STALE_KEPT)],
            refused=exceptions.RemovalsRefused('too many', step='look'),
            request=REQUEST)
        page = ''.join(report.render(collect.Content(
            comparison, collect.JournalContent(), {}, ''), 2))
        self.assertNotIn(report.REPAIR, page)
        self.assertIn('too many: look', page)


class TestUnread(doubles.TestCase):
    """The page claims nothing of what could not be read, and only of it."""

    def page(self, sync, **journal):
        return ''.join(report.render(collect.Content(
            sync, collect.JournalContent(**journal), {}, ''), 2))

    def test_nova(self):
        sync = full_sync.without_comparison(
            exceptions.NovaUnavailable('was silent'), REQUEST)
        page = self.page(sync)
        self.assertIn('<dt>aggregates</dt><dd>?</dd>', page)
        self.assertIn('nova could not be read', page)

    def test_journal(self):
        """It may be another nova's: then it was read."""
        page = self.page(
            result.Result(outcome.Outcome(), source.Nova({}, {}, {}),
                          request=REQUEST),
            trouble=problems.Problem('', 'The journal is another nova\'s'))
        self.assertIn('nova has no aggregate', page)
        self.assertNotIn('could not be read', page)


class TestForeignAggregates(doubles.TestCase):
    """Aggregates that neither nova nor the ledger has."""

    def content(self, cells=()):
        """Return the content of a report about a foreign aggregate."""
        nova = doubles.Nova([])
        nova.mapped = dict.fromkeys(cells, '')
        sync = result.Result(
            outcome.Outcome(), source.Nova({}, {}, {}),
            [associations.Association(
                ('h1',), 'n1', '', 'foreign',
                associations.State.FOREIGN_AGGREGATE, True)],
            request=dataclasses.replace(REQUEST, foreign=True))
        return collect.Content(
            sync, collect.read_journal(self.conf, nova), {}, '')

    def page(self):
        return ''.join(report.render(self.content(), 2))

    def test_journal(self):
        """Its ledger has the aggregates that nova deleted."""
        self.open_journal().ledger.remember({'nova-s'})
        page = self.page()
        self.assertIn('nova never had it while this journal exists', page)
        self.assertIn('aggregates of other tools.', page)

    def test_no_journal(self):
        """Without a ledger, aggregates that nova deleted look foreign."""
        page = self.page()
        self.assertNotIn('nova never', page)
        self.assertIn('not known to have had it', page)
        self.assertIn('of other tools, or deleted', page)

    def test_journal_of_another_nova(self):
        """Its ledger does not count."""
        journal = self.open_journal()
        binding.Binding(
            journal.database, lambda: {'a1': ''}, dict).bind()
        journal.ledger.remember({'of a1'})
        line, = report.values(self.content(['b1']))['described']
        self.assertIn('not known to have had it', line)


class TestJournal(doubles.TestCase):

    def test_file_that_cannot_be_looked_up(self):
        """The page says so, and shows no empty journal."""
        doubles.hide_journal(self.conf)
        trouble = collect.read_journal(self.conf, doubles.Nova([])).trouble
        self.assertEqual('file_unusable', trouble.failure.kind)

    def test_nova_that_cannot_be_read(self):
        """The rows are shown, whichever nova has the journal."""
        binding.replace(self.journal.database, {'a1': ''})
        self.hand_over('h1')
        self.nova.broken = exceptions.NovaUnavailable('was silent')
        row, = collect.read_journal(self.conf, self.nova).rows
        self.assertEqual('h1', row.dirty.host)

    def test_row(self):
        """The page has its state in words, as the list has."""
        self.hand_over('h1')
        sync = result.Result(
            outcome.Outcome(), source.Nova({}, {}, {}), request=REQUEST)
        content = collect.Content(
            sync, collect.read_journal(self.conf, self.nova), {}, '')
        page = ''.join(report.render(content, 2))
        self.assertIn('<bdi>h1</bdi><td>to be mirrored<td', page)
