# SPDX-License-Identifier: Apache-2.0
"""Aggregates changed by real clients on the full cloud, in placement."""

import contextlib
import re
import urllib.request

import testscenarios

from tests.cloud.integration import base

ALIVE = 30


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


class TestAgents(base.TestCase):

    def test_another_agent_leads(self):
        """After the leader is killed, the other agent repairs drift."""
        self.wait_until(lambda: bool(self._leader()), 'an agent leads')
        leader = self._leader()
        name = self.aggregate()
        self.add_host(name, 'compute-3')
        self.addCleanup(self.cloud.start, leader)
        self.cloud.process(leader).kill()
        self.wait_until(lambda: self._leader() not in ('', leader),
                        'the other agent leads')
        node, = self.nodes('compute-3')
        self.move(node, remove=[self.uuid_of(name)])
        self.assert_equal()

    def _leader(self) -> str:
        for name in base.AGENTS:
            process = self.cloud.process(name)
            url = 'http://127.0.0.1:%s/metrics' % process.port
            with contextlib.suppress(OSError), urllib.request.urlopen(
                    url, timeout=ALIVE) as answer:
                if re.search(rb'nova_aggregate_mirror_leader\{.*} 1\.0',
                             answer.read()):
                    return name
        return ''
