# SPDX-License-Identifier: Apache-2.0
"""No text tells root to install a name that anybody may register."""

import pathlib
import re

import testtools

ROOT = pathlib.Path(__file__).parents[3]
FOLDERS = ('nova_aggregate_mirror', 'etc', 'devstack', 'doc/source',
           'releasenotes/notes', 'tools')
FILES = ('README.rst', 'CONTRIBUTING.rst', 'setup.cfg', 'requirements.txt')

# A file and a URL have a slash, and an option ends the name of no package.
PUBLIC = re.compile(
    r'(?:pip3? install(?:[^\n]|\\\n)*?[ \'"]|pip_packages:\n(?:.*\n)*? *- )'
    r'nova[-_]aggregate[-_]mirror(?![-_\w./]*[/.])(?![^\n]* @ )')


class TestInstallCommands(testtools.TestCase):

    def test_public_name(self):
        """The package comes from a file, a directory or a repository."""
        files = [ROOT / name for name in FILES] + [
            path for folder in FOLDERS for path in (ROOT / folder).rglob('*')
            if path.is_file() and path.suffix != '.pyc']
        for path in files:
            # The parts of a message are on several lines.
            text = re.sub(r"'\n *'", '', path.read_bytes().decode(
                errors='replace'))
            self.assertEqual(
                [], [match[0] for match in PUBLIC.finditer(text)], path)
