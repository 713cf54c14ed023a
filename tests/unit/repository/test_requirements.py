# SPDX-License-Identifier: Apache-2.0
"""The files that OpenStack's requirements check reads, and what they add."""

import configparser
import importlib.metadata
import pathlib
import re

import testtools

from nova_aggregate_mirror.cmd import start

ROOT = pathlib.Path(__file__).parents[3]

# The check compares these files, and the extras in setup.cfg, with
# global-requirements.txt of openstack/requirements.
CHECKED = ('requirements.txt', 'test-requirements.txt', 'doc/requirements.txt')

# Tests require them, and global-requirements.txt does not have them.
UNLISTED = {'hypothesis', 'keystone', 'nova', 'openstack-placement',
            'psycopg', 'waitress'}

LINE = re.compile(r'([A-Za-z0-9._-]+)>=[0-9][0-9.]* # \S.*')


def lines(text):
    return [line for line in text.splitlines()
            if line and not line.startswith('#')]


def read(name):
    return lines((ROOT / name).read_text())


SETUP = configparser.ConfigParser()
SETUP.read(ROOT / 'setup.cfg')
EXTRAS = {name: lines(text) for name, text in SETUP.items('extras')}


def normal(line):
    """Return the normalized name of the package that a line names."""
    return re.sub('[-_.]+', '-', re.match('[A-Za-z0-9._-]+', line)[0]).lower()


class TestRequirements(testtools.TestCase):

    def test_lines_that_the_check_accepts(self):
        """It requires a bound and spells names so; a reviewer wants a licence.

        Packages that OpenStack does not list are elsewhere.
        """
        files = {name: read(name) for name in CHECKED}
        self.assertIn('PrettyTable', {
            line.partition('>')[0] for line in files['requirements.txt']})
        for name, found in (files | EXTRAS).items():
            for line in found:
                self.assertTrue(LINE.fullmatch(line), (name, line))
            self.assertEqual(
                set(), UNLISTED.intersection(map(normal, found)), name)
        self.assertEqual(
            UNLISTED, set(map(normal, read('tests/requirements.txt'))))

    def test_extras_of_nova_s_environment(self):
        """That of the agent includes that of nova, which start knows."""
        nova, agent = EXTRAS['nova'], EXTRAS['agent']
        self.assertEqual(set(nova), set(agent).intersection(nova))
        self.assertEqual(
            list(start.EXTRA),
            [normal(line).replace('-', '_') for line in nova])

    def test_installation_adds_no_package_to_nova_s_environment(self):
        """Each requirement is nova's own, too; the agent has one more."""
        nova = set(map(normal, importlib.metadata.requires('nova')))
        for packages, others in (
                (read('requirements.txt'), set()), (EXTRAS['nova'], set()),
                (EXTRAS['agent'], {'prometheus-client'})):
            self.assertEqual(others, set(map(normal, packages)) - nova)
