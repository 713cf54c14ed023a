# SPDX-License-Identifier: Apache-2.0
"""The log of the agent and of the commands."""

import io
import logging

import fixtures
import testtools

from nova_aggregate_mirror.cmd import build
from tests.unit.test_printable import EVIL
from tests.unit.test_printable import SAFE


class TestLog(testtools.TestCase):

    def test_text_that_controls_the_terminal(self):
        """Each message of this package is one printable line."""
        out = io.StringIO()
        root = logging.getLogger()
        self.useFixture(fixtures.MonkeyPatch('logging.root.handlers', [
            logging.StreamHandler(out)]))
        build.log_printable()
        logging.getLogger('nova_aggregate_mirror.agent').warning(
            'Host %s 100%%', EVIL)
        logging.getLogger('nova.compute').warning('its\nown')
        self.assertEqual('Host %s 100%%\nits\nown\n' % SAFE, out.getvalue())
        self.assertEqual(1, len(root.handlers))
