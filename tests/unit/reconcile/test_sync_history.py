# SPDX-License-Identifier: Apache-2.0
"""The entry of a sync in the history."""

import dataclasses
from unittest import mock

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.reconcile import sync_history
from nova_aggregate_mirror import source
from tests.unit.reconcile import test_result

COUNT = sync_history.MOST + 1


def entry(sync, interruption=0, **request):
    """Return the entry that is written."""
    with mock.patch.object(full_syncs, 'add', autospec=True) as add:
        sync_history.note(
            mock.sentinel.database, 'agent', 1.0, dataclasses.replace(
                sync, request=result.Request(**request),
                interruption=interruption))
    [call] = add.mock_calls
    return call.args[1]


class TestCompared(testtools.TestCase):

    def test_each_failure(self):
        """A full sync compared nova, even if it could not read a provider."""
        partial = outcome.Outcome()
        partial.failed[outcome.Subject(outcome.PROVIDER, 'n1')] = (
            exceptions.ServiceFailed('500'))
        sync = result.Result(partial, source.Nova({}, {}, {}))
        for compared, arguments in (
                (True, {}), (False, {'interruption': 130}),
                (False, {'hosts': frozenset({'h1'})}),
                (False, {'write': False, 'observes': True})):
            self.assertIs(compared, entry(sync, **arguments).compared)
        self.assertFalse(entry(full_sync.without_comparison(
            exceptions.ServiceFailed('500'), result.Request())).compared)


class TestRemovals(testtools.TestCase):

    def removals(self, **request):
        """Return the number of removals, and how many of them are listed."""
        sync = entry(result.Result(
            outcome.Outcome(), source.Nova({}, {}, {}), [
                test_result.association(number, 'stale')
                for number in range(COUNT)]), **request)
        return sync.removed, len(sync.removals.splitlines())

    def test_what_is_removed_is_listed_in_full(self):
        """Nothing else has it afterwards."""
        self.assertEqual((COUNT, COUNT), self.removals())

    def test_what_is_only_observed_is_cut(self):
        """A command lists all of it."""
        self.assertEqual((COUNT, sync_history.MOST), self.removals(
            write=False, observes=True))
