# SPDX-License-Identifier: Apache-2.0
"""Atomic replacement of a file."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import os
import shutil
import sys
from typing import BinaryIO
import uuid

from nova_aggregate_mirror import exceptions

STDOUT = '-'


Write = Callable[[Iterable[str]], None]


@contextlib.contextmanager
def replaced(name: str) -> Iterator[Write]:
    """Open a file before the work that produces its content.

    Until the new content is complete, readers get the previous file. The
    previous file also stays if the block raises.

    :param name: name of the file, or ``-`` for standard output
    :returns: a function that writes the whole content
    :raises InvalidConfiguration: when the file cannot be written
    """
    if name == STDOUT:
        yield lambda parts: _write(sys.stdout.buffer, parts)
        return
    # A symbolic link is kept; its target is replaced.
    path = os.path.realpath(name)
    if os.path.exists(path) and not os.path.isfile(path):
        raise exceptions.InvalidConfiguration(
            '%s is no regular file; give another name, or - for standard '
            'output' % name)
    made = '%s.%s' % (path, uuid.uuid4().hex)
    with _translated(name):
        out = open(made, 'xb')

    def write(parts: Iterable[str]) -> None:
        with _translated(name):
            _write(out, parts)
            if os.path.exists(path):
                shutil.copymode(path, made)
            os.replace(made, path)

    try:
        with out:
            yield write
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(made)


def _write(out: BinaryIO, parts: Iterable[str]) -> None:
    for part in parts:
        out.write(part.encode(errors='replace'))
    out.flush()


@contextlib.contextmanager
def _translated(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise exceptions.InvalidConfiguration(
            '%s cannot be written: %s; give a file in a directory that this '
            'user may write to' % (name, exc.strerror or exc)) from exc
