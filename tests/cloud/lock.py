# SPDX-License-Identifier: Apache-2.0
"""The lock on a cloud: held by a run on it, or by "down"."""

from collections import abc
import contextlib
import fcntl
import pathlib

from tests.cloud import processes

NAME = 'run.lock'


@contextlib.contextmanager
def hold(directory: pathlib.Path) -> abc.Iterator[None]:
    """Hold the lock; it ends with this process, not with its children.

    :raises CloudError: when another run holds it
    """
    with open(directory / NAME, 'a') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise processes.CloudError(
                'another run uses this cloud; interrupt it, or wait until it '
                'has ended') from None
        yield
