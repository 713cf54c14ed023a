# SPDX-License-Identifier: Apache-2.0
"""The lock of a process, and the word that it leaves of what has ended."""

import errno
import os
import pathlib

import fixtures
import testtools

from nova_aggregate_mirror import owner
from tests import processes


class OwnerTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        self.mine = owner.Owner(self.directory)
        self.agent = owner.Owner(self.directory)


class TestLock(OwnerTest):

    def test_lock_that_cannot_be_taken(self):
        """A file system without locks: nothing is left, however often."""
        def flock(fd, how):
            raise OSError(errno.ENOLCK, 'No locks available')

        def descriptors():
            return len(os.listdir('/proc/self/fd'))

        with fixtures.MonkeyPatch('fcntl.flock', flock):
            self.assertRaises(OSError, self.mine.token)
            before = descriptors()
            for _ in range(3):
                self.assertRaises(OSError, self.mine.token)
        self.assertEqual(before, descriptors())
        self.assertEqual([owner.DIRECTORY_ID], [
            each.name for each in self.directory.iterdir()])

    def test_lock_of_another_user(self):
        """It is as on another host: nobody here can tell."""
        token = processes.killed(
            lambda: owner.Owner(self.directory).token())
        with fixtures.MonkeyPatch('os.access', lambda path, mode: False):
            self.assertFalse(self.agent.can_tell(token))
            self.assertFalse(self.agent.is_dead(token))
        self.assertTrue(self.agent.can_tell(token))
        self.assertTrue(self.agent.is_dead(token))


class TestWord(OwnerTest):

    def test_others_read_it(self):
        """Those of this host do, until it is taken back."""
        token = self.mine.token()
        self.assertEqual(frozenset(), self.agent.ended(token))
        self.mine.end('1')
        self.mine.end('17.5 req-1')
        self.assertEqual({'1', '17.5 req-1'}, self.agent.ended(token))
        self.assertEqual(frozenset(), self.agent.ended(self.agent.token()))
        with fixtures.MonkeyPatch('socket.gethostname', lambda: 'elsewhere'):
            self.assertEqual(frozenset(), self.agent.ended(token))
        self.mine.take_back()
        self.mine.take_back()
        self.assertEqual(frozenset(), self.agent.ended(token))

    def test_line_that_is_cut(self):
        """The beginning of a number is another number, and so is more."""
        self.mine.end('12')
        word, = self.directory.glob('*.ended')
        self.assertEqual(0o600, word.stat().st_mode & 0o777)
        with open(word, 'a') as cut:
            cut.write('\n37')
        self.assertEqual({'12'}, self.agent.ended(self.mine.token()))
        self.mine.end('5')
        self.assertEqual({'12', '5'}, self.agent.ended(self.mine.token()))

    def test_word_that_cannot_be_read(self):
        """It is none, and keeps nobody from the others' rows."""
        self.mine.end('12')
        word, = self.directory.glob('*.ended')
        word.write_bytes(b'\xff\n5 ended\n')
        self.assertEqual({'5'}, self.agent.ended(self.mine.token()))
        word.unlink()
        word.mkdir()
        self.assertEqual(frozenset(), self.agent.ended(self.mine.token()))

    def test_word_of_the_dead_is_removed(self):
        """Together with the lock that nobody holds any more."""
        def work():
            theirs = owner.Owner(self.directory)
            theirs.end('1')
            return theirs.token()

        token = processes.killed(work)
        self.assertEqual(1, len(list(self.directory.glob('*.ended'))))
        self.assertTrue(self.agent.is_dead(token))
        self.assertEqual([], list(self.directory.glob('*.ended')))
