# SPDX-License-Identifier: Apache-2.0
"""The start of the agent, without a database of nova, and its reload."""

import pathlib
import subprocess
import sys

import fixtures
from oslo_config import cfg
import testtools

from nova_aggregate_mirror.cmd import agent
from nova_aggregate_mirror import conf
from tests import placement_service

NOVA_CONF = """
[DEFAULT]
state_path = %(directory)s
[api_database]
connection = sqlite://
[aggregate_mirror]
metrics_port = 0
[placement]
auth_type = admin_token
endpoint = %(url)s
token = %(token)s
"""


class TestStart(testtools.TestCase):

    def start(self, url='', token='', change=('', '')):
        """Run the agent, which cannot lead, until it has started.

        :returns: its exit status, and the lines of its log
        """
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        conf = directory / 'nova.conf'
        conf.write_text(NOVA_CONF.replace(*change) % {
            'directory': directory, 'url': url, 'token': token})
        with subprocess.Popen(
                [sys.executable, '-W', 'ignore', '-c', 'import sys; from '
                 'nova_aggregate_mirror.cmd import agent; '
                 'sys.exit(agent.main())', '--config-file', str(conf)],
                text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT) as process:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if 'Started' in line:
                    process.terminate()
        return process.returncode, lines

    def access(self, url, token):
        """Return the line about placement."""
        status, lines = self.start(url, token)
        self.assertEqual(0, status)
        line, = [line for line in lines if 'Placement' in line]
        return line

    def test_access_to_placement(self):
        """One line says whether it works, also of an agent on standby."""
        placement = self.useFixture(placement_service.PlacementService())
        line = self.access(placement.url, placement_service.TOKEN)
        self.assertIn('INFO', line)
        self.assertIn(placement.url, line)
        line = self.access(placement.url, 'of-nobody')
        self.assertIn('WARNING', line)
        self.assertIn('answered 403', line)

    def test_what_keeps_it_from_running(self):
        """It prints a line with the option, and exits with 255."""
        for change, expected in (
                (('metrics_port = 0', 'sync_interval = soon'),
                 'sync_interval'),
                (('auth_type = admin_token', ''), 'auth_type'),
                (('connection = sqlite://', ''), '[api_database]')):
            status, lines = self.start(change=change)
            self.assertEqual((255, 1), (status, len(lines)), lines)
            self.assertIn(expected, lines[0])


class TestReload(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.logger = self.useFixture(fixtures.FakeLogger())
        self.path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'nova.conf')
        self.conf = cfg.ConfigOpts()
        self.conf.register_opt(cfg.StrOpt('state_path', default='/state'))
        conf.register_opts(self.conf)

    def write(self, name, text):
        self.path.write_text('[aggregate_mirror]\n%s = %s\n' % (name, text))

    def test_value_without_a_meaning(self):
        """The previous value stays, and the brake with it."""
        self.write('max_removed_share', '0.2')
        self.conf(['--config-file', str(self.path)])
        for text in 'nan', '-0.0':
            self.write('max_removed_share', text)
            agent.reload_options(self.conf)
            self.assertIn('[aggregate_mirror] max_removed_share in %s is "%s"'
                          % (self.path, text), self.logger.output)
            self.assertEqual(0.2, self.conf.aggregate_mirror.max_removed_share)

    def test_invalid_value(self):
        """The previous value stays, not the default: prune must not begin."""
        self.write('prune', 'false')
        self.conf(['--config-file', str(self.path)])
        for text, expected in (('flase', False), ('', False), ('true', True)):
            self.write('prune', text)
            agent.reload_options(self.conf)
            self.assertEqual(expected, self.conf.aggregate_mirror.prune)
        self.assertEqual(2, self.logger.output.count('cannot be used'))
