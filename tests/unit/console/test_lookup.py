# SPDX-License-Identifier: Apache-2.0
"""Names of zones and hosts that select servers."""

import testtools

from nova_aggregate_mirror.console import lookup


class TestUnknown(testtools.TestCase):

    def test_zone(self):
        """It exists if nova or a server has it."""
        self.assertEqual([], lookup.zone_errors('', [], False))
        self.assertEqual([], lookup.zone_errors('az-1', ['az-1'], False))
        self.assertEqual([], lookup.zone_errors('old', ['az-1'], True))
        self.assertEqual(
            ['nova has no availability zone old, and no server requests it; '
             'nova has none'], lookup.zone_errors('old', [], False))

    def test_hosts(self):
        """Nova is not asked while each has a server; a dozen are listed."""
        self.assertEqual([], lookup.host_errors(['h1'], ['h1'], self.fail))
        hosts = ['h%02d' % number for number in range(15)]
        self.assertEqual([], lookup.host_errors(['h01'], [], hosts.copy))
        [line] = lookup.host_errors(['h1', 'h02'], ['h3'], hosts.copy)
        self.assertEqual(
            'nova has no host h1, and no server is on it; nova has %s and 3 '
            'more' % ', '.join(hosts[:12]), line)
