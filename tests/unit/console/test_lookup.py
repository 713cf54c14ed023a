# SPDX-License-Identifier: Apache-2.0
"""Names of zones and hosts that select servers."""

import testtools

from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.console import lookup
from nova_aggregate_mirror import exit_status


class TestUnknown(testtools.TestCase):

    def test_zone(self):
        """It exists if nova or a server has it."""
        for zone, zones, servers in (
                ('', [], 0), ('az-1', ['az-1'], 0), ('old', ['az-1'], 1)):
            self.assertEqual([], lookup.unknown_names(
                zone, zones, [], auditor.Totals(servers), self.fail))
        [problem] = lookup.unknown_names(
            'old', [], [], auditor.Totals(), self.fail)
        self.assertEqual(
            (exit_status.COULD_NOT_RUN, 'nova has no availability zone old, '
             'and no server requests it; nova has none'),
            (problem.status, str(problem)))

    def test_hosts(self):
        """Nova is not asked while each has a server; a dozen are listed."""
        def errors(names, occupied, read):
            return lookup.unknown_names(
                '', [], names, auditor.Totals(hosts={*occupied}), read)

        self.assertEqual([], errors(['h1'], ['h1'], self.fail))
        hosts = ['h%02d' % number for number in range(15)]
        self.assertEqual([], errors(['h01'], [], hosts.copy))
        [problem] = errors(['h1', 'h02'], ['h3'], hosts.copy)
        self.assertEqual(
            'nova has no host h1, and no server is on it; nova has %s and 3 '
            'more' % ', '.join(hosts[:12]), str(problem))
