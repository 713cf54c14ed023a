# SPDX-License-Identifier: Apache-2.0
"""Aggregates changed by real clients on the full cloud, in placement."""

import testscenarios

from tests.cloud.integration import base


class TestControllers(testscenarios.WithScenarios, base.TestCase):

    scenarios = [('controller-%s' % number, {'controller': number})
                 for number in (1, 2)]
    without_agents = True

    def test_add_host_is_mirrored(self):
        """Placement has all nodes of the host, whichever nova-api is used."""
        aggregate = self.aggregate()
        self.add_host(aggregate, 'ironic-1', self.controller)
        self.add_host(aggregate, 'compute-1', self.controller)
        self.assertEqual(
            {'compute-1', 'ironic-1-node-1', 'ironic-1-node-2',
             'ironic-1-node-3'}, self.placement_has(aggregate))

    def test_remove_host_is_mirrored(self):
        """A host added by one nova-api can be removed by either."""
        aggregate = self.aggregate()
        self.add_host(aggregate, 'ironic-1')
        self.openstack('aggregate', 'remove', 'host', aggregate, 'ironic-1',
                       controller=self.controller)
        self.assertEqual(set(), self.placement_has(aggregate))
