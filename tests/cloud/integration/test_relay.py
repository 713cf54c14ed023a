# SPDX-License-Identifier: Apache-2.0
"""A wire between two services that fails in each way."""

import socket

import testtools

from tests.cloud.outages import wires

PATIENCE = 20
# Long enough to notice data that was not held.
MOMENT = 0.2


class TestWire(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.server = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(self.server.close)
        self.server.settimeout(PATIENCE)
        running = wires.Wires()
        running.__enter__()
        self.addCleanup(running.__exit__)
        self.wire = running.to(self.server.getsockname()[1])

    def connect(self):
        """Return both sides of a connection through the wire."""
        here = socket.create_connection(('127.0.0.1', self.wire.port),
                                        PATIENCE)
        self.addCleanup(here.close)
        there, _address = self.server.accept()
        self.addCleanup(there.close)
        there.settimeout(PATIENCE)
        return here, there

    def assert_silent(self, side):
        """Check that nothing arrives."""
        side.settimeout(MOMENT)
        self.assertRaises(TimeoutError, side.recv, 1)
        side.settimeout(PATIENCE)

    def test_silence_is_delivered_late(self):
        """Data and the end of a connection arrive after the silence."""
        here, there = self.connect()
        self.wire.hold()
        here.sendall(b'question')
        here.shutdown(socket.SHUT_WR)
        self.assert_silent(there)
        self.wire.forward()
        self.assertEqual(b'question', there.recv(100))
        self.assertEqual(b'', there.recv(100))

    def test_silence_accepts_connections(self):
        """A new connection is accepted, and gets no answer."""
        self.wire.hold()
        here, there = self.connect()
        there.sendall(b'greeting')
        self.assert_silent(here)

    def test_answer_stops(self):
        """The request arrives, and the first bytes of the answer."""
        here, there = self.connect()
        here.sendall(b'first')
        self.assertEqual(b'first', there.recv(100))
        there.sendall(b'first answer')
        self.assertEqual(b'first answer', here.recv(100))
        self.wire.truncate()
        here.sendall(b'second')
        self.assertEqual(b'second', there.recv(100))
        there.sendall(b'second answer')
        self.assertEqual(b'second a', here.recv(100))
        self.assert_silent(here)
        self.wire.forward()
        self.assertEqual(b'nswer', here.recv(100))

    def test_refused(self):
        """Open connections are reset, and new connections are refused."""
        here, there = self.connect()
        self.wire.refuse()
        for side in here, there:
            self.assertRaises(ConnectionResetError, side.recv, 1)
        self.assertRaises(ConnectionRefusedError, socket.create_connection,
                          ('127.0.0.1', self.wire.port))
        self.wire.forward()
        self.connect()
