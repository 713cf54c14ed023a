# SPDX-License-Identifier: Apache-2.0
"""What the command that waits for placement prints."""

import argparse
import io

import fixtures

from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror.cmd import wait_hosts
from tests.unit import doubles
from tests.unit.test_printable import EVIL


class TestOutput(doubles.TestCase):

    def test_text_that_controls_the_terminal(self):
        """It is escaped in each line about what is missing."""
        log = []
        nova = doubles.Nova(log)
        nova.hosts_of = {'a': {EVIL}}
        nova.nodes = {'n1': EVIL}
        errors = self.useFixture(fixtures.MonkeyPatch(
            'sys.stderr', io.StringIO())).new_value
        with program.printing():
            status = wait_hosts.run(
                nova, doubles.Placement(log), argparse.Namespace(
                    hosts=[EVIL], timeout=0))
        self.assertEqual(6, status)
        text = errors.getvalue()
        self.assertIn('\\x1b]0;b', text)
        self.assertTrue(text.replace('\n', '').isprintable(), repr(text))
