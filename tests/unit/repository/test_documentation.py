# SPDX-License-Identifier: Apache-2.0
"""The links of README, and the man pages."""

import configparser
import pathlib
import re

import testtools

ROOT = pathlib.Path(__file__).parents[3]
CONF = ROOT / 'doc' / 'source' / 'conf.py'


class TestReadme(testtools.TestCase):

    def test_its_links_lead_to_files(self):
        links = re.findall(r'<(?!https:)([^<>\s]+)>`_',
                           (ROOT / 'README.rst').read_text())
        self.assertGreater(len(links), 10)
        self.assertEqual([], [link for link in links
                              if not (ROOT / link).is_file()])


class TestManPages(testtools.TestCase):

    def test_each_program_has_one(self):
        setup = configparser.RawConfigParser()
        setup.read(ROOT / 'setup.cfg')
        programs = re.findall(
            r'^(\S+) =', setup['entry_points']['console_scripts'],
            re.MULTILINE)
        listed = CONF.read_text().partition('\nman_pages = ')[2]
        self.assertEqual(
            sorted(programs),
            re.findall(r"^ +\('(nova-[\w-]+)',$", listed, re.MULTILINE))
