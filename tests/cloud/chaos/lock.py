# SPDX-License-Identifier: Apache-2.0
"""The lock on a cloud: held by one run, taken over by "down"."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import fcntl
import pathlib
import time
from typing import TextIO

import psutil

from tests.cloud import processes

NAME = 'chaos.lock'
POLL = 0.1
# A run undoes its faults and deletes its aggregates: seconds, but a minute if
# nova-api hangs.
ENDS_WITHIN = 120
DIES_WITHIN = 10


@contextlib.contextmanager
def hold(directory: pathlib.Path) -> Iterator[None]:
    """Hold the lock for a run of chaos or situations; record its process.

    :raises CloudError: when another run holds it
    """
    with open(directory / NAME, 'a+') as lock:
        if not _acquired(lock):
            raise processes.CloudError(
                'another run uses this cloud; wait until it has ended')
        own = psutil.Process()
        lock.truncate(0)
        print(own.pid, own.create_time(), file=lock, flush=True)
        yield


@contextlib.contextmanager
def take(directory: pathlib.Path, tell: Callable[[str], None]
         ) -> Iterator[None]:
    """End the chaos run on a cloud, if any, and prevent a new run.

    :param tell: is called with each action taken on the run
    :raises CloudError: when a process that is no chaos run holds the lock
    """
    def ask(chaos: psutil.Process) -> None:
        tell('Interrupting the run, process %s' % chaos.pid)
        chaos.terminate()

    def kill(chaos: psutil.Process) -> None:
        tell('Killing it: it did not end within %s s' % ENDS_WITHIN)
        # Its newest child process may not be recorded yet; while suspended it
        # starts no more.
        chaos.suspend()
        for each in [*chaos.children(recursive=True), chaos]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()

    with open(directory / NAME, 'a+') as lock:
        if not (_freed(lock, ask, ENDS_WITHIN)
                or _freed(lock, kill, DIES_WITHIN)):
            raise processes.CloudError(
                'another process has locked %s; wait until it has ended'
                % lock.name)
        yield


def _freed(lock: TextIO, end: Callable[[psutil.Process], None],
           seconds: float) -> bool:
    """End the run that holds the lock; return whether it was acquired."""
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
    # The lock ends with this process; its child processes do not inherit it.
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(lock: TextIO) -> psutil.Process | None:
    """Return the last recorded chaos run, if it is alive."""
    lock.seek(0)
    # The holder takes the lock before it writes the file.
    with contextlib.suppress(ValueError, psutil.NoSuchProcess):
        number, created = lock.read().split()
        process = psutil.Process(int(number))
        if processes.is_same(process, float(created)):
            return process
    return None
