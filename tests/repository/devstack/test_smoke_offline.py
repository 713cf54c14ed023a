# SPDX-License-Identifier: Apache-2.0
"""The smoke test with a cloud that a script stands for."""

import pathlib
import subprocess
import sys

import fixtures
import testtools

HERE = pathlib.Path(__file__).parent
SMOKE = HERE.parents[2] / 'devstack' / 'smoke'


class TestSmoke(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.programs = self.cloud / 'bin'
        self.programs.mkdir()
        for program in ('curl', 'openstack'):
            (self.programs / program).symlink_to(HERE / 'cloud')
        self.environment = {
            'CLOUD': str(self.cloud), 'AGGREGATE_MIRROR_PATIENCE': '0',
            'PATH': '%s:%s:/usr/bin:/bin' % (
                self.programs, pathlib.Path(sys.executable).parent)}

    def smoke(self, failing=''):
        """Run the smoke test; return its exit status and output."""
        done = subprocess.run([SMOKE], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**self.environment, 'FAILING': failing})
        return done.returncode, done.stdout

    def test_it_passes_where_all_is_well(self):
        """No compute is asked for its uptime, and the token is no argument.

        One that is down would delay nova's answer by a minute.
        """
        status, output = self.smoke()
        self.assertEqual(0, status, output)
        self.assertTrue(output.endswith('\nPASSED\n'), output)
        commands = (self.cloud / 'commands').read_text()
        self.assertIn('aggregate set --generation 7 --aggregate '
                      'another-aggregate node-1\n', commands)
        for text in 'hypervisor show', '2.88', 'secret-token':
            self.assertNotIn(text, commands)
        headers = (self.cloud / 'headers').read_text()
        for text in 'OpenStack-API-Version: compute 2.87\n', 'secret-token':
            self.assertIn(text, headers)

    def test_nova_that_fails_or_is_not_in_the_region(self):
        """Each is reported as such."""
        status, output = self.smoke('curl *os-hypervisors*')
        self.assertEqual(1, status, output)
        self.assertIn('HTTP 500', output)
        self.assertIn('FAILED: nova does not show its compute nodes at '
                      'http://nova/os-hypervisors/detail\n', output)
        self.assertNotIn('has no compute node', output)
        self.environment['OS_REGION_NAME'] = 'two'
        self.assertEqual(
            (1, 'FAILED: the catalog has no public endpoint of nova\n'),
            self.smoke())

    def test_each_failing_command_fails_the_test(self):
        """Its error is the last output, not what is concluded from it."""
        for failing in ('*compute service list*', '*token issue*',
                        '*catalog show*', '*aggregate create*',
                        '*aggregate add*', '*provider list*',
                        '*provider show*', '*provider aggregate list*',
                        '*aggregate remove*', '*/metrics'):
            (self.cloud / 'member').unlink(missing_ok=True)
            status, output = self.smoke(failing)
            self.assertNotEqual(0, status, failing)
            self.assertTrue(output.splitlines()[-1].startswith('HTTP 500'),
                            output)
