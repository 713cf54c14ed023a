# SPDX-License-Identifier: Apache-2.0
"""Which migration brought a server to its host."""

import testtools

from nova_aggregate_mirror import audit

SERVER = audit.PlacedServer('u', 'n', 'h1', 'p', 'resized', 1000.0)


class TestPlaced(testtools.TestCase):

    def test_resize_that_waits_for_confirmation(self) -> None:
        """Nova saves its migration before the time of the server's launch."""
        server = audit.with_move(SERVER, 'resize', 999.0)
        self.assertEqual(('resize', 1000.0), (server.moved, server.arrived))

    def test_launch_after_the_migration(self) -> None:
        """A server that was unshelved later was not moved to its host."""
        self.assertEqual(
            SERVER, audit.with_move(SERVER, 'resize', 900.0))
