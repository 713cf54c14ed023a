# SPDX-License-Identifier: Apache-2.0
"""Processes that a test forks, and the output of other processes."""

from collections import abc
import multiprocessing
import os
import signal
import subprocess
import threading
import traceback
from typing import Any

import testtools

_FORK = multiprocessing.get_context('fork')


def at_once(count: int, work: abc.Callable[[int], Any]) -> list[Any]:
    """Return the results of children that start, and live, together."""
    barrier = _FORK.Barrier(count)

    def begin(number: int, pipe: Any) -> None:
        try:
            barrier.wait()
            pipe.send((True, work(number)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))
        barrier.wait()

    children = []
    for number in range(count):
        here, there = _FORK.Pipe(duplex=False)
        child = _FORK.Process(target=begin, args=(number, there), daemon=True)
        child.start()
        there.close()
        children.append((child, here))
    results = [pipe.recv() for _child, pipe in children]
    for child, _pipe in children:
        child.join()
    for good, result in results:
        if not good:
            raise AssertionError(result)
    return [result for _good, result in results]


def killed(work: abc.Callable[[], Any]) -> Any:
    """Kill a child with ``kill -9`` after its work; return its result."""
    here, there = _FORK.Pipe(duplex=False)

    def begin() -> None:
        there.send(work())
        os.kill(os.getpid(), signal.SIGKILL)

    child = _FORK.Process(target=begin, daemon=True)
    child.start()
    there.close()
    result = here.recv()
    child.join()
    return result


def killed_inside(work: abc.Callable[[], Any]) -> bool:
    """Run work in a child; return whether the child killed itself in it."""
    child = _FORK.Process(target=work, daemon=True)
    child.start()
    child.join()
    if child.exitcode not in (0, -signal.SIGKILL):
        raise AssertionError('exit status %s' % child.exitcode)
    return bool(child.exitcode)


def barrier(count: int) -> Any:
    """Return a barrier for this number of children."""
    return _FORK.Barrier(count)


def begin(test: testtools.TestCase, argv: abc.Sequence[Any], wanted: str,
          patience: float, **options: Any
          ) -> tuple['subprocess.Popen[str]', list[str]]:
    """Start a process, which the test kills; read its log until a text.

    :param patience: seconds after which it is killed if it is silent
    """
    process = subprocess.Popen(
        argv, stderr=subprocess.PIPE, text=True, **options)
    assert process.stderr is not None
    for clean_up in process.stderr.close, process.wait, process.kill:
        test.addCleanup(clean_up)
    timer = threading.Timer(patience, process.kill)
    timer.start()
    lines = []
    for line in process.stderr:
        lines.append(line)
        if wanted in line:
            break
    timer.cancel()
    return process, lines


def hear(stream: abc.Iterable[str], wanted: str) -> str:
    """Read lines until a text is found; return all lines read."""
    heard = ''
    for line in stream:
        heard += line
        if wanted in line:
            return heard
    raise AssertionError('%r is not in %r' % (wanted, heard))
