# SPDX-License-Identifier: Apache-2.0
"""sync_aggregates for an operator: preview, scope, prune, Ctrl-C."""

import json
import pathlib
import re
import signal

from oslo_utils import uuidutils

from nova_aggregate_mirror import conf
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import store
from tests import fixtures
from tests.functional import test_manage
from tests import patience
from tests import processes

CONF = fixtures.CONF
PATIENCE = patience.seconds(300)
FOREIGN = uuidutils.generate_uuid()


class SyncTest(test_manage.ManageTest):

    def setUp(self):
        super().setUp()
        self.placement = self.cloud.placement
        self.rack = self.cloud.create_aggregate('rack')
        conf.register_opts(CONF)
        self.journal = store.Journal(CONF)

    def stale(self, name, *aggregates):
        """Add a host that only placement has in these aggregates."""
        host = self.cloud.create_host(name)
        self.placement.set_aggregates(host.nodes[0], aggregates)
        return host

    def plan(self, *argv, status=None):
        """Return the output of --format json; check its exit status."""
        done = self.sync('--quiet', '--format', 'json', *argv)
        plan = json.loads(done.stdout)
        self.assertEqual(done.returncode, plan['exit_status'])
        if status is not None:
            self.assertEqual(status, done.returncode, done)
        return plan

    def pairs(self, plan, key):
        return {(','.join(entry['hosts']), entry['aggregate_uuid'])
                for entry in plan[key]}

    def everything(self):
        """Return placement with its generations, the rows and the ledger."""
        return ({node: (self.placement.generation(node),
                        self.placement.aggregates(node))
                 for node in self.cloud.nova.nodes()
                 if self.placement.has_provider(node)},
                self.journal.rows.all(), self.journal.ledger.entries())

    def left_over(self, host, error='refused'):
        """Record an operation that did not reach placement."""
        row = self.journal.rows.make(journal.Dirty(host))
        self.journal.rows.record(row)
        self.journal.rows.hand_over(row, error)


class TestSync(SyncTest):

    def test_plan_is_what_a_run_does(self):
        """It lists exactly these changes, and changes nothing."""
        self.host('pending', providers=False)
        self.host('unmapped', mapped=False)
        both = self.host('both')
        self.placement.set_aggregates(both.nodes[0], [self.rack.uuid, FOREIGN])
        self.stale('stale', self.zone.uuid)
        late = self.stale('late', self.rack.uuid)
        self.left_over('late')
        before = self.everything()
        plan = self.plan('--dry-run', '--prune', status=4)
        self.assertEqual(before, self.everything())
        done = self.plan('--prune', status=4)
        self.assertEqual({**done, 'dry_run': True}, plan)
        rack, zone = self.rack.uuid, self.zone.uuid
        for key, expected in (
                ('missing', {('unmapped', zone), ('both', zone)}),
                ('stale', {('both', rack), ('stale', zone), ('late', rack)}),
                ('foreign_aggregates', {('both', FOREIGN)}),
                ('pending', {('pending', zone)})):
            self.assertEqual(expected, self.pairs(plan, key))
        self.assertEqual(['unmapped'], plan['unmapped'])
        self.assertEqual(set(), self.placement.aggregates(late.nodes[0]))
        self.assertEqual([], self.journal.rows.all())

    def test_what_is_not_ours_is_never_touched(self):
        """Foreign aggregates, and providers of other kinds, are kept."""
        host = self.host('h1')
        self.plan(status=0)
        self.placement.set_aggregates(
            host.nodes[0], [self.zone.uuid, self.rack.uuid, FOREIGN])
        others = [uuidutils.generate_uuid() for _ in range(3)]
        for provider, name, parent in zip(
                others, ('storage', 'Neutron segment id 1', 'child'),
                ('', '', host.nodes[0])):
            self.placement.create_provider(provider, name, parent)
            self.placement.set_aggregates(
                provider, [self.zone.uuid, self.rack.uuid, FOREIGN])
        before = [self.placement.generation(one) for one in others]
        plan = self.plan('--prune', '--force', status=0)
        self.assertEqual({('h1', self.rack.uuid)}, self.pairs(plan, 'stale'))
        self.assertEqual({self.zone.uuid, FOREIGN},
                         self.placement.aggregates(host.nodes[0]))
        self.assertEqual(before, [self.placement.generation(one)
                                  for one in others])
        self.assertEqual(
            {('', self.zone.uuid), ('', self.rack.uuid)},
            self.pairs(plan, 'foreign_providers'))
        self.assertEqual({('h1', FOREIGN)},
                         self.pairs(plan, 'foreign_aggregates'))
        # Nothing is to be changed: only on request are they listed again.
        plan = self.plan('--foreign', status=0)
        self.assertEqual({('h1', FOREIGN)},
                         self.pairs(plan, 'foreign_aggregates'))

    def test_terminated(self):
        """PUTs in flight are completed; the rest is kept and reported."""
        hosts = [self.host('h%d' % number) for number in range(30)]
        land = self.placement.hold_after(4)
        process = self.start('placement', 'sync_aggregates')
        self.assertTrue(self.placement.stuck.wait(PATIENCE))
        process.send_signal(signal.SIGTERM)
        processes.hear(process.stderr, 'again to stop immediately')
        land()
        output, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual(143, process.returncode, errors)
        self.assertNotIn('Traceback', errors)
        done = [host for host in hosts
                if self.placement.aggregates(host.nodes[0])]
        # Placement holds some for longer than the command may wait for them.
        added = int(re.search('([0-9]+) associations added', output)[1])
        self.assertTrue(4 <= added <= len(done) < 30, output)
        self.assertIn('hosts or deleted aggregates not reconciled', output)
        self.placement.recover()
        self.plan(status=0)
        self.assertEqual([], self.cloud.drift())


class TestScope(SyncTest):

    def setUp(self):
        super().setUp()
        for name in ('h1', 'h2'):
            host = self.host(name)
            self.placement.set_aggregates(host.nodes[0], [self.rack.uuid])
        self.host('waits', providers=False)

    def test_aggregates(self):
        """By name, or UUID, of a deleted one with the help of the ledger.

        Other associations of the same hosts stay.
        """
        plan = self.plan('--aggregate', 'rack', '--prune', status=0)
        self.assertEqual((set(), {('h1', self.rack.uuid),
                                  ('h2', self.rack.uuid)}),
                         (self.pairs(plan, 'missing'),
                          self.pairs(plan, 'stale')))
        gone = uuidutils.generate_uuid()
        self.stale('h3', gone, FOREIGN)
        self.journal.ledger.remember({gone})
        plan = self.plan('--aggregate', gone, '--prune', status=0)
        self.assertEqual({('h3', gone)}, self.pairs(plan, 'stale'))

    def test_unknown_names(self):
        """Nothing is written for a mistyped name."""
        before = self.everything()
        for argv, word in ((('--host', 'h1', '--host', 'h9'), 'no host h9'),
                           (('--aggregate', 'Zone'), 'no aggregate Zone')):
            done = self.sync(*argv)
            self.assertEqual(255, done.returncode)
            self.assertIn(word, done.stderr)
        self.assertEqual(before, self.everything())

    def test_rows_that_are_not_covered_stay(self):
        """A row is closed only when all of it was repaired."""
        for name in ('h1', 'h2'):
            self.left_over(name)
        self.plan('--aggregate', 'zone')
        self.assertEqual(2, len(self.journal.rows.all()))
        self.plan('--host', 'h2')
        self.assertEqual(['h1'],
                         [row.dirty.host for row in self.journal.rows.all()])


class TestDefault(SyncTest):
    """Pruning of a sync without --prune or --no-prune."""

    def setUp(self):
        super().setUp()
        self.host('h1')
        self.stale('stale', self.zone.uuid)

    def check(self, kept, *argv):
        """Assert that a sync removes the association, or keeps it."""
        plan = self.plan(*argv, status=0)
        self.assertEqual({('stale', self.zone.uuid)},
                         self.pairs(plan, 'stale'))
        self.assertEqual([kept], [entry['kept'] for entry in plan['stale']])

    def test_first_sync(self):
        """It asks for --prune; the second sync removes.

        After a preview, which creates no journal, or a failure, the next sync
        still is the first.
        """
        self.plan('--dry-run', status=7)
        self.assertFalse(
            pathlib.Path(CONF.state_path, 'aggregate_mirror').exists())
        self.placement.refuse()
        self.assertEqual(2, self.sync().returncode)
        self.placement.recover()
        done = self.sync('--quiet')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.assertIn('1 stale association kept: no full sync that mirrors is '
                      'in the history of this journal yet; ', done.stdout)
        self.check(False)

    def test_options(self):
        """--prune always removes; neither --no-prune nor prune = false.

        --force needs --prune.
        """
        for argv in (('--force',), ('--force', '--no-prune')):
            done = self.sync(*argv)
            self.assertEqual(255, done.returncode)
            self.assertIn('add --prune', done.stderr)
        for _ in range(2):
            self.check(True, '--no-prune')
        self.write_conf(more='[aggregate_mirror]\nprune = false\n')
        self.check(True)
        self.check(False, '--prune')
