# SPDX-License-Identifier: Apache-2.0
"""The check of built pages, and the man pages."""

import configparser
import pathlib
import re
import runpy

import fixtures
import testtools

ROOT = pathlib.Path(__file__).parents[3]
CONF = ROOT / 'doc' / 'source' / 'conf.py'
LINKS = ROOT / 'doc' / 'links.py'


class TestLinks(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (self.folder / 'admin').mkdir()
        self.write('index.html', '<h1 id="top">A</h1>')

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def broken(self):
        return list(runpy.run_path(str(LINKS))['broken'](self.folder))

    def test_what_exists_is_not_reported(self):
        self.write('admin/log.html', (
            '<a name="b"><a href="#b"><a href="../index.html#top">'
            '<a href="https://example.org/#x"><img src="../index.html">'))
        self.assertEqual([], self.broken())

    def test_what_does_not_exist_is_reported(self):
        self.write('admin/log.html', (
            '<a href="#a"><a href="../index.html#b"><img src="c.png">'))
        self.assertEqual([
            'admin/log.html: #a: no such anchor',
            'admin/log.html: ../index.html#b: no such anchor',
            'admin/log.html: c.png: no such file'], self.broken())


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
