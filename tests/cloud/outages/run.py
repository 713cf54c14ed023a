# SPDX-License-Identifier: Apache-2.0
"""A run of the table of outages: cases, lanes that measure them, results."""

from collections.abc import Sequence
import dataclasses
import threading
import time

from tests.cloud.outages import cases
from tests.cloud.outages import judge
from tests.cloud.outages import measure
from tests.cloud.outages import page


@dataclasses.dataclass(frozen=True)
class Plan:
    """The cases of a run, and its limits in seconds."""

    cases: Sequence[cases.Case]
    inline_timeout: float
    cut: float

    @property
    def uses_postgresql(self) -> bool:
        return any(case.journal == 'postgresql' for case in self.cases)


class Queue:
    """The cases that no lane has taken yet; for several threads."""

    def __init__(self, wanted: Sequence[cases.Case]) -> None:
        self._left = list(wanted)
        self._mutex = threading.Lock()

    def take(self, journal: str) -> cases.Case | None:
        """Take a case, if possible with the journal that a lane uses."""
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
    """A run of the table; ``results`` are in the order of the table."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._began = time.monotonic()
        self._results: dict[cases.Case, measure.Measured] = {}
        self.errors: dict[cases.Case, str] = {}
        """Why a case could not be measured."""
        self._mutex = threading.Lock()

    def tell(self, text: str) -> None:
        """Print a line of progress."""
        print('%5.0f s  %s' % (time.monotonic() - self._began, text),
              flush=True)

    @property
    def results(self) -> dict[cases.Case, measure.Measured]:
        return {case: self._results[case] for case in self.plan.cases
                if case in self._results}

    @property
    def healthy(self) -> dict[str, measure.Answer]:
        """Return stock nova's answer to each call without a fault."""
        return {case.call: self._results[case].stock
                for case in cases.healthy() if case in self._results}

    def failures(self) -> dict[cases.Case, list[str]]:
        """Return the problems of each case that breaks the promise."""
        found = {case: judge.problems(each, self.healthy,
                                      self.plan.inline_timeout)
                 for case, each in self.results.items()}
        found |= {case: [self.errors.get(case, 'not measured')]
                  for case in self.plan.cases if case not in self._results}
        return {case: wrong for case, wrong in found.items() if wrong}

    def attempt(self, measurer: measure.Measurer, case: cases.Case) -> None:
        """Measure a case, and print a line about it."""
        try:
            measured = measurer.measure(case)
        except measure.ERRORS as exc:
            self.errors[case] = str(exc)
            self.tell('%s: NOT MEASURED: %s' % (case, exc))
            return
        with self._mutex:
            self._results[case] = measured
        self.errors.pop(case, None)
        wrong = judge.problems(measured, self.healthy,
                               self.plan.inline_timeout)
        self.tell('%3d/%d  %s: %s, equal after %.1f s%s' % (
            len(self._results), len(self.plan.cases), case,
            page.cell(measured), measured.healed,
            '; WRONG: ' + '; '.join(wrong) if wrong else ''))

    def repeat(self, measurer: measure.Measurer) -> None:
        """Measure the cases that have failed again, one after the other.

        The machine may have been too busy.
        """
        for case in self.failures():
            self.tell('Measuring %s again' % case)
            self.attempt(measurer, case)

    def work(self, measurer: measure.Measurer, queue: Queue) -> None:
        """Measure cases until the queue is empty."""
        while True:
            case = queue.take(measurer.journal)
            if case is None:
                return
            self.attempt(measurer, case)
