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
NOBODY_MAY = ('let the user of nova-api read it, and run the program as that '
              'user')


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

    def test_owner_and_group(self):
        """Who may read the file may run the command, but not root."""
        if os.geteuid():
            self.skipTest('only root can change the owner')
        for uid, gid, mode, command in (
                (1, 0, 0o600, 'sudo -u daemon mirror ...'),
                (0, 1, 0o640, 'sudo -u daemon mirror ...'),
                (54321, 0, 0o600, "sudo -u '#54321' mirror ..."),
                (0, 54321, 0o640, "sudo -g '#54321' mirror ..."),
                (1, 0, 0o200, NOBODY_MAY), (0, 0, 0o600, NOBODY_MAY),
                (0, 1, 0o600, NOBODY_MAY)):
            os.chown(self.file, uid, gid)
            self.file.chmod(mode)
            said = self.refusal(self.file)
            self.assertIn('user nobody may not read %s, which belongs to '
                          'user ' % self.file, said)
            self.assertTrue(said.endswith(': ' + command), said)

    def test_folder_that_a_group_may_only_enter(self):
        """The right that is missing decides, not that of reading."""
        if os.geteuid():
            self.skipTest('only root can change the owner')
        os.chown(self.folder, 0, 1)
        self.folder.chmod(0o710)
        self.assertTrue(self.refusal(self.file).endswith(
            ': sudo -u daemon mirror ...'))

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
