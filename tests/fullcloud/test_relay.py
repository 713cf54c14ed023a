# SPDX-License-Identifier: Apache-2.0
"""The relay that chaos cuts."""

import pathlib
import socket
import socketserver
import sys
import threading

import fixtures
import testtools

from tests.cloud import processes
from tests.fullcloud.chaos import wiring
from tests.fullcloud import daemons

TIMEOUT = 30


class Echo(socketserver.StreamRequestHandler):
    """A server that returns each line that it receives."""

    def handle(self):
        for line in self.rfile:
            self.wfile.write(line)


class TestRelay(testtools.TestCase):

    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        server = socketserver.ThreadingTCPServer(('127.0.0.1', 0), Echo)
        server.daemon_threads = True
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        self.addCleanup(serving.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.server = server
        self.port, = processes.free_ports(1)
        self.relay = daemons.Daemon(
            'relay', [sys.executable, '-P', str(wiring.RELAY), str(self.port),
                      str(server.server_address[1])],
            str(folder / 'relay.log'), {}, self.port)
        self.relay.start()
        self.addCleanup(self.relay.kill)
        self.relay.wait_ready()

    def connect(self):
        made = socket.create_connection(('127.0.0.1', self.port), TIMEOUT)
        self.addCleanup(made.close)
        return made

    def echo(self, connection, line):
        with connection.makefile('rwb') as both:
            both.write(line)
            both.flush()
            self.assertEqual(line, both.readline())

    def test_hands_everything_on_both_ways(self):
        """Both directions work, for several connections and long lines."""
        first, second = self.connect(), self.connect()
        for line in (b'one\n', b'x' * 200000 + b'\n'):
            self.echo(first, line)
            self.echo(second, line)

    def test_killed_it_ends_and_refuses_connections(self):
        """Open connections end, and new connections are refused."""
        there = self.connect()
        self.echo(there, b'one\n')
        self.relay.kill()
        with there.makefile('rb') as answer:
            self.assertEqual(b'', answer.read())
        self.assertRaises(ConnectionRefusedError, self.connect)
        self.relay.start()
        self.relay.wait_ready()
        self.echo(self.connect(), b'two\n')

    def test_without_a_server_connections_end(self):
        """A connection ends if the target does not listen."""
        self.server.shutdown()
        self.server.server_close()
        with self.connect().makefile('rb') as answer:
            self.assertEqual(b'', answer.read())
