# SPDX-License-Identifier: Apache-2.0
"""Configuration that belongs to another user."""

import contextlib
import io
import os
import pathlib

import fixtures
from oslo_config import cfg
import testtools

from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror.cmd import unreadable_files
from nova_aggregate_mirror import exceptions

NOBODY = 65534


class TestUnreadable(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'nova')
        self.folder.mkdir()
        self.file = self.folder / 'nova.conf'
        self.file.write_text('[DEFAULT]\n')
        # Whatever the umask is.
        self.file.chmod(0o644)
        for folder in self.folder, self.folder.parent:
            folder.chmod(0o755)

    @contextlib.contextmanager
    def other_user(self):
        """Become a user who is not root."""
        if os.geteuid():
            yield
            return
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)

    def refusal(self, path):
        with self.other_user():
            return str(self.assertRaises(
                exceptions.InvalidConfiguration, unreadable_files.check,
                [path], 'mirror'))

    def test_file_of_another_user(self):
        """The step is the user of nova-api, not root."""
        self.file.chmod(0)
        said = self.refusal(self.file)
        self.assertIn(' may not read %s, which belongs to user ' % self.file,
                      said)
        self.assertTrue(said.endswith(
            ': run the program as the user of nova-api, such as with '
            '"sudo -u nova mirror ..."'), said)

    def test_folder_that_may_only_be_entered(self):
        """The right that is missing decides, not that of reading."""
        self.folder.chmod(0o711)
        self.assertIn('%s, which' % self.folder, self.refusal(self.folder))
        with self.other_user():
            unreadable_files.check([self.file], 'mirror')

    def test_folder(self):
        """Files in a folder that cannot be entered appear not to exist."""
        self.folder.chmod(0o600)
        self.assertIn('%s, which' % self.folder, self.refusal(self.file))
        self.folder.chmod(0o755)
        with self.other_user():
            unreadable_files.check(
                [self.file, self.folder, '/none/none'], 'mirror')

    def test_program(self):
        """It prints this line, and exits with 255."""
        self.file.chmod(0)

        def command():
            raise cfg.ConfigFilesPermissionDeniedError([str(self.file)])

        errors = io.StringIO()
        with self.other_user(), contextlib.redirect_stderr(errors):
            self.assertEqual(255, program.run('mirror', command))
        self.assertEqual(1, errors.getvalue().count('\n'))
        self.assertIn('mirror: user ', errors.getvalue())
