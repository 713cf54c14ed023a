# SPDX-License-Identifier: Apache-2.0
"""A run of a table: cases, threads that measure them, results."""

from collections import abc
import http.client
import threading
from typing import Any

from keystoneauth1 import exceptions
import requests
import sqlalchemy as sa

from tests.cloud import output
from tests.cloud import processes

# Errors of what is used to prepare a case.
ERRORS = (requests.RequestException, exceptions.ClientException, OSError,
          http.client.HTTPException, sa.exc.SQLAlchemyError,
          processes.CloudError)
Measure = abc.Callable[[Any], Any]
"""Measures a case."""


class Queue:
    """The cases that no thread has taken yet; for several threads.

    :param cases: each with the kind of database that has its journal
    """

    def __init__(self, cases: abc.Iterable[Any]) -> None:
        self._left = list(cases)
        self._mutex = threading.Lock()

    def take(self, journal: str) -> Any:
        """Take a case, if possible with the journal that a lane uses.

        :returns: the case, or None
        """
        with self._mutex:
            same = [case for case in self._left if case.journal == journal]
            for case in same or self._left:
                self._left.remove(case)
                return case
        return None

    def clear(self) -> None:
        """Drop the remaining cases."""
        with self._mutex:
            self._left.clear()


class Run:
    """The results of a run, in the order of the table; for several threads.

    :param cases: of the whole table
    :param problems: lists how a measured case breaks the promise
    :param described: describes a measured case in a line
    """

    def __init__(self, cases: abc.Sequence[Any],
                 problems: abc.Callable[[Any], abc.Sequence[str]],
                 described: abc.Callable[[Any], str], tell: output.Tell
                 ) -> None:
        self.cases = cases
        self.errors: dict[Any, str] = {}
        """Why a case could not be measured."""
        self._measured: dict[Any, Any] = {}
        self._problems = problems
        self._described = described
        self._tell = tell

    @property
    def results(self) -> dict[Any, Any]:
        measured = dict(self._measured)
        return {case: measured[case] for case in self.cases
                if case in measured}

    def failures(self) -> dict[Any, abc.Sequence[str]]:
        """Return the problems of each case that breaks the promise."""
        problems = {case: self._problems(result)
                    for case, result in self.results.items()}
        problems |= {case: [self.errors.get(case, 'not measured')]
                     for case in self.cases if case not in problems}
        return {case: texts for case, texts in problems.items() if texts}

    def attempt(self, case: Any, measure: Measure) -> None:
        """Measure a case, and print a line about it."""
        try:
            result = measure(case)
        except ERRORS as exc:
            self.errors[case] = str(exc)
            self._tell('%s: NOT MEASURED: %s' % (case, exc))
            return
        self._measured[case] = result
        self.errors.pop(case, None)
        problems = self._problems(result)
        self._tell('%3d/%d  %s: %s%s' % (
            len(self._measured), len(self.cases), case,
            self._described(result),
            '; WRONG: ' + '; '.join(problems) if problems else ''))

    def measure(self, queue: Queue,
                workers: abc.Iterable[tuple[Measure, abc.Callable[[], str]]]
                ) -> None:
        """Measure all cases of a queue.

        :param workers: for each thread a function that measures, and one that
            returns the journal that it prefers
        """
        def work(measure: Measure, journal: abc.Callable[[], str]) -> None:
            while (case := queue.take(journal())) is not None:
                self.attempt(case, measure)

        # An interrupt kills the processes that these threads wait for.
        threads = [threading.Thread(target=work, args=worker, daemon=True)
                   for worker in workers]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        finally:
            queue.clear()

    def repeat(self, measure: Measure) -> None:
        """Measure the cases that have failed again, one after the other.

        The machine may have been too busy.
        """
        for case in self.failures():
            self._tell('Measuring %s again' % case)
            self.attempt(case, measure)

    def summarize(self, log: abc.Callable[[Any], str]) -> int:
        """Print all details of each failure; return the exit status.

        :param log: returns the logs of a measured case
        """
        failures, results = self.failures(), self.results
        for case, problems in failures.items():
            print('\nWRONG: %s\n  %s' % (case, '\n  '.join(problems)))
            if case in results:
                print(log(results[case]))
        print('\n%d of %d cases measured, %d failed' % (
            len(results), len(self.cases), len(failures)), flush=True)
        return 1 if failures else 0
