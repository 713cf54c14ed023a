# SPDX-License-Identifier: Apache-2.0
"""The start of the agent, without a database of nova."""

import pathlib
import subprocess
import sys

import fixtures
import testtools

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

    def start(self, url, token):
        """Return what the agent, which cannot lead, logs of placement."""
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        conf = directory / 'nova.conf'
        conf.write_text(NOVA_CONF % {
            'directory': directory, 'url': url, 'token': token})
        with subprocess.Popen(
                [sys.executable, '-W', 'ignore', '-c', 'import sys; from '
                 'nova_aggregate_mirror.cmd import agent; '
                 'sys.exit(agent.main())', '--config-file', str(conf)],
                text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT) as process:
            lines = []
            for line in process.stdout:
                if 'Placement' in line:
                    lines.append(line)
                elif 'Started' in line:
                    process.terminate()
        self.assertEqual(0, process.returncode)
        return lines

    def test_access_to_placement(self):
        """One line says whether it works, also of an agent on standby."""
        placement = self.useFixture(placement_service.PlacementService())
        line, = self.start(placement.url, placement_service.TOKEN)
        self.assertIn('INFO', line)
        self.assertIn(placement.url, line)
        line, = self.start(placement.url, 'of-nobody')
        self.assertIn('WARNING', line)
        self.assertIn('answered 403', line)
