# SPDX-License-Identifier: Apache-2.0
"""Replacement of a file, in directories of other users as well."""

import io
import os
import pathlib
import resource
import signal
import stat
import unittest

import fixtures
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.html_report import output
from tests.unit.test_printable import EVIL
from tests.unit.test_printable import SAFE

NOBODY = 65534


class TestReplaced(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path,
                                   'folder')
        self.folder.mkdir()
        self.file = self.folder / 'page.html'

    def write(self, *parts):
        with output.replaced(str(self.file)) as write:
            write(parts)

    def mode(self):
        return stat.S_IMODE(self.file.stat().st_mode)

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def assert_refused(self, *text):
        """Nothing is written, and the work does not begin."""
        before = self.names()
        with testtools.ExpectedException(
                exceptions.InvalidConfiguration, '.*' + '.*'.join(text)):
            with output.replaced(str(self.file)):
                self.fail('The work has begun')
        self.assertEqual(before, self.names())

    def test_new_file(self):
        """Its mode is that of any new file."""
        self.addCleanup(os.umask, os.umask(0o027))
        self.write('one ', 'page')
        self.assertEqual('one page', self.file.read_text())
        self.assertEqual(0o640, self.mode())

    def test_text_that_controls_a_terminal(self):
        """It is escaped, in a file and on the standard output."""
        self.write('<p>\n', '<bdi>', EVIL.replace('\n', ''), '</bdi>\n')
        text = '<p>\n<bdi>%s</bdi>\n' % SAFE.replace('\\n', '')
        self.assertEqual(text, self.file.read_text())
        out = io.TextIOWrapper(io.BytesIO())
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', out))
        with output.replaced(output.STDOUT) as write:
            write(['<bdi>', EVIL])
        self.assertEqual(b'<bdi>' + SAFE.replace('\\n', '\n').encode(),
                         out.buffer.getvalue())

    def test_file_in_the_working_directory(self):
        """A name without a directory is valid."""
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        self.file = pathlib.Path(self.file.name)
        self.write('page')
        self.assertEqual(['page.html'], self.names())

    def test_symbolic_link(self):
        """It is not followed, whether its target exists or not."""
        target = self.folder / 'target'
        self.file.symlink_to(target)
        self.assert_refused('page.html', 'symbolic link')
        target.write_text('previous')
        self.assert_refused('page.html', 'symbolic link')
        self.assertEqual('previous', target.read_text())

    def test_link_that_another_user_creates_meanwhile(self):
        """It is replaced, and its target is not."""
        target = self.folder / 'target'
        target.write_text('previous')
        with output.replaced(str(self.file)) as write:
            self.file.symlink_to(target)
            write(['page'])
        self.assertEqual('previous', target.read_text())
        self.assertFalse(self.file.is_symlink())

    def test_directory_that_is_exchanged_meanwhile(self):
        """The file is written to the directory that was checked."""
        other = self.folder.with_name('other')
        other.mkdir()
        moved = self.folder.with_name('moved')
        with output.replaced(str(self.file)) as write:
            self.folder.rename(moved)
            self.folder.symlink_to(other)
            write(['page'])
        self.assertEqual([], [*other.iterdir()])
        self.assertEqual('page', (moved / 'page.html').read_text())

    def test_what_is_no_file(self):
        """A directory or a named pipe is neither replaced nor opened."""
        os.mkfifo(self.file)
        self.assert_refused('page.html is no regular file')
        for name in self.folder, '%s/' % self.folder, '/dev/null':
            self.file = name
            self.assert_refused('is no regular file')

    def test_directory_that_does_not_exist(self):
        """The error has the reason."""
        self.file = self.folder / 'none' / 'page.html'
        self.assert_refused('page.html cannot be written: No such file')

    def test_previous_mode(self):
        """It is kept; nobody can read more of the new page before."""
        self.addCleanup(os.umask, os.umask(0))
        self.file.write_text('previous')
        self.file.chmod(0o4604)
        with output.replaced(str(self.file)) as write:
            temporary, = {*self.names()} - {self.file.name}
            self.assertEqual(0o604, stat.S_IMODE(
                self.folder.joinpath(temporary).stat().st_mode))
            self.assertEqual('previous', self.file.read_text())
            write(['page'])
        self.assertEqual((0o604, 'page'), (self.mode(), self.file.read_text()))

    def test_work_that_fails(self):
        """The previous file stays, and no other file."""
        self.file.write_text('previous')
        with testtools.ExpectedException(ZeroDivisionError):
            with output.replaced(str(self.file)):
                raise ZeroDivisionError()
        self.assertEqual(['page.html'], self.names())
        self.assertEqual('previous', self.file.read_text())

    def test_full_disk(self):
        """Also when the file is closed, the error has its name."""
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
        self.addCleanup(signal.signal, signal.SIGXFSZ, signal.signal(
            signal.SIGXFSZ, signal.SIG_IGN))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
        with testtools.ExpectedException(
                exceptions.InvalidConfiguration,
                '.*page.html cannot be written: File too large'):
            self.write('page')
        self.assertEqual([], self.names())

    @unittest.skipIf(os.geteuid(), 'Only root can give files away')
    def test_previous_owner(self):
        """Root replaces the file of a web server, which stays its owner."""
        self.file.write_text('previous')
        os.chown(self.file, NOBODY, NOBODY)
        self.write('page')
        owner = self.file.stat()
        self.assertEqual((NOBODY, NOBODY), (owner.st_uid, owner.st_gid))

    @unittest.skipIf(os.geteuid(), 'Only root can give files away')
    def test_file_that_another_user_has_prepared(self):
        """In a directory like /tmp it would stay readable to that user."""
        self.folder.chmod(0o1777)
        self.file.write_text('previous')
        self.write('page')
        os.chown(self.file, NOBODY, NOBODY)
        self.assert_refused('page.html belongs to another user')
        self.assertEqual('page', self.file.read_text())
