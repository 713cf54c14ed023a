# SPDX-License-Identifier: Apache-2.0
"""A selection from the table of situations, played on the cloud."""

import subprocess
import sys

from testtools import content

from tests.cloud.integration import base

# Of each kind; none of them restarts nova-scheduler.
SELECTED = ('no-vcpu', 'trait', 'group-trait', 'disabled', 'not-in-zone',
            'forced', 'anti-affinity', 'migrate')
PATIENCE = 900


class TestSituations(base.TestCase):

    def run_tool(self, *argv):
        return subprocess.run(
            [sys.executable, str(base.TOOL), '--directory',
             str(self.cloud.state.directory), 'situations', *argv],
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
            timeout=PATIENCE)

    def test_selection(self):
        """Each is explained, and the advice lets the request succeed."""
        done = self.run_tool(*(
            word for name in SELECTED for word in ('--only', name)))
        self.addDetail('situations', content.text_content(
            done.stdout + done.stderr))
        self.assertEqual(0, done.returncode, 'see the details')
        self.assertIn('%d situations, %d as expected, 0 failed' % (
            len(SELECTED), len(SELECTED)), done.stdout)
