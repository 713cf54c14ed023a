# SPDX-License-Identifier: Apache-2.0
"""The entry of a sync in the history."""

import testtools

from nova_aggregate_mirror.console import sync_history
from nova_aggregate_mirror.console import sync_result
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror import source
from tests.unit.console import test_sync_result

COUNT = sync_history.MOST + 1


class TestRemovals(testtools.TestCase):

    def removals(self, **request):
        """Return the number of removals, and how many of them are listed."""
        entries = []
        self.note = entries.append
        sync_history.note(self, 'agent', 1.0, sync_result.Result(
            full_sync.SyncOutcome(outcome.Outcome(), source.Nova({}, {}, {}), [
                test_sync_result.association(number, 'stale')
                for number in range(COUNT)]), full_sync.Request(**request)))
        entry, = entries
        return entry.removed, len(entry.removals.splitlines())

    def test_what_is_removed_is_listed_in_full(self):
        """Nothing else has it afterwards."""
        self.assertEqual((COUNT, COUNT), self.removals())

    def test_what_is_only_observed_is_cut(self):
        """A command lists all of it."""
        self.assertEqual((COUNT, sync_history.MOST), self.removals(
            write=False, observes=True))
