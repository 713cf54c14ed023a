# SPDX-License-Identifier: Apache-2.0
"""The base test case of routed networks."""

from typing import Any

from tests.cloud.integration import base
from tests.cloud.integration import routed


class TestCase(base.TestCase):
    """A test with a routed network of two segments."""

    bits = 29, 29
    """The prefix length of the subnet of each segment."""

    def setUp(self) -> None:
        super().setUp()
        self.routed = self.useFixture(
            routed.RoutedNetwork(self.scene, self.bits))
        self.first, self.second = self.routed.segments

    def assert_in(self, segment: routed.Segment, server: dict[str, Any]
                  ) -> None:
        """Check that a server has a host and an address of a segment."""
        self.assertEqual('ACTIVE', server['status'], server.get('fault'))
        self.assertTrue(segment.has(server), server)

    def assert_refused(self, server: dict[str, Any]) -> None:
        """Check that nova found no host for a server."""
        self.assertEqual('ERROR', server['status'])
        self.assertIn('No valid host', server['fault']['message'])

    def segment_of(self, server: dict[str, Any]) -> routed.Segment:
        """Return the segment of the host on which a server runs."""
        self.assertEqual('ACTIVE', server['status'], server.get('fault'))
        segment, = (each for each in self.routed.segments
                    if server[base.HOST] in each.hosts)
        return segment

    def uuid(self, segment: routed.Segment) -> str:
        """Return the UUID of the aggregate that neutron created."""
        return self.routed.aggregate(segment)['uuid']
