# SPDX-License-Identifier: Apache-2.0
"""Removal of a cloud while RabbitMQ fails."""

import os
import pathlib

import fixtures
import testtools

from tests.cloud import full
from tests.cloud import processes
from tests.cloud import statefile

NAME = 'mirror_cloud_0123abcd'


class TestVirtualHost(testtools.TestCase):

    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.program = folder / 'rabbitmqctl'
        self.useFixture(fixtures.EnvironmentVariable(
            'PATH', os.pathsep.join([str(folder), os.environ['PATH']])))
        self.state = statefile.State.create(folder / 'cloud')
        self.state.complete = True
        self.state.add(statefile.Resource('virtual host', '', NAME))

    def rabbitmqctl(self, delete, listed):
        """Set what rabbitmqctl does on delete_vhost and on list_vhosts."""
        self.program.write_text(
            '#!/bin/sh\ncase $2 in\ndelete_vhost) %s;;\n'
            'list_vhosts) %s;;\nesac\n' % (delete, listed))
        self.program.chmod(0o755)

    def assert_not_removed(self, why):
        """Check that each attempt reports the error and keeps the state."""
        for _time in range(2):
            error = self.assertRaises(
                processes.CloudError, full.down,
                statefile.State.read(self.state.directory))
            self.assertIn(why, str(error))
            self.assertFalse(
                statefile.State.read(self.state.directory).complete)

    def assert_removed(self):
        """Check that it is removed once RabbitMQ answers."""
        self.rabbitmqctl('exit 0', 'exit 1')
        full.down(statefile.State.read(self.state.directory))
        self.assertFalse(self.state.directory.exists())

    def test_existing_one_is_not_forgotten(self):
        """RabbitMQ may have been unavailable: down can be repeated."""
        self.rabbitmqctl('echo away >&2; exit 69', 'echo name; echo %s' % NAME)
        self.assert_not_removed('delete_vhost failed: away')
        self.assert_removed()

    def test_unknown_one_is_not_forgotten(self):
        """If RabbitMQ cannot list it, the virtual host may still exist."""
        self.rabbitmqctl('exit 69', 'echo away >&2; exit 69')
        self.assert_not_removed('list_vhosts failed: away')
        self.assert_removed()

    def test_absent_one_is_removed(self):
        """A virtual host that does not exist counts as removed."""
        self.rabbitmqctl('exit 67', 'echo name; echo /; echo %sef' % NAME)
        full.down(self.state)
        self.assertFalse(self.state.directory.exists())

    def test_hanging_server_is_reported(self):
        """A RabbitMQ that hangs is reported after a timeout."""
        with fixtures.MonkeyPatch('tests.cloud.servers.SECONDS', 0.5):
            self.rabbitmqctl('exec sleep 60', 'exec sleep 60')
            self.assert_not_removed('list_vhosts took over 0.5 s')
        self.assert_removed()
