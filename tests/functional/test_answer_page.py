# SPDX-License-Identifier: Apache-2.0
"""The page of an explained request in a real browser."""

import pathlib

import fixtures as base_fixtures
import testtools

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.html_report import answer
from tests import chromium
from tests.functional import test_chromium
from tests.functional import test_explain_command
from tests.unit.html_report import test_answer

KILOBYTE = 1024
# Of each bar: the share of its width that is left, and that is excluded.
BARS = """
[...document.querySelectorAll('.funnel td.bar div')].map(
  bar => ['.left', '.excluded'].map(kind =>
    (bar.querySelector(kind)?.getBoundingClientRect().width ?? 0)
      / bar.getBoundingClientRect().width))
"""
VISIBLE = """
[...document.querySelectorAll('.hosts tbody tr')].filter(
  row => row.checkVisibility()).map(row =>
    [...row.querySelectorAll('th li')].filter(
      host => host.checkVisibility()).map(
        host => host.querySelector('bdi').textContent))
"""
# What is wider than its place on the page.
OVERFLOWS = """
[document.documentElement, ...document.querySelectorAll('body *')].filter(
  one => one.checkVisibility() && getComputedStyle(one).display !== 'inline'
    && one.scrollWidth > one.clientWidth + 1 && one.clientWidth).map(
      one => one.outerHTML.slice(0, 80))
"""


class PageTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        program = chromium.find(self)
        self.file = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path, 'explained.html')
        self.browser = self.useFixture(chromium.Chromium(program))

    def write(self, what, width=1400, scheme='light'):
        """Write the page of an answer, and open it."""
        with open(self.file, 'w') as page:
            page.writelines(answer.render(what, test_answer.NOW))
        test_chromium.open_page(self, width, scheme)


class TestFunnel(PageTest):

    def test_bars(self):
        """They are as long as the numbers of compute nodes."""
        for hosts, excluded in ((212, [60, 0, 11, 141]), (5000, [2500]),
                                (1000, [40] * 25)):
            self.write(test_answer.explained(hosts, excluded))
            left, expected = hosts, [[1, 0]]
            for count in excluded:
                left -= count
                expected.append([left / hosts, count / hosts])
            found = self.browser.evaluate(BARS)
            self.assertEqual(len(expected), len(found))
            for pair, seen in zip(expected, found):
                self.assertTrue(all(
                    abs(one - other) < .002 for one, other
                    in zip(pair, seen)), (hosts, pair, seen))

    def test_single_host_among_thousands(self):
        """Its part of a bar is visible, within the width of the bar."""
        self.write(test_answer.explained(5000, [1, 4998]))
        self.assertEqual([True, True, True], self.browser.evaluate("""
            [...document.querySelectorAll('.funnel td.bar div')].map(bar => {
              const parts = [...bar.children].map(
                one => one.getBoundingClientRect());
              return parts.every(one => one.width >= 3)
                && parts.at(-1).right
                  <= bar.getBoundingClientRect().right + .1;
            })"""))


class TestHosts(PageTest):

    def test_names_and_filter(self):
        """A row expands to all its hosts; the filter finds one of them."""
        self.write(test_answer.explained(5000, [4000]))
        self.assertEqual([[], []], self.browser.evaluate(VISIBLE))
        self.browser.evaluate(
            "document.querySelectorAll('.hosts summary')[1].click()")
        self.assertEqual([0, 4000], [
            len(row) for row in self.browser.evaluate(VISIBLE)])
        for text, found in (('CMP-3999', [['cmp-3999']]),
                            ('cmp-4000', [['cmp-4000']]), ('none', [])):
            test_chromium.type_text(self, text)
            self.assertEqual(found, self.browser.evaluate(VISIBLE), text)
        test_chromium.type_text(self, 'fan')
        self.assertEqual('4000 hosts', self.browser.evaluate(
            "document.querySelector('#filter output').textContent"))

    def test_size(self):
        """A host adds its name, and nothing else."""
        sizes = []
        for hosts in (0, 5000):
            self.write(test_answer.explained(hosts, [hosts]))
            sizes.append(self.file.stat().st_size)
        self.assertLess(sizes[0], 16 * KILOBYTE)
        self.assertLess((sizes[1] - sizes[0]) / 5000, 32)

    def test_without_scripts(self):
        """Everything except the filter works without scripts."""
        self.browser.call('Emulation.setScriptExecutionDisabled', value=True)
        self.write(test_answer.explained(50, [20, 0, 10]))
        self.assertEqual([True, 50], self.browser.evaluate("""
            [document.getElementById('filter').hidden,
             document.querySelectorAll('.hosts li').length]"""))


class TestLook(PageTest):

    def test_contrast_and_width(self):
        """It is readable in both color schemes, narrow and wide."""
        reason = explanation.Reason(
            'aggregate', 'not in ' + 'z' * 90, 'x' * 120 + ' y' * 99,
            'openstack aggregate add host %s %s' % (
                'a' * 99, explanation.HOST))
        for what in (
                test_answer.explained(212, [100, 0, 112], notes=['n' * 300]),
                test_answer.explained(
                    5000, [40] * 25, reason, count=9, placed=['h' * 99] * 3),
                test_answer.explained(1, [0])):
            for width in (360, 1400):
                for scheme in ('light', 'dark'):
                    self.write(what, width, scheme)
                    self.browser.evaluate("""
                        for (const one of document.querySelectorAll('details'))
                          one.open = true""")
                    self.assertEqual([], self.browser.evaluate(OVERFLOWS))
                    self.assertEqual([], [
                        one for one in self.browser.evaluate(
                            test_chromium.CONTRASTS) if one[0] < 4.5])


class TestCommand(test_explain_command.ExplainTest):
    """The page of a request that was explained by a real cloud."""

    def setUp(self):
        program = chromium.find(self)
        super().setUp()
        self.file = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path, 'explained.html')
        self.browser = self.useFixture(chromium.Chromium(program))

    def test_hostile_names(self):
        """Names are shown as text, and foreign scripts do not run."""
        self.flavor(test_answer.EVIL, 9)
        done = self.explain('--flavor', test_answer.EVIL,
                            '--html', str(self.file))
        self.assertEqual((1, ''), (done.returncode, done.stderr))
        test_chromium.open_page(self)
        self.assertEqual(
            [1, test_answer.EVIL,
             '! 0 of 2 hosts: 2 have fewer than 9 VCPU free'],
            self.browser.evaluate("""
                [document.scripts.length,
                 document.querySelector('#request dd').textContent.trim(),
                 document.querySelector('h1').textContent]"""))
        self.file.write_text(self.file.read_text().replace(
            '<main>', '<main><script>document.title = "evil"</script>'
            '<img src="x" onerror="document.title = \'evil\'">'))
        self.browser.open(self.file)
        self.assertIn('0 of 2 hosts', self.browser.evaluate('document.title'))
