# SPDX-License-Identifier: Apache-2.0
"""Misplaced servers in the report: from nova's database to the browser."""

import pathlib
import re
import uuid

import fixtures as base_fixtures
import testtools

from tests import chromium
from tests import fixtures
from tests.functional import test_answer_page
from tests.functional import test_audit_command
from tests.functional import test_chromium
from tests.functional import test_html_report
from tests.unit.html_report import test_misplaced

SEGMENTS = """
[scheduler]
query_placement_for_routed_network_aggregates = true
[neutron]
auth_type = admin_token
endpoint = http://127.0.0.1:%d
token = nothing
"""
# Of each visible row: the visible servers, and the visible commands.
VISIBLE = """
[...document.querySelectorAll('.servers tbody tr')].filter(
  row => row.checkVisibility()).map(row =>
    ['th b bdi', 'td code.copy'].map(what =>
      [...row.querySelectorAll(what)].filter(one => one.checkVisibility()).map(
        one => one.textContent)))
"""
# The width of the narrowest cell with a command.
WIDTH = """
Math.min(...[...document.querySelectorAll('.servers .move')].map(
  one => one.clientWidth))
"""
OPEN = """
for (const one of document.querySelectorAll('.servers details')) {
  one.open = true
}
"""


class TestReport(test_audit_command.AuditTest):
    """``report --servers`` as an operator runs it."""

    def setUp(self):
        super().setUp()
        self.cloud.sync()
        self.file = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path, 'report.html')

    def report(self, status, *argv):
        """Write the page; return its section of servers, and the summary."""
        done = self.run_command(
            'report', '--quiet', '--html', str(self.file), *argv)
        self.assertEqual((status, ''), (done.returncode, done.stderr))
        page = self.file.read_text()
        self.assertTrue(page.endswith('</html>'))
        return re.search('<section id="servers">.*?</section>', page,
                         re.DOTALL).group(), done.stdout

    def test_misplaced_servers(self):
        """They are shown with their commands, and the status stays 0."""
        self.server('near')
        moved = [self.server('far', 'cell2', name=name)
                 for name in ('db', test_html_report.EVIL)]
        section, said = self.report(0, '--servers')
        self.assertIn(
            'in sync with nova; 2 of 3 servers are on a host that '
            'contradicts the request: 2 zone\n', said)
        for text in ('<dt>audited</dt><dd>3<', '<dt>misplaced</dt><dd>2<',
                     '<dt>by zone</dt><dd>2<', '<b>2 servers</b> from',
                     '<bdi>zone az1</bdi>', '<bdi>no zone</bdi>',
                     '<bdi>&lt;script&gt;document', '<bdi>not recorded: ',
                     *('>openstack server migrate --live-migration %s<' % one
                       for one in moved)):
            self.assertIn(text, section)

    def test_not_audited_by_default(self):
        """The page and the help have the option that audits."""
        self.server('far', 'cell2')
        section, said = self.report(0)
        self.assertIn('<code>--servers</code>', section)
        self.assertNotIn('<dt>', section)
        self.assertNotIn('request', said)
        done = self.run_command('report', '--help')
        self.assertIn('because a sync moves no server', done.stdout)

    def test_servers_without_a_request(self):
        """They are counted, not audited."""
        self.server('far', 'cell2', stored=False)
        section, _said = self.report(0, '--servers')
        self.assertIn('without a request</dt><dd>1<', section)
        self.assertIn('No server was audited.', section)

    def test_cell_that_does_not_answer(self):
        """It is named, and the servers of other cells are shown."""
        self.cloud.create_aggregate('other', 'az2')
        self.server('near', zone='az2')
        pathlib.Path(fixtures.CONF.state_path, 'cell2.sqlite').write_bytes(
            b'no database any more' * 999)
        section, said = self.report(5, '--servers')
        self.assertIn('! Cell <bdi>cell2 (', section)
        self.assertIn('<bdi>zone az2</bdi>', section)
        self.assertIn('1 zone, as far as they could be audited', said)

    def test_neutron_that_is_down(self):
        """The reason is shown, and the report is complete otherwise."""
        self.server('near', zone='az2')
        self.write_conf(more=SEGMENTS % 1)
        section, said = self.report(0, '--servers')
        self.assertIn('! The audit is incomplete: <bdi>neutron at http://'
                      '127.0.0.1:1 refused the connection', section)
        self.assertIn('the servers could not be audited', said)

    def test_rule_that_cannot_be_checked(self):
        """The option is named on the page."""
        self.write_conf(more='[aggregate_mirror]\nrequest_filters = colour\n')
        section, _said = self.report(0, '--servers')
        self.assertIn('no entry point in', section)


class TestBrowser(testtools.TestCase):
    """The section in a real browser."""

    def setUp(self):
        super().setUp()
        program = chromium.find(self)
        self.file = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path, 'report.html')
        self.browser = self.useFixture(chromium.Chromium(program))
        server = test_misplaced.server
        self.file.write_text(test_misplaced.page(test_misplaced.findings(
            [*(server(number) for number in range(40)),
             server(40, 'h' * 99, 'zone ' + 'z' * 99, 'y' * 120,
                    name='n' * 99),
             server(41, 'cmp-2', state='error')],
            cells_down={'cell7': 'x' * 150})))

    def test_contrast_and_width(self):
        """It is readable in both color schemes, narrow and wide."""
        for width in (360, 1400):
            for scheme in ('light', 'dark'):
                test_chromium.open_page(self, width, scheme)
                self.browser.evaluate(OPEN)
                self.assertEqual([], self.browser.evaluate(
                    test_answer_page.OVERFLOWS.replace(
                        'body *', '#servers *')))
                self.assertEqual([], [
                    one for one in self.browser.evaluate(
                        test_chromium.CONTRASTS) if one[0] < 4.5])
                # On a phone each cell has the whole width.
                self.assertLess(200, self.browser.evaluate(WIDTH))

    def test_filter(self):
        """It finds a server, with its command only, and a host."""
        test_chromium.open_page(self, 360)
        uuids = [str(uuid.UUID(int=number << 64)) for number in (7, 41)]
        test_chromium.type_text(self, uuids[0])
        self.assertEqual([[['web-7'], [
            'openstack server migrate --live-migration ' + uuids[0]]]],
            self.browser.evaluate(VISIBLE))
        for text in ('CMP-2', uuids[1], 'state error'):
            test_chromium.type_text(self, text)
            self.assertEqual([[['web-41'], []]],
                             self.browser.evaluate(VISIBLE), text)
        test_chromium.type_text(self, 'none')
        self.assertFalse(self.browser.evaluate(
            "document.getElementById('servers').checkVisibility()"))
        test_chromium.type_text(self, '')
        self.assertEqual(3, len(self.browser.evaluate(VISIBLE)))

    def test_keyboard_and_copying(self):
        """Enter expands a row; a click selects a whole command."""
        test_chromium.open_page(self, 360)
        self.browser.evaluate(
            "document.querySelector('.move summary').focus()")
        for kind in ('keyDown', 'keyUp'):
            self.browser.call(
                'Input.dispatchKeyEvent', type=kind, key='Enter', text='\r',
                windowsVirtualKeyCode=13)
        place = self.browser.evaluate("""
            (() => { const one = document.querySelector('.move li code');
              one.scrollIntoView({block: 'center'});
              const {x, y} = one.getBoundingClientRect();
              return {x: x + 9, y: y + 5} })()""")
        for kind in ('mousePressed', 'mouseReleased'):
            self.browser.call('Input.dispatchMouseEvent', type=kind,
                              button='left', clickCount=1, **place)
        self.assertEqual(
            'openstack server migrate --live-migration %s' % uuid.UUID(int=0),
            self.browser.evaluate('getSelection().toString().trim()'))
