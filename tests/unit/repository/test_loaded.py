# SPDX-License-Identifier: Apache-2.0
"""What each program of nova, and the agent, loads of this package."""

import functools
import json
import pathlib
import subprocess
import sys

import testtools
from testtools import content

# Nova-api has loaded its own modules by then.
LOAD = """
import importlib, json, sys
from nova.compute import api
for name in json.loads(sys.argv[1]):
    importlib.import_module('nova_aggregate_mirror.' + name)
print(json.dumps({
    name: module.__file__ for name, module in sys.modules.items()
    if name.split('.')[0] == 'nova_aggregate_mirror'}))
"""
HOOK = 'hooks.attach', 'hooks.mirror'
AGENT = 'cmd.agent',
SCHEDULER = ('scheduler.filters', 'scheduler.request_filters',
             'scheduler.segment_addresses')
MOST_LINES = {HOOK: 6520, SCHEDULER: 5490, AGENT: 10910}
"""Lines that each loads at most; those of nova's services only fall."""
README = pathlib.Path(__file__).parents[3] / 'README.rst'


# A process for each set of names: importing nova takes seconds.
@functools.cache
def loaded(*names):
    """Map each module that these load to its file."""
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', LOAD, json.dumps(names)],
        check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        text=True)
    return json.loads(done.stdout.splitlines()[-1])


class TestLoaded(testtools.TestCase):

    def test_rooms(self):
        """In nova-api, nothing of a command, of scheduling or of a page.

        In nova-scheduler, nothing but the filters and what they read. In the
        agent, an audit loads what it needs, if there is one.
        """
        none = {'audit', 'checks', 'console', 'explain', 'html_report', 'osc'}
        for names, others in (
                (HOOK, {'agent', 'cmd', 'scheduler'}),
                (SCHEDULER, {'agent', 'cmd', 'hooks', 'journal', 'reconcile'}),
                (AGENT, {'scheduler'})):
            used = {name.split('.')[1] for name in loaded(*names)
                    if '.' in name}
            self.assertIn(names[-1].split('.')[0], used)
            self.assertEqual(set(), used & {*none, *others}, names)

    def test_lines(self):
        """README says how many, which a reviewer of nova reads."""
        readme = README.read_text()
        for names, most in MOST_LINES.items():
            files = loaded(*names)
            texts = [pathlib.Path(file).read_text() for file in files.values()]
            lines = sum(len(text.splitlines()) for text in texts)
            text = '%d lines in %d modules' % (lines, len(files))
            self.addDetail(names[0], content.text_content(text))
            self.assertLessEqual(lines, most)
            self.assertIn('{:,}'.format(most), readme)
