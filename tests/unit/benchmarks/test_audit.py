# SPDX-License-Identifier: Apache-2.0
"""The benchmark of audits: its servers, and its target."""

import json

import testtools

from benchmarks import audit
from benchmarks import figures


def run(peak):
    return figures.Run(2.0, 1.0, 0.0, peak, {})


class TestAudit(testtools.TestCase):

    def test_memory_must_not_grow(self):
        """The medians of the sizes are compared."""
        good = [[run(100.0), run(500.0), run(100.0)], [run(120.0)]]
        self.assertEqual([], audit.missed(good))
        self.assertEqual(
            ['peak memory: 100 to 126 MiB, more than 1.25 times'],
            audit.missed([*good, [run(126.0)]]))

    def test_row(self):
        self.assertEqual('500', audit.row(1000, [run(100.0)])[-1])

    def test_request(self):
        """It has a zone, as nova stores it."""
        found = json.loads(audit.request('zone-3'))
        self.assertEqual('zone-3', found['nova_object.data'][
            'availability_zone'])
