# SPDX-License-Identifier: Apache-2.0
"""The comparison and the misplaced servers that the report shows."""

import dataclasses
import re
import uuid

import testtools

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror import commands
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
from tests.unit.html_report import test_answer

REQUEST = result.Request(0.3, write=False)
NOW = test_answer.NOW
DAY = 86400
KILOBYTE = 1024


def server(number, host='cmp-1', asked='zone az-1', why='forced to the host',
           since=NOW - DAY, state='active', name='web-%d'):
    return audit.Misplacement(
        audit.PlacedServer(
            str(uuid.UUID(int=number << 64)), name % number if '%d' in name
            else name, host, 'project-1', state),
        'zone', asked, 'zone az-2',
        audit.Event(audit.FORCED, why, since))


def findings(servers, **options):
    """Build what an audit has found, as the command does."""
    audited = collect.Misplacements(**{'totals': auditor.Totals(
        len(servers) + 5, len(servers), 0, {'zone': len(servers)}), **options})
    audited.add(servers)
    return audited


def compared(*found, nova=source.Nova({}, {}, {}), failed=(), **options):
    """Build the comparison of a cloud without aggregates."""
    return result.Result(
        outcome.Outcome(failed={
            outcome.Subject(outcome.PROVIDER, name):
            exceptions.ServiceFailed('500') for name in failed}),
        nova, found, **{'request': REQUEST, **options})


def content(comparison=None, journal=collect.JournalContent(), **options):
    """Build a report of a cloud without aggregates that is in sync."""
    return collect.Content(
        comparison or compared(), journal, {}, 'region RegionOne', **options)


def page(*arguments, **options):
    return ''.join(report.render(content(*arguments, **options), NOW))


def section(found):
    return re.search('<section id="servers">.*?</section>',
                     page(findings=found), re.DOTALL).group()


class TestMarks(testtools.TestCase):

    def test_hosts_that_share_a_compute_node(self):
        """Each is marked if their provider could not be compared."""
        nova = source.Nova({}, {}, {'n1': 'h1'}, shared={
            'n1': (source.NodeRow('', 'n1', 'h1'),
                   source.NodeRow('', 'n1', 'twin'))})
        marks = report.marks(content(
            compared(nova=nova, failed=['n1', 'n2'])))
        self.assertEqual(
            {'could not be compared': {'h1', 'n2', 'twin'}},
            {mark: hosts for mark, hosts in marks.items() if hosts})


class TestRepair(testtools.TestCase):

    def test_observed(self):
        """What is only observed is repaired by no command.

        Providers without a compute node are no hosts; each failure is listed.
        """
        names = ['n%02d' % number for number in range(12)]
        comparison = compared(*(associations.Association(
            (), name, '', 'gone', associations.State.STALE, True)
            for name in names), failed=names)
        syncs = full_syncs.Entry('agent', 'ctl', 0, 1, 1, mode=conf.OBSERVE),
        for observes, entries, repaired in (
                (False, (), True), (True, (), False), (False, syncs, False)):
            text = page(comparison, collect.JournalContent(syncs=entries),
                        observes=observes)
            self.assertEqual(repaired, report.REPAIR in text)
            self.assertNotEqual(repaired, 'The agent only observes.' in text)
            for part in ('attention: 0 of 0;', 'Provider n11 is not compared',
                         '<b>12 providers without a known host</b>'):
                self.assertIn(part, text)

    def test_refused(self):
        """The command would refuse it, too; the problem has the step."""
        text = page(compared(associations.Association(
            (), 'n1', '', 'gone', associations.State.STALE_KEPT),
            refused=exceptions.RemovalsRefused('too many', step='look')))
        self.assertNotIn(report.REPAIR, text)
        self.assertIn('too many: look', text)


class TestUnread(testtools.TestCase):
    """The page claims nothing of what could not be read, and only of it."""

    def test_nova(self):
        text = page(full_sync.without_comparison(
            exceptions.NovaUnavailable('was silent'), REQUEST))
        self.assertIn('<dt>aggregates</dt><dd>?</dd>', text)
        self.assertIn('nova could not be read', text)

    def test_journal(self):
        """It may be another nova's: then it was read."""
        text = page(journal=collect.JournalContent(
            trouble=problems.Problem('', 'The journal is another nova\'s')))
        self.assertIn('nova has no aggregate', text)
        self.assertNotIn('could not be read', text)


class TestForeignAggregates(doubles.TestCase):
    """Aggregates that neither nova nor the ledger has."""

    def content(self, cells=()):
        """Return the content of a report about a foreign aggregate."""
        nova = doubles.Nova([])
        nova.mapped = dict.fromkeys(cells, '')
        comparison = compared(associations.Association(
            ('h1',), 'n1', '', 'foreign',
            associations.State.FOREIGN_AGGREGATE, True),
            request=dataclasses.replace(REQUEST, foreign=True))
        return content(comparison, collect.read_journal(self.conf, nova))

    def page(self):
        return ''.join(report.render(self.content(), NOW))

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
        self.assertIn('<bdi>h1</bdi><td>to be mirrored<td', page(
            journal=collect.read_journal(self.conf, self.nova)))


class TestGroups(testtools.TestCase):

    def test_servers_that_are_alike_share_a_row(self):
        """Each is named with its command; another reason is another row."""
        text = section(findings([
            server(1), server(2), server(3), server(4, 'cmp-0'),
            server(5, asked='zone az-3'), server(6, why='moved')]))
        self.assertEqual(4, text.count('<tr class="f">'))
        self.assertEqual(['cmp-0', 'cmp-1', 'cmp-1', 'cmp-1'],
                         re.findall('class="on"><bdi>([^<]+)', text))
        self.assertIn('<b>3 servers</b> from <bdi>web-1</bdi>', text)
        for number in range(1, 7):
            self.assertIn('<bdi>web-%d</bdi>' % number, text)
            self.assertIn('<code class="copy">openstack server migrate '
                          '--live-migration %s</code>' % uuid.UUID(
                              int=number << 64), text)

    def test_heading(self):
        """It is good only if no server is misplaced, and all are audited."""
        trouble = problems.Problem('cell7', 'refused')
        for found, good in ((findings([]), True), (None, True),
                            (findings([server(1)]), False),
                            (findings([], troubles=[trouble]), False)):
            text = page(findings=found)
            heading = re.search('<h1.*?</h1>', text).group()
            self.assertEqual(good, '✓' in heading and '"good"' in heading)
            self.assertIn(found.summary if found else 'in sync', heading)

    def test_since(self):
        """A row has the range, and each server its own time."""
        text = section(findings([server(1), server(2, since=NOW - 9 * DAY),
                                 server(3, since=None)]))
        self.assertIn('since <time>2023-11-05 22:13:20</time> (9 d), the '
                      'latest since <time>2023-11-13 22:13:20</time> (24 h)',
                      text)
        self.assertEqual(4, text.count('since <time>'))
        text = section(findings([server(1), server(2)]))
        self.assertEqual(1, text.count('since <time>'))
        self.assertNotIn('the latest', text)

    def test_server_that_nova_cannot_move(self):
        """The reason is no command to copy."""
        text = section(findings([server(1, state='error')]))
        self.assertIn('no command moves a server in state error', text)
        self.assertNotIn('class="copy"', text)

    def test_hostile_names(self):
        """They are escaped."""
        evil = test_answer.EVIL
        text = page(findings=findings(
            [server(1, evil, evil, evil, name=evil)],
            troubles=[problems.Problem(evil, evil)]))
        self.assertNotIn('<script>document', text)
        self.assertNotIn('<b title', text)


class TestBounds(testtools.TestCase):

    def test_many_servers_on_one_host(self):
        """Those that are not in the row are counted."""
        text = section(findings([server(number) for number in range(
            collect.MAX_NAMED + 200)]))
        self.assertIn('<b>2000 servers</b>', text)
        self.assertIn('200 more not shown; to list all', text)
        self.assertEqual(collect.MAX_NAMED, text.count('<bdi>web-') - 1)

    def test_many_hosts(self):
        """Each row names a server; the servers of others are counted."""
        text = page(findings=findings([
            server(number, 'host-%05d' % number) for number in range(50000)]))
        self.assertEqual(collect.MAX_NAMED, text.count('<tr class="f">'))
        self.assertIn('%d more not shown; to list all: <code class="copy">%s<'
                      % (50000 - collect.MAX_NAMED, commands.AUDIT), text)
        self.assertLess(len(text), 1300 * KILOBYTE)


class TestSection(testtools.TestCase):

    def test_not_audited(self):
        """One line has the option; the figures say nothing of servers."""
        text = page()
        self.assertIn('<code>--servers</code>', text)
        self.assertNotIn('<dt>misplaced', text)
        self.assertIn('<div class="misplaced"><dt>misplaced servers</dt>'
                      '<dd>1</dd>', page(findings=findings([server(1)])))

    def test_counts(self):
        """Each audited rule has a figure, also without a server."""
        found = findings([], totals=auditor.Totals(
            20, 0, 3, {'zone': 0, 'tenant_isolation': 0}))
        text = section(found)
        for name, count in (('audited', 20), ('misplaced', 0),
                            ('by tenant isolation', 0)):
            self.assertIn('<dt>%s</dt><dd>%d</dd>' % (name, count), text)
        self.assertIn('>without a request</dt><dd>3</dd>', text)
        self.assertIn('None: no audited server is', text)

    def test_verdict_of_an_incomplete_page(self):
        """What is missing on it comes first."""
        self.assertEqual(
            '1 problem on the page; otherwise no difference was found; 0 of 5 '
            'servers are on a host that contradicts the request',
            report.summary(content(
                journal=collect.JournalContent(
                    trouble=problems.Problem('', 'silent')),
                findings=findings([]))))

    def test_incomplete_audit(self):
        """Nothing found is not known to be nothing."""
        for troubles, reason in (
                ([problems.Problem.of(exceptions.ServiceFailed('neutron'))],
                 'incomplete: <bdi>neutron'),
                (problems.of_cells({'cell9': doubles.SILENT}, 'it waits'),
                 'incomplete: <bdi>the database of cell cell9')):
            text = section(findings(
                [], totals=auditor.Totals(), troubles=troubles))
            self.assertIn(reason, text)
            self.assertIn('misplaced</dt><dd>?</dd>', text)
            self.assertNotIn('None: ', text)
            found = findings([server(1)], troubles=troubles)
            self.assertIn('misplaced</dt><dd>1</dd>', section(found))
            self.assertIn('as far as they could be audited', found.summary)
