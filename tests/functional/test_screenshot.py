# SPDX-License-Identifier: Apache-2.0
"""The screenshot in the documentation shows the report as it is.

To take it again, with a Chromium installed:
AGGREGATE_MIRROR_WRITE_SCREENSHOTS=1 tox -e functional -- test_screenshot
"""

import hashlib
import os
import pathlib
import uuid

import fixtures as base_fixtures
import testtools

from nova_aggregate_mirror.html_report import collect
from nova_aggregate_mirror.html_report import report
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.reconcile import associations
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror import source
from tests import chromium
from tests.functional import test_chromium

WRITE = 'AGGREGATE_MIRROR_WRITE_SCREENSHOTS'
SCREENSHOTS = (pathlib.Path(__file__).parents[2] / 'doc' / 'source'
               / 'screenshots')
DIGEST = SCREENSHOTS / 'report.sha256'
NOW = 1.7e9
WIDTH, HEIGHT = 1000, 775
ZONES = {'zone-a': 'az-a', 'zone-b': 'az-b', 'rack-1': '', 'rack-2': ''}
UUIDS = {name: str(uuid.UUID(int=number, version=4))
         for number, name in enumerate(ZONES, start=1)}
HOSTS = ('cmp-1', 'cmp-2', 'cmp-3', 'cmp-4', 'cmp-5', 'cmp-6')


def example():
    """A cloud in which cmp-2 and cmp-5 have drifted."""
    members = {}
    for number, host in enumerate(HOSTS):
        zone = 'zone-a' if number < 3 else 'zone-b'
        rack = 'rack-%d' % (1 + number % 2)
        members[host] = frozenset({UUIDS[zone], UUIDS[rack]})
    nodes = {str(uuid.UUID(int=number, version=4)): host
             for number, host in enumerate(HOSTS, start=100)}
    by_host = {host: node for node, host in nodes.items()}
    changes = [outcome.Change(by_host['cmp-2'], add=(UUIDS['zone-a'],)),
               outcome.Change(by_host['cmp-5'], remove=(UUIDS['zone-a'],))]
    nova = source.Nova({uuid: name for name, uuid in UUIDS.items()}, members,
                       nodes)
    done = outcome.Outcome(changes)
    return collect.Content(
        result.Result(
            done, nova, associations.after_sync((), done, nova),
            request=result.Request(0.3, write=False)),
        collect.JournalContent(has_ledger=True, syncs=(full_syncs.Entry(
            'agent --prune', 'controller-1', NOW - 60, NOW - 60, 0.2),)),
        {UUIDS[name]: zone for name, zone in ZONES.items() if zone},
        'region RegionOne, interface internal, '
        'endpoint http://placement.example.org:8778')


class TestScreenshot(testtools.TestCase):

    def test_taken_of_this_page(self):
        """The page did not change since the screenshot was taken."""
        for name, value in (('importlib.metadata.version', '1.0.0'),
                            ('socket.gethostname', 'controller-1')):
            self.useFixture(base_fixtures.MonkeyPatch(
                name, lambda *_arguments, value=value: value))
        page = ''.join(report.render(example(), NOW))
        digest = hashlib.sha256(page.encode()).hexdigest()
        if WRITE in os.environ:
            self.take(page)
            DIGEST.write_text(digest + '\n')
        self.assertEqual(DIGEST.read_text().strip(), digest,
                         'take it again: %s' % __doc__)

    def take(self, page):
        self.file = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path, 'report.html')
        self.file.write_text(page)
        self.browser = self.useFixture(chromium.Chromium(chromium.find(self)))
        self.browser.call('Emulation.setScrollbarsHidden', hidden=True)
        test_chromium.open_page(self, WIDTH)
        self.browser.look(WIDTH, HEIGHT)
        self.browser.screenshot(SCREENSHOTS / 'report-light.png')
