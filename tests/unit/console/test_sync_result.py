# SPDX-License-Identifier: Apache-2.0
"""The summary of a full sync."""

import testtools

from nova_aggregate_mirror.console import sync_result
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import plan
from nova_aggregate_mirror import source

STOPPED = exceptions.Stopped('stopping')
STALE = plan.Change('n1', (), ('c',))


class TestSummary(testtools.TestCase):

    def summary(self, *changes, write=True, failed=(), unfinished=(),
                **kwargs):
        done = outcome.Outcome(
            list(changes), failed={
                outcome.Provider(uuid): exceptions.ServiceFailed('500')
                for uuid in failed},
            unfinished={journal.Dirty(host): STOPPED for host in unfinished})
        return sync_result.Result(
            full_sync.Sync(done, source.Nova({}, {}, {}), drift=0, **kwargs),
            full_sync.Request(write=write)).summary()

    def test_changes(self):
        """Only those that were made, or would be."""
        self.assertEqual(
            '1 association added, 2 removed.',
            self.summary(plan.Change('n1', ('a',), ('b', 'c'))))
        self.assertEqual('1 association removed.', self.summary(STALE))
        self.assertEqual(
            '2 associations to add.',
            self.summary(plan.Change('n1', ('a', 'b')), write=False))

    def test_nothing_to_change(self):
        self.assertEqual('Placement already matches nova.', self.summary())
        self.assertEqual('Nothing to change: placement matches nova.',
                         self.summary(write=False))

    def test_failures(self):
        """Placement may not match nova then."""
        self.assertEqual('1 failure reported.', self.summary(failed=['n1']))
        self.assertEqual(
            '1 association removed; 2 failures reported.',
            self.summary(STALE, failed=['n2', 'n3']))

    def test_stale_associations_that_are_kept(self):
        self.assertEqual(
            '1 stale association kept: --prune removes stale associations.',
            self.summary(stale=(STALE,)))

    def test_removals_that_are_refused(self):
        """They are one failure, and not listed as merely kept."""
        self.assertEqual('1 failure reported.', self.summary(
            stale=(STALE,), refused=exceptions.RemovalsRefused('too many')))

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
