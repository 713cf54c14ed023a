# SPDX-License-Identifier: Apache-2.0
"""The smoke test on a cloud of real processes: does it notice errors?"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

from tests import patience

SMOKE = pathlib.Path(__file__).parents[2] / 'devstack' / 'smoke'
MISSING = [name for name in (
    'keystone', 'nova', 'nova_aggregate_mirror', 'openstackclient',
    'osc_placement', 'placement', 'waitress')
    if importlib.util.find_spec(name) is None]


@unittest.skipUnless(
    os.environ.get('AGGREGATE_MIRROR_TEST_ALL'),
    'its decisions are tested offline; it runs with ./tools/test all')
@unittest.skipIf(MISSING, 'no cloud without ' + ', '.join(MISSING))
class TestSmoke(unittest.TestCase):

    def smoke(self, cloud, seconds):
        """Run the smoke test; return its exit status and output."""
        programs = pathlib.Path(sys.executable).parent
        done = subprocess.run(
            [SMOKE], text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={
                **cloud.environment(),
                'AGGREGATE_MIRROR_AGENT': cloud.config.url('agent-1'),
                'AGGREGATE_MIRROR_PATIENCE': str(seconds),
                'PATH': '%s:/usr/bin:/bin' % programs})
        return done.returncode, done.stdout

    def test_with_and_without_an_agent(self):
        """The mirroring that nova itself does inline is not enough."""
        from tests.cloud import small
        cloud = self.enterContext(small.running(
            nova_options={'aggregate_mirror': {'sync_interval': '1'}}))
        # Sorted by name, the first host has three nodes.
        cloud.seed_hosts(['cmp-2'])
        cloud.seed_hosts(['cmp-1'], nodes_per_host=3)
        status, output = self.smoke(cloud, 5)
        self.assertEqual(1, status, output)
        self.assertIn('FAILED: members: ', output)
        cloud.start('agent-1')
        status, output = self.smoke(cloud, patience.seconds(60))
        self.assertEqual(0, status, output)
        self.assertTrue(output.endswith('\nPASSED\n'), output)
        left = cloud.nova().get('/os-aggregates').json()
        self.assertEqual([], left['aggregates'])
