# SPDX-License-Identifier: Apache-2.0
"""The table of the documentation's page of requests without a host."""

from collections import abc
import csv
import importlib.metadata
import platform
import re
import subprocess
import time

from tests.cloud import environment
from tests.cloud.integration import pages
from tests.cloud.situations import run
from tests.cloud.situations import scene

FOLDER = environment.TOP / 'doc' / 'source' / 'admin' / 'no-valid-host'
FIGURES = FOLDER / 'situations.csv'
PACKAGES = ('nova', 'openstack-placement', 'neutron', 'keystone', 'glance')
HEADER = ('Situation', 'What nova reports', 'What the command says about a '
          'host', 'What was done')
COLUMNS = 'name', 'title', 'reported', 'summary', 'explained', 'done', 'host'
RUN = ('date', 'commit')
# Names and IDs of one run.
_RANDOM = (
    (re.compile(r'\b(zone|aggregate|flavor|key|server)-[0-9a-f]{8}\b'),
     lambda found: found[1].upper()),
    (re.compile(r'\bCUSTOM_[0-9A-F]{8}\b'), lambda found: 'CUSTOM_NAME'),
    (re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'),
     lambda found: 'UUID'),
    (re.compile(r'\b[0-9a-f]{32}\b'), lambda found: 'PROJECT'),
    (re.compile(r'for \d+ s\b'), lambda found: 'for N s'))


def update(results: abc.Sequence[run.Result], names: abc.Sequence[str]
           ) -> None:
    """Replace the rows of a run, and drop those that were not as expected."""
    commit = subprocess.run(
        ['git', 'rev-parse', '--short', 'HEAD'], cwd=environment.TOP,
        capture_output=True, text=True, check=True).stdout.strip()
    about = dict(zip(RUN, (time.strftime('%Y-%m-%d'), commit)))
    with open(FIGURES, newline='') as lines:
        rows = {row['name']: row for row in csv.DictReader(lines)}
    for one in results:
        rows.pop(one.situation.name, None)
        if not one.problems:
            rows[one.situation.name] = {**_row(one), **about}
    kept = [rows[name] for name in names if name in rows]
    with open(FIGURES, 'w', newline='') as output:
        writer = csv.DictWriter(output, (*COLUMNS, *RUN), lineterminator='\n')
        writer.writeheader()
        writer.writerows(kept)
    cells = [(row['title'], row['reported'], row['explained'], row['done'])
             for row in kept]
    text = pages.texts('Situations', HEADER, (24, 18, 32, 26), cells)
    versions = ['%s %s' % (name, importlib.metadata.version(name))
                for name in PACKAGES]
    (FOLDER / 'situations.inc').write_text('With Python %s, %s:\n\n%s' % (
        platform.python_version(), ', '.join(versions), text))


def _row(result: run.Result) -> dict[str, str]:
    done = [('``%s``' if scene.is_command(each) else '%s') % _plain(each)
            for each in result.done]
    return dict(zip(COLUMNS, (
        result.situation.name, result.situation.title, _plain(result.got),
        _plain(result.summary), _plain(result.reason), '; '.join(done),
        result.after)))


def _plain(text: str) -> str:
    """Replace what differs between runs, and what is markup."""
    for pattern, name in _RANDOM:
        text = pattern.sub(name, text)
    return re.sub(r'([*`|_]+)(?=\s|$)', r'\\\1', text.strip())
