# SPDX-License-Identifier: Apache-2.0
"""A selection from the table of situations, played on the cloud."""

from tests.cloud.integration import base
from tests.cloud.integration import tool

# Of each kind; none of them restarts nova-scheduler.
SELECTED = ('no-vcpu', 'trait', 'group-trait', 'disabled', 'not-in-zone',
            'forced', 'anti-affinity', 'migrate', 'other-segment',
            'cell-down', 'group-room', 'name-conflict', 'no-policy',
            'pci-alias', 'units', 'unknown-class', 'unknown-trait')


class TestSituations(base.TestCase):

    def test_selection(self):
        """Each is explained, and the step lets the request succeed."""
        selected = ['--only=%s' % name for name in SELECTED]
        printed = tool.check(self, tool.call(
            '--directory', self.cloud.state.directory, 'situations',
            *selected))
        self.assertIn('%d situations, %d as expected, 0 failed' % (
            len(SELECTED), len(SELECTED)), printed)
