# SPDX-License-Identifier: Apache-2.0
"""The cloud of the tests, started once per run, and the base test case."""

import atexit
from collections import abc
import functools
import os
import pathlib
import subprocess
from typing import Any

import testtools

from tests.cloud import cloud
from tests.cloud import environment
from tests.cloud import forks
from tests.cloud.integration import tool
from tests.cloud import observer
from tests.cloud.situations import furnish
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers
from tests.cloud import statefile
from tests import patience

VARIABLE = 'AGGREGATE_MIRROR_CLOUD'
PATIENCE = scene.PATIENCE
of_nova_alone = testtools.skipUnless(
    os.environ.get('AGGREGATE_MIRROR_TEST_ALL'),
    'it shows what nova does by itself, and runs with ./tools/test all')
HOST = servers.HOST


class TestCase(testtools.TestCase):
    """A test on the full cloud that ends with placement equal to nova.

    That is checked after the clean-up; tests compare what they created
    themselves.
    """

    directory = environment.TOP / '.cloud-test'
    foreign: dict[str, str] = {}
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
            tool.check(self, _up(directory))
        self.read_cloud(directory)
        if self.without_agents:
            self.cloud.kill(*cloud.AGENTS)
        else:
            self.cloud.start(*cloud.AGENTS)
        self.addCleanup(self.assert_equal)

    def read_cloud(self, directory: pathlib.Path) -> None:
        """Read which processes the cloud has."""
        self.cloud = cloud.Cloud(statefile.State.read(directory))
        self.cloud.forked = _CLIENTS(self.cloud.programs)

    def run_client(self, *argv: str) -> str:
        """Run a client that has to succeed; return its output."""
        status, out, err = self.cloud.run(*argv)
        self.assertEqual(0, status, '%s: %s%s' % (' '.join(argv), out, err))
        return out

    @functools.cached_property
    def scene(self) -> scene.Scene:
        """What creates flavors, servers and others until the test ends."""
        return scene.Scene(self.cloud, schedulers.Schedulers(self.cloud),
                           self.addCleanup)

    def stop_agents(self) -> None:
        """Stop the agents until the test ends."""
        self.addCleanup(self.cloud.start, *cloud.AGENTS)
        self.cloud.kill(*cloud.AGENTS)

    def append_options(self, files: abc.Mapping[str, str], text: str) -> None:
        """Restart processes with more in their files, until the test ends."""
        def restart() -> None:
            self.cloud.kill(*files)
            self.cloud.start(*files)

        # Cleanups run in reverse order: this restarts with the old files.
        self.addCleanup(restart)
        for file in files.values():
            path = pathlib.Path(self.cloud.config.path(file))
            before = path.read_text()
            self.addCleanup(path.write_text, before)
            path.write_text(before + text)
        restart()

    def aggregate(self) -> str:
        """Create an aggregate for this test alone; return its name."""
        return furnish.aggregate(self.scene)

    def add_host(self, aggregate: str, host: str) -> None:
        """Add a host to an aggregate with the real client."""
        self.run_client('openstack', 'aggregate', 'add', 'host', aggregate,
                        host)

    def boot(self, network: dict[str, str] | None = None,
             flavor: str = 'tiny', zone: str = '') -> dict[str, Any]:
        """Create a server, by default on the public network; return it."""
        request = servers.Create(
            self.scene, flavor, zone,
            values={'networks': [network]} if network else {})
        request.make()
        server, = request.servers
        return server

    def placement_has(self, aggregate: str) -> frozenset[str]:
        """Return the nodes that placement has in a nova aggregate, by name."""
        rows = observer.compared(self.cloud, self.foreign)
        return frozenset(row.node.name for row in rows
                         if aggregate in row.placement)

    def assert_equal(self) -> None:
        """Check that placement's aggregates equal nova's.

        Running agents get time to repair what failed inline. Without agents
        the check is made once.
        """
        agents = any(self.cloud.process(name).alive() for name in cloud.AGENTS)
        rows = observer.compared(self.cloud, self.foreign, PATIENCE * agents)
        self.assertTrue(rows and all(row.equal for row in rows),
                        '\n' + observer.table(rows))


# All tests share them.
_CLIENTS = functools.cache(forks.Clients)


@functools.cache
def _up(directory: pathlib.Path) -> 'subprocess.CompletedProcess[str]':
    """Start the cloud until the run ends; return the completed command.

    A failure is cached too: each test would otherwise wait minutes for another
    attempt.
    """
    # A killed run may have left a cloud.
    tool.call('--directory', directory, 'down')
    atexit.register(tool.call, '--directory', directory, 'down')
    # With the installation of the packages.
    return tool.call('--directory', directory, 'up',
                     seconds=patience.seconds(3600))
