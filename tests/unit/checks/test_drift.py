# SPDX-License-Identifier: Apache-2.0
"""Findings about drift."""

import types

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import drift
from nova_aggregate_mirror import commands
from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror import source
from tests.unit import doubles


class TestDrift(doubles.TestCase):

    def find(self) -> checks.Findings:
        self.nova.zones = lambda: {'zone': 'az1'}
        return drift.find(types.SimpleNamespace(
            conf=self.conf, journal=self.journal, source=self.nova,
            client=self.placement))

    def cloud(self, hosts_of: dict[str, set[str]],
              **placement: set[str]) -> None:
        """Create a compute node for each provider: n1 of h1, and so on."""
        self.nova.hosts_of = hosts_of
        for provider, aggregates in placement.items():
            self.nova.nodes[provider] = provider.replace('n', 'h')
            self.placement.create(provider, *aggregates)

    def test_differences(self):
        """By zone or aggregate, with the command; foreign ones are none."""
        self.cloud({'zone': {'h1', 'h4'}, 'rack': {'h2'}}, n1=set(),
                   n2={'foreign'}, n3={'zone'}, n4={'zone', 'foreign'})
        self.assertEqual([
            *checks.warning('In placement, aggregate name of rack lacks host '
                            'h2.'),
            *checks.warning('In placement, availability zone az1 lacks host '
                            'h1.'),
            *checks.warning('In placement, availability zone az1 still has '
                            'host h3.'),
            *checks.warning('To repair this now, run:',
                            commands.SYNC + ' --prune')], self.find())
        self.placement.write('n3', ())
        self.assertEqual((commands.SYNC,), self.find()[-1].commands)
        self.placement.write('n1', {'zone'})
        self.placement.write('n2', {'rack'})
        self.assertEqual(checks.good(
            'Placement is in sync with nova: 2 host aggregates.'),
            self.find())

    def test_observed_differences(self) -> None:
        """Where nova is only observed, no step writes to placement."""
        self.conf.set_override('mode', conf.OBSERVE, 'aggregate_mirror')
        self.cloud({'zone': {'h1'}}, n1=set(), n2={'zone'})
        self.assertEqual([
            'In placement, availability zone az1 lacks host h1.',
            'In placement, availability zone az1 still has host h2.'],
            [finding.text for finding in self.find()])

    def test_deleted_aggregates(self):
        """The ledger has them; other providers are named by their UUID."""
        self.cloud({'zone': {'h1'}}, n1={'zone', 'gone'})
        self.journal.ledger.remember(['gone'])
        self.journal.ledger.mark('marked')
        self.placement.create('segment', 'marked')
        self.assertEqual([
            'In placement, deleted aggregate gone still has host h1.',
            'In placement, deleted aggregate marked still has provider '
            'segment.'], [finding.text for finding in self.find()[:2]])

    def test_journal_that_cannot_be_read(self):
        """Placement's log is no remedy."""
        self.cloud({'zone': {'h1'}}, n1=set())
        self.assertEqual({}, self.journal.ledger.entries())
        with engine.Database(self.conf).open().begin() as connection:
            models.ledger.drop(connection)
        self.assertRaises(exceptions.JournalUnavailable, self.find)

    def test_provider_that_cannot_be_read(self):
        """The other providers are still compared."""
        self.nova.hosts_of = {'a': {'h1', 'h2'}}
        self.nova.nodes = {'n1': 'h1', 'n2': 'h2'}
        for node in self.nova.nodes:
            self.placement.create(node)
        self.placement.broken = {
            ('GET', 'n1'): exceptions.MalformedAnswer('half of it.')}
        place, _repair, unknown = self.find()
        self.assertIn('lacks host h2.', place.text)
        self.assertEqual(checks.Code.FAILURE, unknown.code)
        self.assertEqual(
            (exceptions.MalformedAnswer('half of it.').failure,
             'provider n1'),
            (unknown.problem.failure, unknown.problem.subject))
        self.assertEqual((), unknown.commands)

    def test_hosts_that_share_a_compute_node(self):
        """Each of them is named."""
        self.nova.hosts_of = {'a': {'h1', 'twin'}}
        self.nova.nodes = {'n1': 'h1'}
        self.nova.twins = {'n1': 'twin'}
        self.placement.create('n1')
        place, *_others = self.find()
        self.assertIn('lacks host h1, host twin.', place.text)

    def test_hosts_that_are_not_mirrored(self):
        """The problems of a sync, of each kind a few."""
        hosts = {'h%d' % number for number in range(checks.NAMES + 3)}
        self.nova.hosts_of = {'a': hosts | {'nodeless', 'pending'}}
        for host in hosts:
            self.nova.nodes['n' + host] = host
            self.placement.create('n' + host, 'a')
        self.nova.nodes['n'] = 'pending'
        self.nova.unmapped = hosts
        findings = self.find()
        self.assertEqual(
            [(checks.Code.WARNING, step) for step in [
                *['map it'] * checks.NAMES, '', source.RESTART,
                result.NO_PROVIDER]],
            [(finding.code, finding.problem.step) for finding in findings])

    def test_cell_that_is_silent(self):
        """The failure of its database, with its step."""
        self.cloud({'zone': {'h1'}}, n2=set())
        self.nova.silent = {'h1'}
        silent, = (finding for finding in self.find()
                   if finding.problem.failure)
        self.assertEqual(
            (checks.Code.WARNING, doubles.SILENT.key, doubles.SILENT.step),
            (silent.code, silent.problem.key, silent.problem.failure.step))

    def test_removals_that_are_refused(self):
        """The step of the brake, with its commands, unless it would write."""
        self.cloud({'zone': {'h1'}}, n1={'zone'})
        self.journal.ledger.remember('%d' % number for number in range(20))
        self.placement.write('n1', {'zone', *map(str, range(20))})
        *_place, finding = self.find()
        self.assertEqual(comparison.REVIEW, finding.problem.failure.step)
        self.assertEqual((commands.SYNC + ' --prune --dry-run',),
                         finding.commands)
        self.conf.set_override('mode', conf.OBSERVE, 'aggregate_mirror')
        self.assertEqual([(), ''], [
            value for finding in self.find()[-1:]
            for value in (finding.commands, finding.problem.step)])

    def test_many_hosts(self):
        """Only a few are named; a host with many nodes counts once."""
        self.nova.hosts_of = {'a': {'h%d' % i for i in range(9)}}
        for number in range(18):
            node = 'n%02d' % number
            self.nova.nodes[node] = 'h%d' % (number % 9)
            self.placement.create(node)
        first, repair = self.find()
        self.assertEqual('In placement, aggregate name of a lacks host h0, '
                         'host h1, host h2, host h3, host h4 and 4 more.',
                         first.text)
        self.assertEqual((commands.SYNC,), repair.commands)
