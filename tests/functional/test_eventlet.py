# SPDX-License-Identifier: Apache-2.0
"""Nova-api on eventlet, its own server up to nova 31."""

from concurrent import futures
import os
import pathlib
import sys
from typing import Any

import requests
import testtools

from tests.cloud import loopback
from tests.functional import nova_api
from tests.functional import test_nova_api
from tests import patience
from tests import processes

PROGRAM = pathlib.Path(sys.prefix, 'bin', 'nova-api-os-compute')
CONF = """
[DEFAULT]
osapi_compute_listen = 127.0.0.1
osapi_compute_listen_port = %(port)d
osapi_compute_workers = 1
[wsgi]
api_paste_config = %(paste)s
"""
PATIENCE = patience.seconds(300)
STARTED = 'osapi_compute listening on'


@testtools.skipUnless(
    PROGRAM.exists(), 'this nova has no nova-api that serves by itself')
class EventletTest(test_nova_api.NovaApiTest):

    def start(self, ours: str = '') -> None:
        """Start nova-api with these lines in [aggregate_mirror]."""
        self.configure(ours)
        self.port, = loopback.free_ports(1)
        extra = self.path / 'eventlet.conf'
        extra.write_text(CONF % {
            'port': self.port, 'paste': self.path / 'api-paste.ini'})
        environ = os.environ.copy()
        environ.pop('OS_NOVA_DISABLE_EVENTLET_PATCHING', None)
        self.process, lines = processes.begin(
            self, [sys.executable, PROGRAM, '--config-file',
                   self.path / 'nova.conf', '--config-file', extra],
            STARTED, PATIENCE, env=environ)
        self.log = ''.join(lines)
        self.assertIn(STARTED, self.log)

    def send(self, method: str, path: str, body: Any = None) -> int:
        """Send a request to nova-api and return the status."""
        return requests.request(
            method, 'http://127.0.0.1:%d/v2.1%s' % (self.port, path),
            json=body, headers=nova_api.ADMINISTRATOR,
            timeout=PATIENCE / 2).status_code

    def end(self) -> test_nova_api.Ended:
        """Stop nova-api and return its output."""
        self.process.kill()
        return test_nova_api.Ended(
            True, [], self.log + self.process.stderr.read())

    def test_story(self) -> None:
        """Mirroring works with green threads as with native threads."""
        self.start()
        self.assertEqual(
            [200] * len(test_nova_api.STORY),
            [self.send(*request) for request in test_nova_api.STORY])
        ended = self.end()
        self.assertIn(test_nova_api.ACTIVE, ended.log)
        self.assertEqual([], ended.lines('ERROR') + ended.lines('WARNING'))
        self.assertEqual((2, []), (self.mirrored_nodes(), self.rows()))

    def test_others_are_served_while_placement_hangs(self) -> None:
        """A call that waits for placement does not block other users."""
        self.start('inline_timeout = %d' % patience.LONGEST_CALL)
        create, add = test_nova_api.STORY[0], test_nova_api.STORY[3]
        self.send(*create)
        self.cloud.placement.hang()
        with futures.ThreadPoolExecutor() as executor:
            call = executor.submit(self.send, *add)
            try:
                self.assertTrue(self.cloud.placement.stuck.wait(PATIENCE))
                self.assertEqual(200, self.send('GET', '/os-aggregates'))
                self.assertFalse(call.done())
            finally:
                self.cloud.placement.recover()
            self.assertEqual(200, call.result(PATIENCE))
