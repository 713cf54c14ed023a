# SPDX-License-Identifier: Apache-2.0
"""Notes on the networks and ports of a server."""

from nova import objects
from oslo_utils import timeutils
import testtools

from nova_aggregate_mirror.explain.request import networks


class TestMissing(testtools.TestCase):

    def test_server_without_a_host(self):
        """Neutron knows the ports of one that was launched, then offloaded."""
        objects.register_all()
        spec = objects.RequestSpec(
            requested_resources=[],
            requested_networks=objects.NetworkRequestList(objects=[]))
        for launched_at, count in (None, 1), (timeutils.utcnow(), 0):
            notes = list(networks.missing_notes(spec, objects.Instance(
                host=None, launched_at=launched_at)))
            self.assertEqual(count, len(notes), notes)
