# SPDX-License-Identifier: Apache-2.0
"""A new compute host, from its first start to its first server.

Users create servers all the while. The new host is empty, so that nova's
weighers prefer it to all others.
"""

from concurrent import futures

from tests.cloud.integration import base
from tests.cloud.integration import joining
from tests.cloud.situations import furnish

# Nova registers new compute services as disabled.
DISABLED = '''
[DEFAULT]
enable_new_services = false
'''


class TestWaiting(base.TestCase):

    def setUp(self):
        super().setUp()
        self.zone = furnish.zone(self.scene)
        # Removed after the servers.
        self.host = self.useFixture(
            joining.NewHost(self.cloud, self.scene.wait_until))
        self.append_options({'conductor': 'nova.conf'}, DISABLED)

    def test_no_server_before_the_zone(self):
        """No server is on the host before placement has it in its zone.

        Placement is unavailable when the host is added, so that the agent has
        to catch up.
        """
        with joining.users(self.boot) as servers, \
                futures.ThreadPoolExecutor(1) as pool:
            self.host.start()
            self.assertEqual('disabled', self.host.service()['status'])
            # One for each other node, and one that would be the new host's.
            count = len(servers) + len(self.cloud.nodes())
            self.scene.wait_until(lambda: len(servers) >= count,
                                  'users have created %s servers' % count)
            self.assertEqual([], self.host.servers())

            self.cloud.stop('placement')
            self.addCleanup(self.cloud.start, 'placement')
            self.add_host(self.zone, self.host.name)
            waiting = pool.submit(
                self.cloud.run, 'openstack', 'aggregate', 'mirror', 'wait',
                self.host.name, '--timeout', str(base.PATIENCE))
            self.cloud.start('placement')
            status, out, err = waiting.result()
            self.assertEqual(0, status, out + err)
            self.assertEqual({self.host.name}, self.placement_has(self.zone))
            self.assertEqual([], self.host.servers())

            self.run_client('openstack', 'aggregate', 'mirror', 'wait',
                            '--enable', self.host.name)
            self.scene.wait_until(
                self.host.servers, 'a server is on the new host')
        server = self.boot(zone=self.zone)
        self.assertEqual(self.host.name, server[base.HOST], server)
