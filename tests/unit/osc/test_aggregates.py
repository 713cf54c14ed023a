# SPDX-License-Identifier: Apache-2.0
"""The state of an aggregate in ``openstack aggregate mirror list``."""

import testtools

from nova_aggregate_mirror.osc import aggregates

State = aggregates.State


class TestState(testtools.TestCase):

    def test_most_important(self):
        """Repairable states come first; foreign providers do not count."""
        for states, expected in (
                ((), 'in_sync'),
                ((State.IN_SYNC, State.FOREIGN_PROVIDER), 'in_sync'),
                ((State.PENDING, State.IN_SYNC), 'pending'),
                ((State.PENDING, State.NO_NODE), 'without_compute_node'),
                ((State.UNKNOWN, State.NO_NODE), 'unknown'),
                ((State.UNKNOWN, State.STALE), 'stale'),
                ((State.MISSING, State.STALE), 'missing'),
                ((State.MISSING, State.IN_SYNC), 'missing')):
            self.assertEqual(expected, aggregates.state(frozenset(states)))
