# SPDX-License-Identifier: Apache-2.0
"""Who works on a cloud: one chaos, until whoever stops the cloud ends it."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import fcntl
import pathlib
import time
from typing import TextIO

import psutil

from tests.cloud import processes
from tests.fullcloud import daemons

NAME = 'chaos.lock'
POLL = 0.1
# It undoes its faults and deletes its aggregates: seconds, but a minute where
# nova-api hangs.
ENDS_WITHIN = 120
DIES_WITHIN = 10


@contextlib.contextmanager
def hold(directory: pathlib.Path) -> Iterator[None]:
    """Be the only chaos on a cloud, and the one that can be ended.

    :raises CloudError: when there is another one
    """
    with open(directory / NAME, 'a+') as lock:
        if not _acquired(lock):
            raise processes.CloudError(
                'another chaos works on this cloud; wait until it has ended')
        own = psutil.Process()
        lock.truncate(0)
        print(own.pid, own.create_time(), file=lock, flush=True)
        yield


@contextlib.contextmanager
def take(directory: pathlib.Path, tell: Callable[[str], None]
         ) -> Iterator[None]:
    """End the chaos on a cloud, if there is one, and let none begin.

    :param tell: is told what is done to it
    :raises CloudError: when it is no chaos that works there
    """
    def ask(chaos: psutil.Process) -> None:
        tell(f'Ending the chaos on this cloud, process {chaos.pid}')
        chaos.terminate()

    def kill(chaos: psutil.Process) -> None:
        tell(f'Killing it: it did not end within {ENDS_WITHIN} s')
        # Nobody else may know of what it has just started, and once it stands
        # still that does not change.
        chaos.suspend()
        for each in [*chaos.children(recursive=True), chaos]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()

    with open(directory / NAME, 'a+') as lock:
        if not (_freed(lock, ask, ENDS_WITHIN)
                or _freed(lock, kill, DIES_WITHIN)):
            raise processes.CloudError(
                f'another process works on this cloud and has {lock.name}; '
                'wait until it has ended')
        yield


def _freed(lock: TextIO, end: Callable[[psutil.Process], None],
           seconds: float) -> bool:
    """Have the chaos ended that holds the lock; whether it is ours now."""
    deadline = time.monotonic() + seconds
    ended = None
    while not _acquired(lock):
        chaos = _holder(lock)
        if chaos not in (None, ended):
            with contextlib.suppress(psutil.NoSuchProcess):
                end(chaos)
            ended = chaos
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL)
    return True


def _acquired(lock: TextIO) -> bool:
    # It ends with this process, and what that has started does not inherit it.
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(lock: TextIO) -> psutil.Process | None:
    """The chaos that was the last to write itself down, if it runs."""
    lock.seek(0)
    # It has the lock before it writes.
    with contextlib.suppress(ValueError, psutil.NoSuchProcess):
        number, created = lock.read().split()
        process = psutil.Process(int(number))
        if daemons.is_same(process, float(created)):
            return process
    return None
