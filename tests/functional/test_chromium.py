# SPDX-License-Identifier: Apache-2.0
"""The HTML report in a real browser: complete, safe, fast and readable."""

import json
import pathlib
import uuid

import fixtures as base_fixtures
import testtools

from nova_aggregate_mirror.html_report import collect
from nova_aggregate_mirror.html_report import render
from nova_aggregate_mirror.journal import history
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import plan
from nova_aggregate_mirror import source
from tests import chromium
from tests.functional import test_html_report

HOSTS, AGGREGATES = 5000, 100
NOW = 1.7e9
MEGABYTE = 1 << 20
# The text of each non-empty cell of the matrix, by host and column.
CELLS = """
Object.fromEntries([...document.querySelectorAll('.chunk tr')].map(row => [
  row.querySelector('bdi')?.textContent ?? '',
  Object.fromEntries([...row.cells].filter(cell => cell.className).map(
    cell => [names[column(cell)].split(' (')[0],
             cell.className + ' ' + cell.firstChild.data.trim()]))]))
"""
VISIBLE = """
[...document.querySelectorAll('.chunk tr')].filter(row => !row.hidden).map(
  row => row.querySelector('bdi').textContent)
"""
# Open the dialog of a host, and return its text.
DIALOG = """
(() => {
  const host = [...document.querySelectorAll('.chunk .host')].find(
    one => one.closest('tr, li').textContent.includes(%s));
  host.closest('details:has(li + li)')?.setAttribute('open', '');
  host.focus();
  if (document.activeElement !== host) return 'no focus';
  host.click();
  const dialog = document.querySelector('dialog:modal');
  return [dialog.querySelector('h2').textContent,
          dialog.querySelector('.of').textContent,
          [...dialog.querySelectorAll('tbody tr')].map(
            row => [...row.cells].flatMap(cell => cell.cellIndex
              ? [cell.textContent]
              : [...cell.children].map(one => one.textContent)))];
})()
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


class TestDrift(test_html_report.ReportTest):
    """A small cloud with every kind of drift."""

    def setUp(self):
        self.program = chromium.find(self)
        super().setUp()
        self.every_kind()
        self.report(4)
        self.browser = self.useFixture(chromium.Chromium(self.program))

    def test_each_cell(self):
        """Each cell shows its state as text and symbol."""
        open_page(self)
        zone, evil = 'zone', test_html_report.EVIL
        gone = 'deleted ' + self.gone
        self.assertEqual({
            'right': {zone: 'in_sync ✓', gone: 'stale −'},
            'missing': {zone: 'missing +'}, 'stale': {evil: 'stale −'},
            'pending': {zone: 'pending …'},
            'nodeless': {zone: 'without_compute_node ∅'},
            'unmapped': {zone: 'in_sync ✓'}, 'ironic': {zone: 'missing +'},
            'same1': {zone: 'in_sync ✓'}}, self.browser.evaluate(CELLS))

    def test_hostile_names(self):
        """An aggregate name is shown as text, never as markup."""
        open_page(self)
        self.assertIn('Placement differs',
                      self.browser.evaluate('document.title'))
        self.assertEqual(1, self.browser.evaluate(
            'document.scripts.length'))
        self.assertEqual(test_html_report.EVIL, self.browser.evaluate("""
            [...document.querySelectorAll('#aggregates th bdi')].map(
              one => one.textContent).find(one => one.startsWith('<'))"""))

    def test_foreign_script_does_not_run(self):
        """Injected markup does not execute."""
        text = self.file.read_text()
        self.file.write_text(text.replace(
            '<main>', '<main><script>document.title = "evil"</script>'
            '<img src="x" onerror="document.title = \'evil\'">'))
        self.browser.open(self.file)
        self.assertNotEqual('evil', self.browser.evaluate('document.title'))

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
            ['faults', 'matrix', 'pending', 'history'], self.browser.evaluate(
                "[...document.querySelectorAll('section:not([hidden])')].map("
                "one => one.id)"))

    def aggregates_of(self, host):
        """Click a host; return its name, what is said of it, and the rows."""
        open_page(self)
        return self.browser.evaluate(DIALOG % json.dumps(host))

    def test_aggregates_of_a_host(self):
        """A click shows each aggregate in nova and in placement."""
        zone = ['zone', 'zone az1', self.zone.uuid]
        for host, rows in (
                ('right', [['deleted in nova', self.gone, 'no', '− yes'],
                           [*zone, 'yes', '✓ yes']]),
                ('same2', [[*zone, 'yes', '✓ yes']]),
                ('missing', [[*zone, 'yes', '+ no']]),
                ('pending', [[
                    *zone, 'yes', '… no: no resource provider yet']]),
                ('nodeless', [[*zone, 'yes', '∅ no: no compute node']]),
                ('stale', [[test_html_report.EVIL, 'zone zone <2>',
                            self.evil.uuid, 'no', '− yes']]),
                ('ironic', [[
                    *zone, 'yes', '+ no for 2 of 3 compute nodes']])):
            name, _said, found = self.aggregates_of(host)
            self.assertEqual((host, rows), (name, found))

    def test_dialog_of_a_host(self):
        """It has marks and providers, and is used with the keyboard."""
        _name, said, _rows = self.aggregates_of('unmapped')
        self.assertIn('no host mapping', said)
        self.assertIn(self.right.nodes[0], self.aggregates_of('right')[1])
        opened = """
            [document.querySelector('dialog').open,
             document.activeElement.querySelector('bdi')?.textContent]"""
        # The first is alone in its row, the second in an expanded one.
        for host in ('right', 'same2'):
            self.aggregates_of(host)
            self.press('Escape', 27)
            self.assertEqual([False, host], self.browser.evaluate(opened))
            self.press('Enter', 13, '\r')
            self.assertTrue(self.browser.evaluate(opened)[0])

    def press(self, key, code, text=''):
        for kind in ('keyDown', 'keyUp'):
            self.browser.call(
                'Input.dispatchKeyEvent', type=kind, key=key, text=text,
                windowsVirtualKeyCode=code)

    def test_contrast_and_width(self):
        """It is readable in both color schemes, narrow and wide."""
        for width in (320, 1400):
            for scheme in ('light', 'dark'):
                open_page(self, width, scheme)
                self.assertGreaterEqual(width, self.browser.evaluate(
                    'document.documentElement.scrollWidth'))
                self.browser.evaluate(DIALOG % json.dumps('ironic'))
                self.assertEqual([], [
                    one for one in self.browser.evaluate(CONTRASTS)
                    if one[0] < 4.5])
                self.assertEqual([0, 0], self.browser.evaluate("""
                    ['dialog', 'dialog .scroll'].map(
                      one => document.querySelector(one)).map(
                        one => one.scrollWidth - one.clientWidth)"""))

    def test_without_scripts(self):
        """Everything except filter and dialog works without scripts."""
        self.browser.call('Emulation.setScriptExecutionDisabled', value=True)
        open_page(self)
        self.assertTrue(self.browser.evaluate(
            "document.getElementById('filter').hidden"))
        self.assertEqual(8, self.browser.evaluate(
            "document.querySelectorAll('.chunk tr').length"))


class TestManyHosts(testtools.TestCase):
    """A report with thousands of hosts stays small and fast."""

    def setUp(self):
        super().setUp()
        program = chromium.find(self)
        self.file = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path, 'report.html')
        self.browser = self.useFixture(chromium.Chromium(program))
        self.uuids = [str(uuid.UUID(int=number))
                      for number in range(AGGREGATES)]

    def write(self, members, every):
        """Write and open a page; each ``every``-th host has drift."""
        nodes = {str(uuid.UUID(int=number << 64)): host
                 for number, host in enumerate(members)}
        changes = [plan.Change(node, add=tuple(sorted(members[host])[:1]))
                   for node, host in list(nodes.items())[::every]]
        nova = source.Nova(
            {one: 'aggregate %03d' % number
             for number, one in enumerate(self.uuids)}, members, nodes)
        done = outcome.Outcome(changes)
        with open(self.file, 'w') as page:
            page.writelines(render.render(collect.Collected(
                full_sync.SyncOutcome(
                    done, nova, associations.after((), done, nova)),
                full_sync.Request(0.3, write=False),
                collect.JournalContent(syncs=(
                    history.Entry('agent --prune', 'api1', NOW, NOW, 1.0),)),
                {}, 'region RegionOne'), NOW))
        self.assertLess(self.file.stat().st_size, 4 * MEGABYTE)
        open_page(self)
        self.assertEqual(HOSTS, self.browser.evaluate("""
            [...document.querySelectorAll('.chunk tr')].reduce((sum, row) =>
              sum + Math.max(1, row.querySelectorAll('li').length), 0)"""))

    def test_hosts_that_are_alike(self):
        """They share a few rows, and rows with drift come first."""
        self.write({'host-%04d' % number: frozenset(
            {self.uuids[number % 20], self.uuids[20 + number % 4]})
            for number in range(HOSTS)}, every=100)
        # Hosts 0, 100, 200... differ: all have the same aggregates.
        rows = self.browser.evaluate(VISIBLE)
        self.assertEqual((21, 'host-0000'), (len(rows), rows[0]))
        self.assertIn('50 hosts', self.browser.evaluate(
            "document.querySelector('.chunk tr').textContent"))
        self.assertTrue(self.browser.evaluate("""
            (() => { const one = document.querySelector('.chunk tr');
              document.querySelector('#matrix').scrollIntoView();
              return one.getBoundingClientRect().bottom < innerHeight })()"""))

    def test_hosts_that_all_differ(self):
        """The filter finds a single host among thousands."""
        self.write({'host-%04d' % number: frozenset(
            self.uuids[10 * place + int(digit)]
            for place, digit in enumerate('%04d' % number))
            for number in range(HOSTS)}, every=1)
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
