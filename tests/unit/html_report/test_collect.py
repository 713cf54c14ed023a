# SPDX-License-Identifier: Apache-2.0
"""The comparison that the report shows."""

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.html_report import collect
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror import source


class TestMarks(testtools.TestCase):

    def test_hosts_that_share_a_compute_node(self):
        """Each is marked if their provider could not be compared."""
        result = outcome.Outcome()
        for node in 'n1', 'n2':
            result.failed[outcome.Subject(outcome.PROVIDER, node)] = (
                exceptions.ServiceFailed('500'))
        nova = source.Nova({}, {}, {'n1': 'h1'}, shared={
            'n1': (source.NodeRow('', 'n1', 'h1'),
                   source.NodeRow('', 'n1', 'twin'))})
        collected = collect.Collected(
            full_sync.SyncOutcome(result, nova),
            full_sync.Request(0.3, write=False), collect.JournalContent(), {},
            '')
        self.assertEqual(
            dict.fromkeys(['h1', 'n2', 'twin'], ('could not be compared',)),
            collect.marks(collected))
