# SPDX-License-Identifier: Apache-2.0
"""Which process a journal row belongs to, and whether that process is alive.

A process that writes journal rows holds an exclusive ``flock`` on a file of
its own. The kernel frees it when the process ends, however it ends, so that
whoever can take the lock knows that the owner is dead. Beside it a living
process leaves word of operations that have ended, when the journal itself
cannot be told.
"""

import contextlib
import fcntl
import os
import pathlib
import socket
import threading
import uuid

from oslo_config import cfg

# Names the lock directory, so that a process with another directory (another
# host, another container) does not take a missing file for a dead owner.
DIRECTORY_ID = 'directory-id'
# Ends a line of word that was written whole.
MARK = ' ended'


def directory(conf: cfg.ConfigOpts) -> pathlib.Path:
    """Where the lock files of this host are."""
    return pathlib.Path(conf.state_path) / 'aggregate_mirror' / 'owners'


class Owner:
    """The identity of this process as an owner of journal rows.

    :param directory: where the lock files are, shared by all processes of
        this host that use the same journal; made when it is missing
    """

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory
        self._mutex = threading.Lock()
        self._fd = -1
        self._token = ''
        self._has_left_word = False
        # A child would hold the lock of its parent for as long as it lives.
        os.register_at_fork(after_in_child=self._forget)

    def token(self) -> str:
        """What this process signs its rows with; the lock is then held.

        :raises OSError: when the lock file cannot be made or locked
        """
        with self._mutex:
            if not self._token:
                self._take()
            return self._token

    def is_mine(self, token: str) -> bool:
        return bool(token) and token == self._token

    def can_tell(self, token: str) -> bool:
        """Whether this process can test if the owner is alive.

        It cannot for a process of another host, nor of another user.
        """
        if not token or token.rpartition(':')[0] != self._place():
            return False
        lock = self._lock_of(token)
        return os.access(lock, os.R_OK | os.W_OK) or not lock.exists()

    def is_dead(self, token: str) -> bool:
        """Whether the owner is known to be dead; False when nobody can tell.

        :raises OSError: when the lock file cannot be tested
        """
        if self.is_mine(token) or not self.can_tell(token):
            return False
        lock = self._lock_of(token)
        try:
            fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Nobody else will ever use this name, so the files can go.
            self._word_of(token).unlink(missing_ok=True)
            lock.unlink(missing_ok=True)
            return True
        except BlockingIOError:
            return False
        finally:
            os.close(fd)

    def end(self, key: str) -> None:
        """Leave word that an operation of this process has ended.

        :param key: a line that names it to whoever knows the owner
        :raises OSError: when it cannot be written
        """
        path = self._word_of(self.token())
        self._has_left_word = True
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND
                     | os.O_CLOEXEC, 0o600)
        with open(fd, 'w') as word:
            # The beginning of a number is another number: only what has its
            # mark counts, and what a full disk has cut is a line by itself.
            word.write('\n%s%s\n' % (key, MARK))

    def ended(self, token: str) -> frozenset[str]:
        """The operations of which an owner on this host has left word."""
        text = ''
        # Whose word cannot be read has left none.
        with contextlib.suppress(OSError):
            if self.can_tell(token):
                text = self._word_of(token).read_text(errors='replace')
        return frozenset(line.removesuffix(MARK) for line in text.split('\n')
                         if line.endswith(MARK))

    def take_back(self) -> None:
        """Remove this process's word: the journal has all of it by now.

        :raises OSError: when it cannot be removed
        """
        if self._has_left_word:
            self._word_of(self._token).unlink(missing_ok=True)
            self._has_left_word = False

    def _lock_of(self, token: str) -> pathlib.Path:
        return self._directory / (token.rpartition(':')[2] + '.lock')

    def _word_of(self, token: str) -> pathlib.Path:
        return self._directory / (token.rpartition(':')[2] + '.ended')

    def _take(self) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._name_directory()
        token = '%s:%d-%s' % (self._place(), os.getpid(), uuid.uuid4().hex)
        lock = self._lock_of(token)
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
                     0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            lock.unlink()
            raise
        self._fd, self._token = fd, token

    def _name_directory(self) -> None:
        path = self._directory / DIRECTORY_ID
        if path.exists():
            return
        # Made whole before it gets its name: of two processes one wins.
        made = path.with_name('%s.%s' % (DIRECTORY_ID, uuid.uuid4().hex))
        try:
            made.write_text(uuid.uuid4().hex)
            with contextlib.suppress(FileExistsError):
                os.link(made, path)
        finally:
            made.unlink(missing_ok=True)

    def _place(self) -> str:
        """This host and directory; empty when nobody here ever owned a row."""
        with contextlib.suppress(FileNotFoundError):
            return '%s:%s' % (socket.gethostname(),
                              (self._directory / DIRECTORY_ID).read_text())
        return ''

    def _forget(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._mutex = threading.Lock()
        self._fd, self._token = -1, ''
        self._has_left_word = False
