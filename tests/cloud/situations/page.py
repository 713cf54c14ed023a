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


def _about() -> dict[str, str]:
    """Return what identifies a run that ends now."""
    commit = subprocess.run(
        ['git', 'rev-parse', '--short', 'HEAD'], cwd=environment.TOP,
        capture_output=True, text=True, check=True).stdout.strip()
    return dict(zip(RUN, (time.strftime('%Y-%m-%d'), commit)))


def update(results: abc.Sequence[run.Result], names: abc.Sequence[str]
           ) -> None:
    """Replace the rows of a run, and drop those that were not as expected."""
    rows, about = _read(), _about()
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
    (FOLDER / 'situations.inc').write_text('%s\n%s' % (_versions(), text))


def _read() -> dict[str, dict[str, str]]:
    with open(FIGURES, newline='') as lines:
        return {row['name']: row for row in csv.DictReader(lines)}


def _row(result: run.Result) -> dict[str, str]:
    done = '; '.join(map(_shown, result.done))
    return dict(zip(COLUMNS, (
        result.situation.name, result.situation.title, _plain(result.got),
        _plain(result.summary), _plain(result.reason), done, result.after)))


def _shown(done: str) -> str:
    text = _plain(done)
    return '``%s``' % text if scene.is_command(done) else text


def _plain(text: str) -> str:
    """Replace what differs between runs, and what is markup."""
    for pattern, name in _RANDOM:
        text = pattern.sub(name, text)
    return re.sub(r'([*`|_]+)(?=\s|$)', r'\\\1', text.strip())


def _versions() -> str:
    versions = ['%s %s' % (name, importlib.metadata.version(name))
                for name in PACKAGES]
    return 'With Python %s, %s:\n' % (
        platform.python_version(), ', '.join(versions))
