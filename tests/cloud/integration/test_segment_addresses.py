# SPDX-License-Identifier: Apache-2.0
"""Segments without free addresses, with and without the request filter."""

from concurrent import futures
import os

from tests.cloud.integration import base
from tests.cloud.integration import routed_case
from tests.cloud.situations import hosts
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers

SERVERS = int(os.environ.get('AGGREGATE_MIRROR_SERVERS', 5))
AT_ONCE = 4
# The second segment has more nodes than nova tries, and is filled; the first
# has an address for each server of the tests.
BITS = 25, 29


class FullSegmentTest(routed_case.TestCase):

    bits = BITS

    def narrow(self):
        self.use_scheduler(schedulers.OURS)

    def network(self):
        return {'uuid': self.routed.id}

    def boot_several(self):
        """Create servers; return those that run, and how many were built."""
        networks = [self.network()] * SERVERS
        with futures.ThreadPoolExecutor(AT_ONCE) as pool:
            made = list(pool.map(self.boot, networks))
        builds = sum(len(self.hosts_tried(server)) for server in made)
        for server in made:
            servers.delete(self.scene, server['id'])
        return [server for server in made
                if server['status'] == 'ACTIVE'], builds

    def assert_refused_at_once(self, server):
        """No host is tried, and the user reads which network is full."""
        self.assert_refused(server)
        self.assertEqual([], self.hosts_tried(server))


class TestOneFullSegment(FullSegmentTest):

    def test_servers_get_an_address(self):
        """Stock nova also tries hosts of the full segment, in vain."""
        self.routed.fill(self.second)
        stock, tried = self.boot_several()
        self.narrow()
        running, builds = self.boot_several()
        print('%d servers: %d run after %d builds with stock nova, %d after '
              '%d builds with segment_addresses' % (
                  SERVERS, len(stock), tried, len(running), builds))
        self.assertGreater(tried, SERVERS)
        self.assertEqual((SERVERS, SERVERS), (len(running), builds))
        for server in running:
            self.assert_in(self.first, server)

    def test_freed_address(self):
        """The segment is used again as soon as neutron has an address.

        Nova's port of a server is deleted with the server.
        """
        freed, *_rest = self.routed.fill(self.second)
        hosts.disable(self.scene, *self.first.hosts)
        self.narrow()
        refused = self.boot(self.network())
        self.assert_refused_at_once(refused)
        self.routed.delete_port(freed)
        server = self.boot(self.network())
        self.assert_in(self.second, server)
        servers.delete(self.scene, server['id'])
        self.assert_in(self.second, self.boot(self.network()))


@base.in_unit_tests
class TestBothSegments(FullSegmentTest):

    bits = 29, 29

    def test_twelve_addresses(self):
        """Ten servers, created at once, take six and four; then two more."""
        self.narrow()
        request = servers.Create(self.scene, 'tiny', count=10, values={
            'networks': [self.network()]})
        request.make()
        running = [server for server in request.servers
                   if server['status'] == 'ACTIVE']
        used = [server[base.HOST] for server in running]
        counts = [sum(host in segment.hosts for host in used)
                  for segment in self.routed.segments]
        self.assertEqual([4, 6], sorted(counts))
        for _server in range(2):
            self.segment_of(self.boot(self.network()))
        server = self.boot(self.network())
        self.assert_refused_at_once(server)
        with open(self.cloud.process('scheduler').log) as log:
            line, = (line for line in log if server['id'] in line
                     and 'has no valid host' in line)
        for name in (self.routed.id, self.first.id, self.second.id):
            self.assertIn(name, line)
