# SPDX-License-Identifier: Apache-2.0
"""The HTML pages in a real browser: complete, safe, fast and readable."""

import dataclasses
import json
import pathlib
import uuid

import fixtures as base_fixtures
import testtools

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.html_report import collect
from nova_aggregate_mirror.html_report import report
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror import source
from tests import chromium
from tests.functional import test_html_report
from tests.unit.html_report import test_answer
from tests.unit.html_report import test_collect

HOSTS, AGGREGATES = 5000, 100
NOW = 1.7e9
MEGABYTE = 1 << 20
VISIBLE = """
[...document.querySelectorAll('.chunk tbody tr')].filter(
  row => row.checkVisibility()).map(
  row => row.querySelector('bdi').textContent)
"""
# Open the dialog of a host, and return its text.
DIALOG = """
(() => {
  const host = [...document.querySelectorAll('.chunk .host')].find(
    one => one.closest('th, li').textContent.includes(%s));
  host.closest('details:has(li + li)')?.setAttribute('open', '');
  host.focus();
  if (document.activeElement !== host) return 'no focus';
  host.click();
  const dialog = document.querySelector('dialog:modal');
  return [dialog.querySelector('h2').textContent,
          dialog.querySelector('.of').textContent,
          [...dialog.querySelectorAll('tbody tr')].map(
            row => [...row.cells].flatMap(cell => cell.cellIndex
              ? [cell.textContent.trim()]
              : [...cell.children].map(one => one.textContent)))];
})()
"""
HOSTS_OF_ANSWER = """
[...document.querySelectorAll('.hosts tbody tr')].filter(
  row => row.checkVisibility()).map(row =>
    [...row.querySelectorAll('th li')].filter(
      host => host.checkVisibility()).map(
        host => host.querySelector('bdi').textContent))
"""
# Of each visible row: the visible servers, and the visible commands.
SERVERS = """
[...document.querySelectorAll('.servers tbody tr')].filter(
  row => row.checkVisibility()).map(row =>
    ['th b bdi', 'td code.copy'].map(what =>
      [...row.querySelectorAll(what)].filter(one => one.checkVisibility()).map(
        one => one.textContent)))
"""
# What is wider than its place on the page; the selector is of its elements.
OVERFLOWS = """
[document.documentElement, ...document.querySelectorAll('%s *')].filter(
  one => one.checkVisibility() && getComputedStyle(one).display !== 'inline'
    && one.scrollWidth > one.clientWidth + 1 && one.clientWidth).map(
      one => one.outerHTML.slice(0, 80))
"""
# The contrast between text and background, for each kind of cell.
CONTRASTS = """
(() => {
  const light = text => {
    const parts = text.match(/[\\d.]+/g).slice(0, 3).map(one => one / 255).map(
      one => one <= .03928 ? one / 12.92 : ((one + .055) / 1.055) ** 2.4);
    return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2];
  };
  const behind = one => {
    const found = getComputedStyle(one).backgroundColor;
    return /^rgba.*, 0\\)$/.test(found) && one.parentElement
      ? behind(one.parentElement) : found;
  };
  return [...document.querySelectorAll(
    'h1, p, li, th, td, dt, dd, summary, .c, .mark, small')].filter(
      one => one.textContent.trim()).map(one => {
        const pair = [light(getComputedStyle(one).color), light(behind(one))];
        return [(Math.max(...pair) + .05) / (Math.min(...pair) + .05),
                one.outerHTML.slice(0, 80)];
      });
})()
"""


def open_page(test, width=1400, scheme='light', path=None):
    """Open the page and assert that the browser reports no error."""
    test.browser.look(width, 1000, scheme)
    test.browser.open(path or test.file)
    test.assertEqual([], test.browser.told('Runtime.exceptionThrown'))
    test.assertEqual([], test.browser.told('Log.entryAdded'))
    # Nothing is loaded except the file itself.
    test.assertEqual(
        [(path or test.file).as_uri()],
        [event['request']['url'] for event in
         test.browser.told('Network.requestWillBeSent')])


def type_text(test, text):
    """Type into the filter, and wait until it has been applied."""
    test.browser.evaluate("""
        new Promise(done => {
          new MutationObserver(done).observe(
            document.querySelector('#filter output'), {childList: true});
          const input = document.querySelector('#filter input');
          input.value = %s;
          input.dispatchEvent(new Event('input'));
        }).then(() => 0)""" % json.dumps(text))


def assert_readable(test):
    """Assert that the contrast of all text is sufficient."""
    test.assertEqual([], [pair for pair in test.browser.evaluate(CONTRASTS)
                          if pair[0] < 4.5])


class TestDrift(test_html_report.ReportTest):
    """A small cloud with every kind of drift."""

    def setUp(self):
        self.program = chromium.find(self)
        super().setUp()
        self.every_kind()
        self.report(4)
        self.browser = self.useFixture(chromium.Chromium(self.program))

    def test_filter(self):
        """It matches hosts, aggregates and marks; empty shows everything."""
        open_page(self)
        everything = self.browser.evaluate(VISIBLE)
        self.assertEqual(8, len(everything))
        for text, found in (('IRON', ['ironic']), ('same2', ['same1']),
                            (self.gone[:8], ['right']),
                            ('in the journal', ['missing']),
                            ('no such', []), ('', everything)):
            type_text(self, text)
            self.assertEqual(found, self.browser.evaluate(VISIBLE), text)
        self.assertEqual(0, self.browser.evaluate(
            "document.querySelectorAll('.f[hidden]').length"))
        type_text(self, 'pending')
        self.assertEqual(
            ['problems', 'matrix', 'history'],
            self.browser.evaluate(
                "[...document.querySelectorAll('section:not([hidden])')].map("
                "one => one.id)"))

    def aggregates_of(self, host):
        """Click a host; return its name, what is said of it, and the rows."""
        open_page(self)
        return self.browser.evaluate(DIALOG % json.dumps(host))

    def test_dialog_of_a_host(self):
        """It shows each aggregate on both sides; the keyboard works."""
        zone = ['zone', 'zone az1', self.zone.uuid]
        for host, rows in (
                ('right', [['deleted in nova', self.gone, 'no', 'yes'],
                           [*zone, 'yes', 'yes']]),
                ('same2', [[*zone, 'yes', 'yes']]),
                ('missing', [[*zone, 'yes', 'no']]),
                ('pending', [[
                    *zone, 'yes', 'no: no resource provider yet']]),
                ('nodeless', [[*zone, 'yes', 'no: no compute node']]),
                ('stale', [[test_html_report.EVIL, 'zone zone <2>',
                            self.evil.uuid, 'no', 'yes']]),
                ('ironic', [[
                    *zone, 'yes', 'no for 2 of 3 compute nodes']])):
            name, _text, found = self.aggregates_of(host)
            self.assertEqual((host, rows), (name, found))
        self.assertIn(
            'not mapped to its cell', self.aggregates_of('unmapped')[1])
        self.assertIn(self.right.nodes[0], self.aggregates_of('right')[1])
        opened = """
            [document.querySelector('dialog').open,
             document.activeElement.querySelector('bdi')?.textContent]"""
        # The first is alone in its row, the second in an expanded one.
        for host in ('right', 'same2'):
            self.aggregates_of(host)
            self.browser.press('Escape', 27)
            self.assertEqual([False, host], self.browser.evaluate(opened))
            self.browser.press('Enter', 13, '\r')
            self.assertTrue(self.browser.evaluate(opened)[0])

    def test_look(self):
        """It is readable in both schemes, narrow, wide or without scripts.

        A foreign script does not run.
        """
        for width in (320, 1400):
            for scheme in ('light', 'dark'):
                open_page(self, width, scheme)
                self.assertGreaterEqual(width, self.browser.evaluate(
                    'document.documentElement.scrollWidth'))
                self.browser.evaluate(DIALOG % json.dumps('ironic'))
                assert_readable(self)
                self.assertEqual([0, 0], self.browser.evaluate("""
                    ['dialog', 'dialog .scroll'].map(
                      one => document.querySelector(one)).map(
                        one => one.scrollWidth - one.clientWidth)"""))
        text = self.file.read_text()
        self.file.write_text(text.replace(
            '<main>', '<main><script>document.title = "evil"</script>'
            '<img src="x" onerror="document.title = \'evil\'">'))
        self.browser.open(self.file)
        self.assertNotEqual('evil', self.browser.evaluate('document.title'))
        self.file.write_text(text)
        self.browser.call('Emulation.setScriptExecutionDisabled', value=True)
        open_page(self)
        self.assertTrue(self.browser.evaluate(
            "document.getElementById('filter').hidden"))
        self.assertEqual(8, self.browser.evaluate(
            "document.querySelectorAll('.chunk tbody tr').length"))

    def test_print(self):
        """It has the hosts and the aggregates that differ, also expanded."""
        open_page(self)
        everything = self.browser.evaluate(VISIBLE)
        self.browser.call('Emulation.setEmulatedMedia', media='print')
        self.assertEqual([host for host in everything if host != 'same1'],
                         self.browser.evaluate(VISIBLE))
        self.assertEqual(
            ['deleted ' + self.gone, test_html_report.EVIL, 'zone'],
            self.browser.evaluate("""
                [...document.querySelectorAll('.chunk thead span')].filter(
                  one => one.getBoundingClientRect().right
                    < one.closest('.scroll').getBoundingClientRect().right
                ).map(one => one.textContent)"""))
        self.assertTrue(self.browser.evaluate(
            "document.querySelector('.chunk li code').checkVisibility()"))

    def test_screen_reader(self):
        """A cell has the word of its state; its column and row have names."""
        open_page(self)
        nodes = self.browser.call('Accessibility.getFullAXTree')['nodes']
        names = [(node['role']['value'], node['name']['value'])
                 for node in nodes if not node['ignored']]
        for name in (('columnheader', 'zone'), ('rowheader', 'ironic'),
                     ('cell', 'missing 2/3'), ('cell', 'in sync'),
                     ('cell', 'no node')):
            self.assertIn(name, names)


class PageTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        program = chromium.find(self)
        self.file = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path, 'page.html')
        self.browser = self.useFixture(chromium.Chromium(program))

    def write_report(self, nova, changes=()):
        """Write the page of a preview."""
        done = outcome.Outcome(changes)
        after = associations.after_sync((), done, nova)
        request = result.Request(0.3, write=False)
        past = full_syncs.Entry('agent --prune', 'api1', NOW, NOW, 1.0)
        content = collect.Content(
            result.Result(done, nova, after, request=request),
            collect.JournalContent(syncs=(past,)), {}, 'region RegionOne')
        with open(self.file, 'w') as page:
            page.writelines(report.render(content, NOW))


class TestReport(PageTest):

    def test_filter_of_many_hosts(self):
        """It finds one of thousands that all differ; the page stays small."""
        uuids = [str(uuid.UUID(int=number)) for number in range(AGGREGATES)]
        members = {}
        for number in range(HOSTS):
            digits = map(int, '%04d' % number)
            members['host-%04d' % number] = frozenset(
                uuids[10 * place + digit]
                for place, digit in enumerate(digits))
        nodes = {str(uuid.UUID(int=number << 64)): host
                 for number, host in enumerate(members)}
        names = {one: 'aggregate %03d' % number
                 for number, one in enumerate(uuids)}
        missing = {node: min(members[host]) for node, host in nodes.items()}
        self.write_report(source.Nova(names, members, nodes), [
            outcome.Change(node, add=(one,)) for node, one in missing.items()])
        self.assertLess(self.file.stat().st_size, 4 * MEGABYTE)
        open_page(self)
        self.assertEqual(HOSTS, self.browser.evaluate("""
            [...document.querySelectorAll('.chunk tbody tr')].reduce(
              (sum, row) => sum
                + Math.max(1, row.querySelectorAll('li').length), 0)"""))
        for text, found in (('host-4711', ['host-4711']), ('none', [])):
            type_text(self, text)
            self.assertEqual(found, self.browser.evaluate(VISIBLE))
        open_page(self)
        self.assertEqual('host-4711', self.browser.evaluate(
            DIALOG % json.dumps('host-4711'))[0])
        # Rows outside of the viewport are not laid out.
        open_page(self)
        self.assertGreater(20, self.browser.evaluate("""
            new Promise(done => requestAnimationFrame(
              () => requestAnimationFrame(done))).then(
                () => [...document.querySelectorAll('.chunk table')].filter(
                  one => one.checkVisibility(
                    {contentVisibilityAuto: true})).length)"""))

    def test_header_on_a_phone(self):
        """It is as high as the names need, and at most 160 px."""
        for name, low, high in ('az', 10, 40), ('n' * 99, 100, 160):
            aggregate = str(uuid.UUID(int=1))
            self.write_report(source.Nova(
                {aggregate: name}, {'h1': frozenset([aggregate])},
                {str(uuid.UUID(int=2)): 'h1'}))
            open_page(self, 390)
            height = self.browser.evaluate(
                "document.querySelector('.head th:last-child').clientHeight")
            self.assertTrue(low < height < high, height)
            self.assertEqual(['in sync'], self.browser.evaluate("""
                [...document.querySelectorAll('.legend b')].map(
                  one => one.textContent)"""))


class TestAnswer(PageTest):
    """The page of an explained request."""

    def write(self, content, width=1400, scheme='light'):
        """Write the page of an answer, and open it."""
        with open(self.file, 'w') as page:
            page.write(test_answer.rendered(content))
        open_page(self, width, scheme)

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

    def test_names_and_filter(self):
        """A row expands to all its hosts; the filter finds one of them."""
        self.write(test_answer.explained(5000, [4000]))
        self.assertEqual([[], []], self.browser.evaluate(HOSTS_OF_ANSWER))
        self.browser.evaluate(
            "document.querySelectorAll('.hosts summary')[1].click()")
        self.assertEqual([0, 4000], [
            len(row) for row in self.browser.evaluate(HOSTS_OF_ANSWER)])
        for text, found in (('CMP-3999', [['cmp-3999']]),
                            ('cmp-4000', [['cmp-4000']]), ('none', [])):
            type_text(self, text)
            self.assertEqual(
                found, self.browser.evaluate(HOSTS_OF_ANSWER), text)
        type_text(self, 'fan')
        self.assertEqual('4000 hosts', self.browser.evaluate(
            "document.querySelector('#filter output').textContent"))

    def test_look(self):
        """It is readable in both color schemes, narrow and wide."""
        reason = explanation.Reason(
            'aggregate', 'not in ' + 'z' * 90, 'x' * 120 + ' y' * 99,
            'openstack aggregate add host %s %s' % (
                'a' * 99, explanation.HOST))
        for width, scheme in (360, 'light'), (1400, 'dark'):
            for content in (
                    test_answer.explained(212, [100, 0, 112],
                                          notes=['n' * 300]),
                    test_answer.explained(5000, [40] * 25, reason, count=9,
                                          placed=['h' * 99] * 3),
                    test_answer.explained(1, [0])):
                self.write(content, width, scheme)
                self.browser.evaluate("""
                    for (const one of document.querySelectorAll('details'))
                      one.open = true""")
                self.assertEqual([], self.browser.evaluate(OVERFLOWS % 'body'))
                assert_readable(self)

    def test_events_of_a_server_on_a_phone(self):
        """Each cell of their table has the width of the page."""
        entries = [explanation.RecordEntry(
            '2026-11-29 12:00:00', 'create: schedule_instances',
            'controller-1.example', 'No valid host was found. ' * 9)]
        record = explanation.ServerRecord('error', '', 'fault', entries)
        self.write(dataclasses.replace(
            test_answer.explained(5, [2]), record=record), 390)
        self.assertEqual([], self.browser.evaluate(OVERFLOWS % 'body'))
        self.assertLess(300, self.browser.evaluate("""
            Math.min(...[...document.querySelectorAll(
              '.record tbody :is(th, td)')].map(one => one.clientWidth))"""))


class TestMisplaced(PageTest):
    """The report's section of misplaced servers."""

    def setUp(self):
        super().setUp()
        server = test_collect.server
        servers = [*map(server, range(40)), server(
            40, 'h' * 99, 'zone ' + 'z' * 99, 'y' * 120, name='n' * 99),
            server(41, 'cmp-2', state='error')]
        troubles = [problems.Problem('Cell cell7', 'x' * 150)]
        self.file.write_text(test_collect.page(
            findings=test_collect.findings(servers, troubles=troubles)))

    def test_look(self):
        """It is readable in both color schemes, narrow and wide."""
        for width, scheme in (360, 'light'), (1400, 'dark'):
            open_page(self, width, scheme)
            self.browser.evaluate("""
                for (const one of document.querySelectorAll(
                  '.servers details')) one.open = true""")
            self.assertEqual(
                [], self.browser.evaluate(OVERFLOWS % '#servers'))
            assert_readable(self)
            # On a phone each cell has the whole width.
            self.assertLess(200, self.browser.evaluate("""
                Math.min(...[...document.querySelectorAll(
                  '.servers .step')].map(one => one.clientWidth))"""))

    def test_filter(self):
        """It finds a server, with its command only, and a host."""
        open_page(self, 360)
        uuids = [str(uuid.UUID(int=number << 64)) for number in (7, 41)]
        type_text(self, uuids[0])
        [(names, commands)] = self.browser.evaluate(SERVERS)
        self.assertEqual(
            (['web-7'], ['openstack server migrate --live-migration '
                         + uuids[0]]), (names, commands))
        for text in ('CMP-2', uuids[1], 'state error'):
            type_text(self, text)
            self.assertEqual([[['web-41'], []]],
                             self.browser.evaluate(SERVERS), text)
        type_text(self, 'none')
        self.assertFalse(self.browser.evaluate(
            "document.getElementById('servers').checkVisibility()"))
        type_text(self, '')
        self.assertEqual(3, len(self.browser.evaluate(SERVERS)))
