# SPDX-License-Identifier: Apache-2.0
"""Reads of the segments of servers for an audit."""

import socket

from oslo_utils.fixture import uuidsentinel as uuids

from nova_aggregate_mirror.audit import network_segments
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from tests import neutron_service
from tests import patience
from tests.unit import servers

BODY = b'.' * 300


def _trickles(server: servers.Server, connection: socket.socket) -> None:
    server.request(connection)
    connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n')
    server.trickle(connection, BODY)


class TestSegments(servers.LoopbackTestCase):

    def test_answer_that_trickles(self):
        """A request to neutron ends after ``request_timeout``."""
        server = self.useFixture(servers.Server(_trickles))
        conf = servers.make_conf()
        neutron_service.NeutronService().configure(conf, server.url)
        conf.set_override(
            'request_timeout', patience.seconds(1), 'aggregate_mirror')
        reader = network_segments.SegmentReader(conf, client.Client(conf), [])
        self.assertRaises(exceptions.DeadlineExceeded,
                          reader.read, [uuids.server])
        self.assertTrue(server.closed.wait(servers.PATIENCE))
        self.assertFalse(server.done.is_set())
