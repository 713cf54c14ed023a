# SPDX-License-Identifier: Apache-2.0
"""Directories in which a cloud cannot be created."""

import os
import pathlib
import pwd

import fixtures
import testtools

from tests import databases
from tests.fullcloud import options


class TestDirectory(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.err = self.useFixture(fixtures.StringStream('err')).stream
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', self.err))

    def assert_refused(self, directory, why):
        """Check for a usage error with the reason."""
        error = self.assertRaises(
            SystemExit, options.parse, ['--directory', str(directory), 'down'])
        self.assertEqual(2, error.code)
        self.err.seek(0)
        said = self.err.read()
        self.assertIn('usage:', said)
        self.assertIn('%s cannot have a cloud: %s' % (directory, why), said)

    def test_file(self):
        """A file is a usage error, not a traceback."""
        (self.folder / 'file').touch()
        self.assert_refused(self.folder / 'file', 'Not a directory')

    def test_below_a_folder_of_somebody_else(self):
        """A directory below an inaccessible folder is refused."""
        self.lock_out()
        self.assert_refused(self.folder / 'cloud', 'Permission denied')

    def test_folder_of_somebody_else(self):
        """An inaccessible folder is refused: its content is unknown."""
        self.lock_out()
        self.assert_refused(self.folder, 'Permission denied')

    def test_new_one(self):
        """A directory that does not exist is accepted."""
        directory = self.folder / 'new' / 'cloud'
        chosen = options.parse(['--directory', str(directory), 'down'])
        self.assertEqual(directory, chosen.directory)

    def lock_out(self):
        """Make the folder inaccessible until the test ends."""
        self.addCleanup(self.folder.chmod, 0o700)
        self.folder.chmod(0)
        # Root may enter every folder.
        if not os.geteuid():
            self.addCleanup(os.seteuid, 0)
            os.seteuid(pwd.getpwnam(databases.first_user('nobody')).pw_uid)
