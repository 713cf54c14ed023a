# SPDX-License-Identifier: Apache-2.0
"""The cloud of the tests, started once per run, and the base test case."""

import atexit
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any
import uuid

import testtools

from tests.cloud import clients
from tests.cloud import cloud
from tests.cloud import command
from tests.cloud import environment
from tests.cloud import observer
from tests.cloud.situations import schedulers
from tests.cloud import statefile

TOOL = environment.TOP / 'tools' / 'cloud'
VARIABLE = 'AGGREGATE_MIRROR_CLOUD'
PATIENCE = 180
_ALL = os.environ.get('AGGREGATE_MIRROR_TEST_ALL')
of_nova_alone = testtools.skipUnless(
    _ALL, 'it shows what nova does by itself, and runs with ./tools/test all')
in_unit_tests = testtools.skipUnless(
    _ALL, 'unit tests show the decision; it runs with ./tools/test all')
# A key of nova's servers.
HOST = 'OS-EXT-SRV-ATTR:host'
# Each poll of a server takes 0.1 s of processor time, as nova asks neutron.
POLL = 0.5
AGENTS = ('agent-1', 'agent-2')


class TestCase(testtools.TestCase):
    """A test on the full cloud that ends with placement equal to nova.

    That is checked after the clean-up; tests compare what they created
    themselves.
    """

    directory = environment.TOP / '.cloud-test'
    foreign: Mapping[str, str] = {}
    """Aggregates that are not nova's and that stay, UUID to name."""
    without_agents = False
    """Whether the agents are stopped, which would repair what a call missed.

    They remain stopped until a test needs them: each start imports nova.
    """
    last = False
    """Whether the cloud is not as before after the test."""

    def setUp(self) -> None:
        super().setUp()
        directory = self.directory
        if named := os.environ.get(VARIABLE):
            directory = pathlib.Path(named).absolute()
        else:
            done = _up(directory)
            if done.returncode == command.UNAVAILABLE:
                self.skipTest(done.stderr[-500:])
            self.assertEqual(0, done.returncode,
                             done.stdout[-2000:] + done.stderr[-5000:])
        self.read_cloud(directory)
        if self.without_agents:
            self._kill_agents()
        else:
            self.start_agents()
        self.addCleanup(self.assert_equal)

    def read_cloud(self, directory: pathlib.Path) -> None:
        """Read which processes the cloud has."""
        self.cloud = cloud.Cloud(statefile.State.read(directory))
        self.cloud.forked = _clients(self.cloud.programs)

    def run_client(self, *argv: str, controller: int = 1) -> Any:
        """Run a client that has to succeed.

        :returns: the parsed JSON, or the text if it printed no JSON
        """
        status, out, err = self.cloud.through(controller).run(*argv)
        self.assertEqual(0, status, '%s: %s%s' % (' '.join(argv), out, err))
        return json.loads(out) if 'json' in argv else out

    def openstack(self, *argv: str, controller: int = 1) -> Any:
        """Run openstack and return what it shows or lists."""
        return self.run_client('openstack', *argv, '-f', 'json',
                               controller=controller)

    def stop_agents(self) -> None:
        """Stop the agents until the test ends or starts them again."""
        self.addCleanup(self.start_agents)
        self._kill_agents()

    def start_agents(self) -> None:
        """Start the agents that were stopped."""
        stopped = [each for each in map(self.cloud.process, AGENTS)
                   if not each.alive()]
        # Both import nova at the same time.
        for each in stopped:
            self.cloud.state.start(each)
        for each in stopped:
            each.wait_ready()

    def _kill_agents(self) -> None:
        for name in AGENTS:
            if self.cloud.process(name).alive():
                self.cloud.process(name).kill()

    def aggregate(self, zone: str = '') -> str:
        """Create an aggregate for this test alone; return its name."""
        name = 'aggregate-%s' % uuid.uuid4().hex[:8]
        self.cloud.nova().post('/os-aggregates', json={'aggregate': {
            'name': name, 'availability_zone': zone or None}})
        self.addCleanup(self.delete_aggregate, name)
        return name

    def add_host(self, aggregate: str, host: str, controller: int = 1) -> None:
        """Add a host to an aggregate with the real client."""
        self.openstack('aggregate', 'add', 'host', aggregate, host,
                       controller=controller)

    def delete_aggregate(self, name: str) -> None:
        """Empty an aggregate and delete it, if it exists."""
        nova = self.cloud.nova()
        for each in nova.get('/os-aggregates').json()['aggregates']:
            if each['name'] == name:
                url = '/os-aggregates/%s' % each['id']
                for host in each['hosts']:
                    nova.post(url + '/action',
                              json={'remove_host': {'host': host}})
                nova.delete(url)

    def boot(self, network: dict[str, str] | None = None,
             flavor: str = 'tiny', zone: str = '',
             others: Sequence[dict[str, str]] = (),
             **values: Any) -> dict[str, Any]:
        """Create a server directly by REST, and wait for the result.

        :param network: an entry of ``networks`` in nova's API; by default the
            public network
        :param others: further entries
        :param values: of the request, added or instead of others
        :returns: the server, in the final status that nova gave it
        """
        nova = self.cloud.nova()
        flavors = {each['name']: each['id'] for each
                   in nova.get('/flavors').json()['flavors']}
        named = {'availability_zone': zone} if zone else {}
        made = nova.post('/servers', json={'server': named | {
            'name': 'server-%s' % uuid.uuid4().hex[:8],
            'flavorRef': flavors[flavor], 'imageRef': self.image(),
            'networks': [network or self.public(), *others]} | values
        }).json()['server']
        self.addCleanup(self.delete_server, made)
        server: dict[str, Any] = {}

        building = '/servers?uuid=%s&status=BUILD' % made['id']

        def done() -> bool:
            # Unlike a server, a list is read without neutron.
            if nova.get(building).json()['servers']:
                return False
            server.update(
                nova.get('/servers/%s' % made['id']).json()['server'])
            # Nova sets the status ERROR first, and the fault later.
            return (server['status'] != 'BUILD'
                    and (server['status'] != 'ERROR' or 'fault' in server))

        self.wait_until(done, 'nova is done with %s' % made['id'])
        return server

    def image(self) -> str:
        """Return the ID of the image."""
        images = self.cloud.rest('image').get('/v2/images?name=empty').json()
        return str(images['images'][0]['id'])

    def public(self) -> dict[str, str]:
        """Return the public network, as an entry of ``networks``."""
        network, = self.cloud.rest('network').get(
            '/v2.0/networks?name=public').json()['networks']
        return {'uuid': network['id']}

    def flavor(self, **extra_specs: str) -> str:
        """Create a flavor for this test alone; return its name and ID."""
        nova, name = self.cloud.nova(), 'flavor-%s' % uuid.uuid4().hex[:8]
        nova.post('/flavors', json={'flavor': {
            'name': name, 'vcpus': 1, 'ram': 96, 'disk': 1, 'id': name}})
        self.addCleanup(nova.delete, '/flavors/%s' % name)
        if extra_specs:
            nova.post('/flavors/%s/os-extra_specs' % name,
                      json={'extra_specs': extra_specs})
        return name

    def remove_quota(self) -> None:
        """Let the administrator have any number of servers in this test."""
        nova = self.cloud.nova()
        quota = '/os-quota-sets/%s' % nova.get_project_id()
        self.addCleanup(nova.delete, quota)
        nova.put(quota, json={'quota_set': {
            'cores': -1, 'ram': -1, 'instances': -1}})

    def use_scheduler(self, name: str) -> None:
        """Configure nova-scheduler until the test ends.

        :param name: a key of ``schedulers.OPTIONS``
        """
        used = schedulers.Schedulers(self.cloud)
        self.addCleanup(used.use, '')
        used.use(name)

    def uuid_of(self, aggregate: str) -> str:
        """Return the UUID of an aggregate."""
        return observer.Observer(self.cloud, {}).uuid(aggregate)

    def url_of(self, aggregate: str) -> str:
        """Return the path of an aggregate in nova's API."""
        return '/os-aggregates/%s' % observer.Observer(
            self.cloud, {}).identifier(aggregate)

    def nodes(self, *hosts: str) -> set[str]:
        """Return the providers of the compute nodes of some hosts."""
        return {node.uuid for node in self.cloud.nodes() if node.host in hosts}

    def move(self, provider: str, add: Iterable[str] = (),
             remove: Iterable[str] = ()) -> None:
        """Change a provider's aggregates, as another tool would."""
        self.cloud.change_aggregates(
            provider, lambda before: {*before, *add} - {*remove})

    def delete_server(self, server: dict[str, Any]) -> None:
        """Delete a server if it exists, and wait until it no longer exists.

        Its host still has it for a while after the status is DELETED.
        """
        nova, url = self.cloud.nova(), '/servers/%s' % server['id']
        nova.delete(url, raise_exc=False)
        self.wait_until(
            lambda: nova.get(url, raise_exc=False).status_code == 404,
            'nova has deleted %s' % server['id'])

    def wait_for(self, server: dict[str, Any], status: str,
                 *hosts: str | None) -> dict[str, Any]:
        """Wait for a server's status and host; return the server.

        :param hosts: the server has to be on one of these; None means no host
        """
        url = '/servers/%s' % server['id']

        def shown() -> bool:
            found = self.cloud.nova().get(url).json()['server']
            self.assertNotEqual('ERROR', found['status'], found)
            return found['status'] == status and found[HOST] in hosts

        self.wait_until(shown, 'the server is %s on one of %s' % (
            status, hosts))
        return self.cloud.nova().get(url).json()['server']

    def hosts_tried(self, server: dict[str, Any]) -> list[str]:
        """Return the hosts that tried to build a server, in order."""
        nova = self.cloud.nova()
        url = '/servers/%s/os-instance-actions' % server['id']
        created, = (each['request_id'] for each
                    in nova.get(url).json()['instanceActions']
                    if each['action'] == 'create')
        events = nova.get('%s/%s' % (url, created)).json()['instanceAction']
        # Nova lists the newest first, and its times have no fractions of a
        # second.
        return [each['host'] for each in sorted(
            reversed(events['events']), key=lambda event: event['start_time'])
            if each['event'] == 'compute__do_build_and_run_instance']

    def placement_has(self, aggregate: str) -> frozenset[str]:
        """Return the nodes that placement has in a nova aggregate, by name."""
        return frozenset(row.node.name for row in self._rows()
                         if aggregate in row.placement)

    def wait_until(self, done: Callable[[], bool], what: str) -> None:
        """Wait for a result of other processes, or fail."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > deadline:
                self.fail('%s: not within %s s' % (what, PATIENCE))
            time.sleep(POLL)

    def assert_equal(self) -> None:
        """Check that placement's aggregates equal nova's.

        Running agents get time to repair what failed inline. Without agents
        the check is made once.
        """
        agents = any(self.cloud.process(name).alive() for name in AGENTS)
        deadline = time.monotonic() + PATIENCE * agents
        rows = self._rows()
        while time.monotonic() < deadline and not all(
                row.equal for row in rows):
            time.sleep(POLL)
            rows = self._rows()
        self.assertTrue(rows)
        self.assertTrue(all(row.equal for row in rows),
                        '\n' + observer.table(rows))

    def _rows(self) -> list[observer.Row]:
        return observer.Observer(
            self.cloud, self.foreign).compare(self.cloud.nodes())


@functools.cache
def _clients(programs: pathlib.Path) -> clients.Clients:
    """Return the clients that all tests share."""
    return clients.Clients(programs)


@functools.cache
def _up(directory: pathlib.Path) -> 'subprocess.CompletedProcess[str]':
    """Start the cloud until the run ends; return the completed command.

    A failure is cached too: each test would otherwise wait minutes for another
    attempt.
    """
    tool = [sys.executable, str(TOOL), '--directory', str(directory)]
    # A killed run may have left a cloud.
    subprocess.run([*tool, 'down'], capture_output=True)
    atexit.register(subprocess.run, [*tool, 'down'], capture_output=True)
    return subprocess.run([*tool, 'up'], capture_output=True, text=True)
