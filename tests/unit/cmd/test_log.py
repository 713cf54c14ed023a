# SPDX-License-Identifier: Apache-2.0
"""The log of the agent and of the commands."""

import io
import logging

import fixtures
from oslo_config import cfg
from oslo_log import formatters
from oslo_log import handlers
from oslo_log import log as oslo_log
import testtools

from nova_aggregate_mirror.cmd import log
from tests.unit.test_printable import EVIL
from tests.unit.test_printable import SAFE

RED, BLUE, RESET = '\x1b[01;31m', '\x1b[00;34m', '\x1b[00m'
OWN, NOVA = 'nova_aggregate_mirror.agent', 'nova.compute'


class TestLog(testtools.TestCase):

    def set_up(self, kind=logging.StreamHandler, line='%(message)s'):
        """Set up the log of a process; return what it has written."""
        conf = cfg.ConfigOpts()
        oslo_log.register_options(conf)
        conf([])
        for name in 'context', 'default':
            conf.set_override('logging_%s_format_string' % name, line)
        out = io.StringIO()
        handler = kind(out)
        handler.setFormatter(formatters.ContextFormatter(config=conf))
        self.useFixture(fixtures.MonkeyPatch(
            'logging.root.handlers', [handler]))
        log.escape_controls()
        return out

    def test_text_that_controls_the_terminal(self):
        """It is escaped in each message; one of this package is one line."""
        for name, text in ((OWN, SAFE), (NOVA, SAFE.replace('\\n', '\n'))):
            out = self.set_up()
            logging.getLogger(name).warning('Host %s 100%%', EVIL)
            self.assertEqual('Host %s 100%%\n' % text, out.getvalue())

    def test_line_that_is_no_text(self):
        """As a formatter for fluentd returns: the message is escaped in it."""
        lines = []
        handler = logging.Handler()
        handler.emit = lambda record: lines.append(handler.format(record))
        handler.setFormatter(formatters.FluentFormatter())
        self.useFixture(fixtures.MonkeyPatch(
            'logging.root.handlers', [handler]))
        log.escape_controls()
        logging.getLogger(OWN).warning('Host %s', EVIL)
        self.assertEqual('Host ' + SAFE, lines[0]['message'])

    def test_exceptions(self):
        """Their text is escaped in traceback and summary; lines are kept."""
        for name in OWN, NOVA, 'keystoneauth.session':
            out = self.set_up()
            try:
                raise RuntimeError(EVIL)
            except RuntimeError:
                logging.getLogger(name).exception('Failed')
            text = out.getvalue()
            self.assertIn('\n', text.partition('Traceback')[2])
            self.assertTrue(text.replace('\n', '').isprintable(), repr(text))

    def test_summary_of_the_exception_that_is_handled(self):
        """Oslo.log appends it to each warning."""
        out = self.set_up()
        try:
            raise RuntimeError(EVIL)
        except RuntimeError:
            logging.getLogger(OWN).warning('Failed')
        self.assertEqual(
            'Failed: RuntimeError: a\\x1b[2J\\x9b2J\\x1b]0;b\\x07\\r\n',
            out.getvalue())

    def test_colors(self):
        """Those of level and format are kept, others are escaped."""
        out = self.set_up(handlers.ColorHandler, (
            '%(color)s' + BLUE + '%(name)s' + RESET + '%(message)s'))
        logging.getLogger(OWN).error('a\x1b[01;32mb' + RED + 'c')
        self.assertEqual(
            RED + BLUE + OWN + RESET + 'a\\x1b[01;32mb\\x1b[01;31mc' + RESET
            + '\n', out.getvalue())
