# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud parts``: progress, a table, an exit status."""

import argparse
import collections
from collections.abc import Sequence
import http.client
import itertools
import threading
import time

from keystoneauth1 import exceptions
import requests
import sqlalchemy as sa

from tests.cloud.outages import backbone
from tests.cloud.parts import judge
from tests.cloud.parts import measure
from tests.cloud.parts import page
from tests.cloud.parts import situations
from tests.cloud import processes
from tests.cloud import servers

# Errors of what is used to prepare a situation.
ERRORS = (requests.RequestException, exceptions.ClientException, OSError,
          http.client.HTTPException, sa.exc.SQLAlchemyError,
          processes.CloudError)


def main(arguments: argparse.Namespace) -> int:
    """Measure the situations; return 0 if no healthy host waits too long.

    :raises CloudError: when the cloud cannot be started
    :raises Unavailable: when a server is not installed
    """
    servers.install(private=True, clustered=False)
    lines = (situations.selection() if arguments.selection
             else situations.table())
    if arguments.only:
        lines = [line for line in lines if str(line) in arguments.only]
    began = time.monotonic()

    def tell(text: str) -> None:
        print('%5.0f s  %s' % (time.monotonic() - began, text), flush=True)

    postgresql = any(line.journal == 'postgresql' for line in lines)
    with backbone.running(postgresql, tell) as shared:
        run = Run(shared, tell)
        queue = collections.deque(
            line for line in lines if not line.is_heavy)
        # An interrupt kills the processes that these threads wait for.
        threads = [threading.Thread(
            target=run.work, args=(queue,), daemon=True)
            for _number in range(arguments.jobs)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        finally:
            queue.clear()
        run.work(collections.deque(line for line in lines if line.is_heavy))
        # The machine may have been too busy.
        for line in run.failures(lines):
            tell('Measuring %s again' % line)
            run.attempt(line)
    measured = [run.results[line] for line in lines if line in run.results]
    text = page.table(measured)
    failures = run.failures(lines)
    print(text)
    for line, problems in failures.items():
        print('WRONG: %s: %s' % (line, '; '.join(problems)))
        if line in run.results:
            print(run.results[line].logs)
    if arguments.write:
        page.FILE.write_text(text)
    print('%d of %d situations measured, %d failed' % (
        len(measured), len(lines), len(failures)))
    return 1 if failures else 0


class Run:
    """The results of a run; for several threads."""

    def __init__(self, shared: backbone.Backbone, tell: backbone.Tell
                 ) -> None:
        self.results: dict[situations.Situation, measure.Measured] = {}
        self._errors: dict[situations.Situation, str] = {}
        self._shared = shared
        self._tell = tell
        self._numbers = itertools.count(1)

    def work(self, queue: collections.deque[situations.Situation]) -> None:
        """Measure situations until the queue is empty."""
        while True:
            try:
                line = queue.popleft()
            except IndexError:
                return
            self.attempt(line)

    def attempt(self, line: situations.Situation) -> None:
        """Measure a situation, and print a line about it."""
        try:
            measured = measure.measure(
                self._shared, next(self._numbers), line)
        except ERRORS as exc:
            self._errors[line] = str(exc)
            self._tell('%s: NOT MEASURED: %s' % (line, exc))
            return
        self.results[line] = measured
        self._errors.pop(line, None)
        problems = self.failures([line]).get(line)
        self._tell('%s: %s%s' % (line, ', '.join(
            '%s %s' % (name, judge.shown(seconds))
            for name, seconds in measured.figures.items()),
            '; WRONG: ' + '; '.join(problems) if problems else ''))

    def failures(self, lines: Sequence[situations.Situation]
                 ) -> dict[situations.Situation, list[str]]:
        """Return the problems of each situation that breaks the promise."""
        problems = {}
        for line in lines:
            measured = self.results.get(line)
            problems[line] = [
                self._errors.get(line, 'not measured')
            ] if measured is None else [
                *judge.problems(line, measured.figures), *measured.problems]
        return {line: texts for line, texts in problems.items() if texts}
