# SPDX-License-Identifier: Apache-2.0
"""Atomic replacement of a file."""

from collections import abc
import contextlib
import functools
import os
import stat
import sys
from typing import BinaryIO
import uuid

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import printable

STDOUT = '-'
Write = abc.Callable[[abc.Iterable[str]], None]


@contextlib.contextmanager
def replaced(name: str) -> abc.Iterator[Write]:
    """Open a file before the work that produces its content.

    Until the content is complete, and if the block raises, readers get the
    previous file. Symbolic links are not followed: others may create them.

    :param name: name of the file, or ``-`` for standard output
    :returns: a function that writes the whole content, with escaped controls
    :raises InvalidConfiguration: when the file cannot be written
    """
    if name == STDOUT:
        yield lambda parts: _write(sys.stdout.buffer, parts)
        return
    folder, file = os.path.split(name)
    with contextlib.ExitStack() as stack:
        with _translated(name):
            # The path may be changed before the content is complete.
            directory = os.open(folder or '.', os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, directory)
            previous = _previous(name, directory, file)
            temporary = '%s.%s' % (file, uuid.uuid4().hex)
            # Private until it has the access of the previous file.
            mode = 0o600 if previous else 0o666
            out = open(temporary, 'xb', opener=functools.partial(
                os.open, mode=mode, dir_fd=directory))
            stack.callback(_remove, temporary, directory)
            stack.enter_context(out)
            if previous:
                _keep_access(out.fileno(), previous)

        def write(parts: abc.Iterable[str]) -> None:
            with _translated(name):
                # Closing the file may write again, and fail again.
                with out:
                    _write(out, parts)
                # A symbolic link of this name is replaced, not followed.
                os.replace(temporary, file, src_dir_fd=directory,
                           dst_dir_fd=directory)

        yield write


def _previous(name: str, directory: int, file: str) -> os.stat_result | None:
    """Return the status of the file to replace, if there is one."""
    # In a directory such as /tmp, the kernel may refuse to open a link or a
    # file that another user has prepared, but not to replace it.
    try:
        previous = os.stat(
            file or '.', dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(previous.st_mode):
        raise exceptions.InvalidConfiguration(
            '%s is no regular file, or a symbolic link; give another name, or '
            '- for standard output' % name)
    folder = os.fstat(directory)
    if folder.st_mode & stat.S_ISVTX and previous.st_uid not in (
            os.geteuid(), folder.st_uid):
        raise exceptions.InvalidConfiguration(
            '%s belongs to another user; give a file in a directory that '
            'other users cannot write to' % name)
    return previous


def _keep_access(descriptor: int, previous: os.stat_result) -> None:
    """Give a file the mode of the previous file, and its owner if allowed."""
    for owner in (previous.st_uid, -1), (-1, previous.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, *owner)
    os.fchmod(descriptor, stat.S_IMODE(previous.st_mode) & 0o777)


def _remove(file: str, directory: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(file, dir_fd=directory)


def _write(out: BinaryIO, parts: abc.Iterable[str]) -> None:
    for part in parts:
        # HTML has no control characters, and the output may be a terminal.
        out.write(printable.lines(part).encode(errors='replace'))
    out.flush()


@contextlib.contextmanager
def _translated(name: str) -> abc.Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise exceptions.InvalidConfiguration(
            '%s cannot be written: %s; give a file in a directory that this '
            'user may write to' % (name, exc.strerror or exc)) from exc
