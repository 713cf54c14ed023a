# SPDX-License-Identifier: Apache-2.0
"""The links of README, the man pages, the diagrams and the commands."""

import configparser
import pathlib
import re
import runpy

import testtools

ROOT = pathlib.Path(__file__).parents[3]
DOC = ROOT / 'doc'
CONF = DOC / 'source' / 'conf.py'
FOLDERS = ('nova_aggregate_mirror', 'etc', 'devstack', 'doc/source',
           'releasenotes/notes', 'tools')
FILES = ('README.rst', 'CONTRIBUTING.rst', 'setup.cfg', 'requirements.txt')
# A file and a URL have a slash, and an option ends the name of no package.
PUBLIC = re.compile(
    r'(?:pip3? install(?:[^\n]|\\\n)*?[ \'"]|pip_packages:\n(?:.*\n)*? *- )'
    r'nova[-_]aggregate[-_]mirror(?![-_\w./]*[/.])(?![^\n]* @ )')


class TestReadme(testtools.TestCase):

    def test_its_links_lead_to_files(self):
        links = re.findall(r'<(?!https:)([^<>\s]+)>`_',
                           (ROOT / 'README.rst').read_text())
        self.assertGreater(len(links), 10)
        missing = [link for link in links if not (ROOT / link).is_file()]
        self.assertEqual([], missing)


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


class TestPictures(testtools.TestCase):

    def test_current(self):
        """The diagrams are those that doc/pictures.py writes."""
        pictures = runpy.run_path(str(DOC / 'pictures.py'))['pictures']
        found = {path.name: path.read_text()
                 for path in (DOC / 'source' / 'pictures').iterdir()}
        self.assertEqual(pictures(), found)


class TestInstallCommands(testtools.TestCase):

    def test_public_name(self):
        """No text tells root to install a name that anybody may register.

        The package comes from a file, a directory or a repository.
        """
        files = [ROOT / name for name in FILES]
        for folder in FOLDERS:
            files += [path for path in (ROOT / folder).rglob('*')
                      if path.is_file() and path.suffix != '.pyc']
        for path in files:
            # The parts of a message are on several lines.
            text = re.sub(r"'\n *'", '', path.read_bytes().decode(
                errors='replace'))
            self.assertEqual(
                [], [match[0] for match in PUBLIC.finditer(text)], path)
