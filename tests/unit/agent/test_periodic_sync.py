# SPDX-License-Identifier: Apache-2.0
"""The periodic full sync, with an in-memory nova and placement."""

import logging
import types
from unittest import mock

import fixtures

from nova_aggregate_mirror.agent import periodic_sync
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror.reconcile import full_sync
from tests.unit.agent import case

REFUSED = case.REFUSED


class TestSync(case.AgentTest):

    def setUp(self):
        super().setUp()
        self.noted, self.unnoted = [], ''
        self.sync = self.new_sync()

    def new_sync(self, zones=dict, **kwargs):
        return periodic_sync.PeriodicSync(
            self.conf, self.new_reconciler(**kwargs), self.figures,
            now=lambda: self.clock, note=self.note, zones=zones)

    def note(self, seconds, result):
        self.noted.append(result)
        if self.unnoted:
            raise exceptions.JournalUnavailable(self.unnoted)

    def test_it_runs_when_it_is_due(self):
        """At once, and then at every interval; no connection stays open."""
        self.assertIsNotNone(self.sync.step())
        self.assertNotEqual([], self.log)
        self.assertEqual(0, self.placement.idle)
        self.clock += self.options.sync_interval - 0.1
        self.assertIsNone(self.sync.step())
        self.clock += 0.1
        self.assertIsNotNone(self.sync.step())
        self.assertEqual(2, len(self.noted))

    def test_stop(self):
        """History and metrics have what was changed, if anything was."""
        stopped = []
        self.placement.before_put = stopped.append
        for_each = workers.in_threads(1, lambda: bool(stopped))
        sync = self.new_sync(for_each=for_each)
        for _step in range(2):
            self.assertIsNone(sync.step())
            self.clock += self.options.sync_interval
        self.assertEqual([143], [noted.status() for noted in self.noted])
        # An observer has changed nothing, and counts nothing.
        self.conf.set_override('mode', 'observe', 'aggregate_mirror')
        stopped.clear()
        self.placement.create('n1')
        display = types.SimpleNamespace(
            step=lambda *_texts: None, advance=lambda: stopped.append(True))
        sync = self.new_sync(for_each=for_each, display=display)
        self.assertIsNone(sync.step())
        self.assertEqual([('observe_sync', 'partial', 0.0, 1, 0, 0)],
                         self.figures.calls)

    def test_drift_is_repaired_both_ways(self):
        """Missing associations are added, stale owned associations removed.

        Without prune it only adds: an operator can review the drift first.
        """
        self.placement.create('n3', 'a', 'foreign')
        for prune, stale in (False, {'a'}), (True, set()):
            self.conf.set_override('prune', prune, 'aggregate_mirror')
            for node in 'n1', 'n2':
                self.placement.create(node)
            self.new_sync().step()
            self.assertEqual(
                {'n1': {'a'}, 'n2': {'a'}, 'n3': {'foreign', *stale}},
                self.placement.aggregates)
        self.assertEqual(('success', 0.0, 2, 1, {
            ('', 'missing'): 2, ('', 'stale'): 1}, False, 0, 0),
            self.figures.last('observe_sync'))

    def test_drift_by_zone(self):
        """Each zone has a figure; a database that is away changes none."""
        sync = self.new_sync(zones=mock.Mock(side_effect=[
            {'a': 'az1', 'b': 'az2'}, exceptions.NovaUnavailable('refused')]))
        for missing in (2, 0):
            sync.step()
            self.assertEqual({
                ('az1', 'missing'): missing, ('az1', 'stale'): 0,
                ('az2', 'missing'): 0, ('az2', 'stale'): 0,
                ('', 'missing'): 0, ('', 'stale'): 0,
            }, self.figures.last('observe_sync')[4])
            self.clock += self.options.sync_interval

    def test_log_of_changes(self):
        """Only the changes that were made, and nothing without any."""
        self.placement.create('n1', 'a')
        log = self.useFixture(fixtures.FakeLogger(
            'nova_aggregate_mirror', level=logging.INFO))
        for _ in range(2):
            self.sync.step()
            self.clock += self.options.sync_interval
        self.assertEqual([
            'Host h2 (provider n2): added name of a (a)',
            'Full sync: 1 association added in 0.0 seconds',
        ], log.output.splitlines())

    def test_brake(self):
        """An emptied nova removes nothing, and the metrics show it."""
        self.sync.step()
        self.clock += self.options.sync_interval
        self.nova.hosts_of = {}
        result = self.sync.step()
        self.assertIn('2 associations would be removed', str(result.refused))
        self.assertEqual({'n1': {'a'}, 'n2': {'a'}, 'n3': set()},
                         self.placement.aggregates)
        self.assertEqual(
            ('partial', 0.0, 0, 0,
             {('', 'missing'): 0, ('', 'stale'): 2}, True, 0, 0),
            self.figures.last('observe_sync'))
        # Nothing else of an observer's log would tell why it is partial.
        self.conf.set_override('mode', 'observe', 'aggregate_mirror')
        log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        result = self.new_sync().step()
        self.assertEqual(1, log.output.count(str(result.refused)))

    def assert_judged(self, *expected):
        """Assert a sync's result, and how many hosts it did not compare."""
        self.sync.step()
        self.clock += self.options.sync_interval
        result, *_figures, uncompared = self.figures.last('observe_sync')
        self.assertEqual(expected, (result, uncompared))

    def test_hosts_that_are_not_compared(self):
        """They are counted; a member is logged until it has a compute node."""
        self.nova.silent = {'h1'}
        self.assert_judged('partial', 1)
        self.nova.silent = set()
        self.nova.hosts_of['a'].add('new')
        log = self.useFixture(fixtures.FakeLogger(
            'nova_aggregate_mirror', level=logging.WARNING))
        for _sync in range(2):
            self.assert_judged('partial', 1)
        line, = log.output.splitlines()
        self.assertIn('Full sync: Host new: no compute node', line)
        self.nova.nodes['n9'] = 'new'
        self.placement.create('n9')
        self.assert_judged('success', 0)

    def test_unavailable_placement_is_a_failure(self):
        """The next interval retries."""
        self.placement.is_connected = False
        self.placement.broken['PROBE', ''] = REFUSED
        self.assertIsNone(self.sync.step())
        self.assertEqual(('failure', 0.0, 0, 0, None, False, 0, 0),
                         self.figures.last('observe_sync'))
        self.placement.broken.clear()
        self.clock += self.options.sync_interval
        self.sync.step()
        self.assertEqual({'a'}, self.placement.aggregates['n1'])
        self.assertEqual([REFUSED, None],
                         [sync.not_compared for sync in self.noted])

    def test_providers_that_fail_do_not_delay_the_next_sync(self):
        """Rule 14: they come last, and in turn while there is time.

        Some are tried also when all else takes longer than the interval.
        """
        def wait(_provider):
            self.clock += seconds

        # They would come before the healthy h2.
        hosts = ['h1%d' % number for number in range(120)]
        self.nova.hosts_of['a'] = {'h2', *hosts}
        for host in hosts:
            node = 'm-' + host
            self.nova.nodes[node] = host
            self.placement.create(node)
            self.placement.broken['PUT', node] = (
                exceptions.GenerationConflict('409'))
        self.sync.step()
        self.placement.before_put = wait
        tried = []
        for seconds in (1, 1, 3600):
            self.placement.create('n2')
            self.clock += self.options.sync_interval
            self.log.clear()
            self.sync.step()
            tried.append(self.sent('PUT'))
            self.assertEqual('n2', tried[-1][0])
            self.assertEqual(120, len(self.noted[-1].outcome.failed))
        first, second, slow = tried
        self.assertEqual([101, 101], [len(first), len(second)])
        self.assertEqual(120, len({*first, *second} - {'n2'}))
        self.assertLess(1, len(slow))

    def test_hosts_that_come_last(self):
        """One with a journal row, which the drain mirrors unless it fails.

        After it one with many compute nodes: its requests delay no others.
        """
        large = ['m%02d' % number for number in range(full_sync.MANY_NODES)]
        for node in large:
            self.nova.nodes[node] = 'a-large-host'
            self.placement.create(node)
        self.nova.hosts_of['a'].add('a-large-host')
        self.hand_over('h1')
        self.sync.step()
        self.assertEqual(['n2', 'n1', *large], self.sent('PUT'))

    def test_history_that_cannot_be_written(self):
        """It is logged once per outage, also after the journal failed.

        The drain loop logs the failure of the journal, but not this.
        """
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        self.nova.broken = exceptions.JournalUnavailable('away')
        for self.unnoted in ('full', 'full', 'full', '', 'full'):
            self.sync.step()
            self.nova.broken = None
            self.clock += self.options.sync_interval
        self.assertEqual(['This sync is missing in the history: full'] * 2, [
            line for line in log.output.splitlines() if 'history' in line])
