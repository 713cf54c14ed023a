# SPDX-License-Identifier: Apache-2.0
"""How the status command prints a result."""

from oslo_upgradecheck import upgradecheck
import testtools

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.cmd import status


class TestDetails(testtools.TestCase):

    def test_details_keep_their_lines(self):
        """Prose is wrapped between words; a command is never wrapped."""
        prose = 'nova-aggregate-mirror-status ' * 5
        command = '  ' + 'nova-aggregate-mirror-manage db sync; ' * 3
        details = status.Checks(dict)._get_details(upgradecheck.Result(
            checks.Code.FAILURE, '%s\n%s' % (prose, command)))
        *lines, last = ('Details: ' + details).splitlines()
        self.assertEqual(command, last)
        self.assertEqual(3, len(lines))
        for line in lines:
            self.assertGreaterEqual(60, len(line))
            self.assertLessEqual(
                set(line.split()),
                {'Details:', 'nova-aggregate-mirror-status'})
