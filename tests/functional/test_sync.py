# SPDX-License-Identifier: Apache-2.0
"""What a full sync advises, followed on a real nova and placement."""

from nova import context as nova_context
from nova import objects
from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror.console import sync_result
from nova_aggregate_mirror.reconcile import full_sync
from tests import fixtures
from tests import nova_service


class TestAdvice(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.StockNova())
        self.aggregate = self.cloud.create_aggregate('aggregate', 'east')
        self.first = self.cloud.create_host('host1')
        self.last = self.cloud.create_host('host3')
        for host in self.first, self.last:
            self.cloud.add_host(self.aggregate, host)

    def faults(self) -> list[str]:
        """Return the lines of the result."""
        return sync_result.Result(
            self.cloud.sync(), full_sync.Request()).faults()

    def test_name_that_another_provider_has(self) -> None:
        """The printed step ends it; a restart of nova-compute alone cannot."""
        [node], other = self.first.nodes, uuidutils.generate_uuid()
        self.cloud.placement.delete_provider(node)
        self.cloud.placement.create_provider(
            other, nova_service.node_name(self.first.name, 0))
        line, = self.faults()
        self.assertIn('openstack resource provider delete %s' % other, line)
        self.assertIn('Host host1', line)
        self.assertRaises(AssertionError, self.cloud.create_providers,
                          self.first)
        self.cloud.placement.delete_provider(other)
        line, = self.faults()
        self.assertIn('restart nova-compute', line)
        self.cloud.create_providers(self.first)
        self.assertEqual([], self.faults())
        self.assertEqual([], self.cloud.drift())

    def test_host_that_was_retired_while_it_was_a_member(self) -> None:
        """Nova-api cannot remove it; the printed steps can."""
        self.faults()
        context = nova_context.get_admin_context()
        with self.cloud.nova.in_cell('cell1') as cell:
            for node in objects.ComputeNodeList.get_all_by_host(
                    cell, self.last.name):
                node.destroy()
            objects.Service.get_by_compute_host(
                cell, self.last.name).destroy()
        objects.HostMapping.get_by_host(context, self.last.name).destroy()
        line, = self.faults()
        self.assertIn('Host host3 has neither host mapping nor compute node',
                      line)
        self.assertEqual(404, self.cloud.remove_host(
            self.aggregate, self.last).status)
        returned = self.cloud.create_host(self.last.name, providers=False)
        self.assertEqual(200, self.cloud.remove_host(
            self.aggregate, returned).status)
        self.assertEqual([], self.faults())
