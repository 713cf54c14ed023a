# SPDX-License-Identifier: Apache-2.0
"""A new compute host, from its first start to its first server.

Users create servers all the while. The new host is empty, so that nova's
weighers prefer it to all others.
"""

from concurrent import futures
import configparser
import contextlib
import dataclasses
import json
import threading
from typing import Any
import uuid

import fixtures

from tests.cloud import config
from tests.cloud import config_files
from tests.cloud import full
from tests.cloud.integration import base
from tests.cloud.situations import furnish
from tests.cloud.situations import scene

# The host whose processes are the model of the new host's.
MODEL = 'compute-1'
# Nova registers new compute services as disabled.
DISABLED = '''
[DEFAULT]
enable_new_services = false
'''


class NewHost(fixtures.Fixture):
    """A host whose nova-compute runs for the first time, after ``start``."""

    def __init__(self, at: scene.Scene) -> None:
        super().__init__()
        self._cloud = at.cloud
        self._wait_until = at.wait_until
        self.name = 'new-%s' % uuid.uuid4().hex[:8]

    def start(self) -> None:
        """Start it; return when nova, the cell and placement have it."""
        conf, model = (self._cloud.config.path('%s.conf' % name)
                       for name in (self.name, MODEL))
        parser = configparser.RawConfigParser()
        parser.read(model)
        state = self._cloud.state.directory / 'state' / self.name
        state.mkdir()
        parser['DEFAULT'].update(host=self.name, state_path=str(state))
        config_files.write_file(self._cloud.config, conf, parser)
        self.addCleanup(self._forget)
        *agents, _networks = self._cloud.process('network-agents').argv
        networks = json.dumps({self.name: [config.PUBLIC]})
        self._start('network-agents-%s' % self.name, [*agents, networks])
        self._start(self.name, [conf if each == model else each
                                for each in self._cloud.process(MODEL).argv])
        self._wait_until(self._is_complete, '%s has joined' % self.name)

    def servers(self) -> list[str]:
        """Return the IDs of the servers on the host."""
        found = self._cloud.nova().get(
            '/servers?all_tenants=1&host=%s' % self.name).json()['servers']
        return [each['id'] for each in found]

    def _start(self, name: str, argv: list[str]) -> None:
        state = self._cloud.state
        process = dataclasses.replace(
            state.process(MODEL), name=name, argv=argv, log=state.log(name))
        self.addCleanup(state.stop, process)
        state.start(process)

    def _is_complete(self) -> bool:
        self._cloud.process(self.name).check()
        return not full.missing(self._cloud, [self.name])

    def services(self) -> list[dict[str, Any]]:
        """Return the host's compute services, as nova's API shows them."""
        return self._cloud.nova().get(
            '/os-services?host=%s' % self.name).json()['services']

    def _forget(self) -> None:
        """Delete it as an operator does: nova removes its provider."""
        for each in self.services():
            self._cloud.nova().delete('/os-services/%s' % each['id'])
        neutron = self._cloud.rest('network')
        for agent in neutron.get(
                '/v2.0/agents?host=%s' % self.name).json()['agents']:
            neutron.delete('/v2.0/agents/%s' % agent['id'])


class TestWaiting(base.TestCase):

    @contextlib.contextmanager
    def users(self):
        """Let users create one server after the other; yields the servers."""
        servers, stopped = [], threading.Event()

        def create():
            while not stopped.is_set():
                servers.append(self.boot())

        with futures.ThreadPoolExecutor(1) as pool:
            creating = pool.submit(create)
            try:
                yield servers
            finally:
                stopped.set()
            # Raises what it raised.
            creating.result()

    def test_no_server_before_the_zone(self):
        """No server is on the host before placement has it in its zone.

        Placement is unavailable when the host is added, so that the agent has
        to catch up.
        """
        zone = furnish.zone(self.scene)
        # Removed after the servers.
        host = self.useFixture(NewHost(self.scene))
        self.append_options({'conductor': 'nova.conf'}, DISABLED)
        with self.users() as servers, futures.ThreadPoolExecutor(1) as pool:
            host.start()
            [service] = host.services()
            self.assertEqual('disabled', service['status'])
            # One for each other node, and one that would be the new host's.
            count = len(servers) + len(self.cloud.nodes())
            self.scene.wait_until(lambda: len(servers) >= count,
                                  'users have created %s servers' % count)
            self.assertEqual([], host.servers())

            self.cloud.stop('placement')
            self.addCleanup(self.cloud.start, 'placement')
            self.add_host(zone, host.name)
            waiting = pool.submit(
                self.cloud.run, 'openstack', 'aggregate', 'mirror', 'wait',
                host.name, '--timeout', str(base.PATIENCE))
            self.cloud.start('placement')
            status, out, err = waiting.result()
            self.assertEqual(0, status, out + err)
            self.assertEqual({host.name}, self.placement_has(zone))
            self.assertEqual([], host.servers())

            self.run_client('openstack', 'aggregate', 'mirror', 'wait',
                            '--enable', host.name)
            self.scene.wait_until(host.servers, 'a server is on the new host')
        server = self.boot(zone=zone)
        self.assertEqual(host.name, server[base.HOST], server)
