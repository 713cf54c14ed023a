# SPDX-License-Identifier: Apache-2.0
"""The rules of availability zones, on mirrored aggregates.

The agents are stopped: they would repair what a call missed.
"""

import uuid

from keystoneauth1 import exceptions

from tests.cloud.integration import base
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers

# A key of nova's servers.
ZONE = 'OS-EXT-AZ:availability_zone'
OTHER = {'compute-1': 'compute-2', 'compute-2': 'compute-1'}


class TestZones(base.TestCase):

    without_agents = True

    def setUp(self):
        super().setUp()
        unique = uuid.uuid4().hex[:8]
        self.first, self.second = 'zone-%s-1' % unique, 'zone-%s-2' % unique

    def tearDown(self):
        super().tearDown()
        # While the aggregates exist: moving servers changes no association.
        self.assert_equal()

    def zone(self, name, *members):
        """Create an aggregate that is a zone with hosts; return its name."""
        aggregate = self.aggregate(name)
        for host in members:
            self.act(self.url_of(aggregate), add_host={'host': host})
        return aggregate

    def act(self, url, **action):
        """Run an action of an aggregate or a server directly by REST."""
        self.cloud.nova().post(url + '/action', json=action)

    def boot_in_first_zone(self):
        """Create a server; return it, and its path in nova's API."""
        server = self.boot(zone=self.first)
        self.assertEqual(self.first, server[ZONE], server)
        return server, '/servers/%s' % server['id']

    def stays(self, server, zone, host, status='ACTIVE'):
        """Wait until a server is on a host, and check its zone."""
        self.assertEqual(zone, self.wait_for(server, status, host)[ZONE])

    def test_a_renamed_zone_takes_servers(self):
        """A renamed zone takes servers; its old name no longer exists."""
        aggregate = self.zone(self.first, 'compute-3')
        self.act(self.url_of(aggregate), set_metadata={
            'metadata': {'availability_zone': self.second}})
        server = self.boot(zone=self.second)
        self.assertEqual(('compute-3', self.second),
                         (server[base.HOST], server[ZONE]), server)
        refused = self.assertRaises(
            exceptions.BadRequest, self.boot, zone=self.first)
        self.assertIn('availability zone is not available',
                      refused.response.text)

    def test_moves_stay_in_the_zone(self):
        """Cold and live migration and resize use the zone's other host."""
        self.zone(self.first, 'compute-1', 'compute-2')
        self.zone(self.second, 'compute-3', 'ironic-1')
        server, url = self.boot_in_first_zone()
        host = OTHER[server[base.HOST]]
        for move in ({'migrate': None},
                     {'resize': {'flavorRef': self.flavor()}}):
            self.act(url, **move)
            self.wait_for(server, 'VERIFY_RESIZE', host)
            self.act(url, confirmResize=None)
            self.stays(server, self.first, host)
            host = OTHER[host]
        self.act(url, **{'os-migrateLive': {
            'host': None, 'block_migration': 'auto'}})
        self.stays(server, self.first, host)

    def test_evacuated_within_the_zone(self):
        """A server is evacuated to the other host of its zone."""
        self.zone(self.first, 'compute-1', 'compute-2')
        server, url = self.boot_in_first_zone()
        with scene.Scene(self.cloud, schedulers.Schedulers(self.cloud)) as at:
            at.later(hosts.raise_up, at, server[base.HOST])
            self.cloud.process(server[base.HOST]).kill()
            hosts.set_forced_down(at, server[base.HOST])
            self.act(url, evacuate={})
            # Nova leaves the evacuated server to its user to start.
            self.stays(server, self.first, OTHER[server[base.HOST]],
                       'SHUTOFF')

    def test_unshelved_in_another_zone(self):
        """An unshelved server gets a host of its zone, or of a new one."""
        self.zone(self.first, 'compute-2')
        self.zone(self.second, 'compute-1')
        server, url = self.boot_in_first_zone()
        for target, zone, host in (
                (None, self.first, 'compute-2'),
                ({'availability_zone': self.second}, self.second,
                 'compute-1')):
            self.act(url, shelve=None)
            # Nova offloads it at once by default.
            self.wait_for(server, 'SHELVED_OFFLOADED', None)
            self.act(url, unshelve=target)
            self.stays(server, zone, host)
