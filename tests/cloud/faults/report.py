# SPDX-License-Identifier: Apache-2.0
"""What was measured for each row: progress, figures, problems, and pages."""

from collections import abc
import csv
import dataclasses
import http.client
import io
import math
import threading

from tests.cloud import cloud
from tests.cloud import environment
from tests.cloud.faults import table
from tests.cloud.integration import pages
from tests.cloud import output

# Errors of what is used to prepare a row.
ERRORS = (*cloud.ERRORS, http.client.HTTPException)
FOLDER = environment.TOP / 'doc' / 'source' / 'user' / 'comparison'
HEALED = 'seconds until placement equalled nova'
STOCK = 'stock '
"""The prefix of figures of nova without this package."""

Figure = float | str
"""Infinite if it was not seen, not a number if it cannot be measured."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """The figures of a row, none if it could not be measured."""

    row: table.Row
    figures: abc.Mapping[str, Figure]
    problems: abc.Sequence[str] = ()
    log: str = dataclasses.field(default='', repr=False)

    def __str__(self) -> str:
        if self.row.call and self.figures:
            return '%s, equal after %s s' % (
                cell([self]), shown(self.figures[HEALED]))
        texts = ['%s %s' % (name, shown(figure))
                 for name, figure in self.figures.items()]
        return ', '.join(texts)


Measure = abc.Callable[[table.Row], Measured]


class Report:
    """The results of a run, in the order of the table; for several threads."""

    def __init__(self, rows: abc.Sequence[table.Row], tell: output.Tell
                 ) -> None:
        self._rows = rows
        self._tell = tell
        self._measured: dict[table.Row, Measured] = {}

    def failures(self) -> dict[table.Row, abc.Sequence[str]]:
        """Return the problems of each row that has any."""
        problems = {row: self._measured[row].problems
                    if row in self._measured else ['not measured']
                    for row in self._rows}
        return {row: texts for row, texts in problems.items() if texts}

    def add(self, measured: Measured) -> None:
        """Add the measurements of a row, and print a line about it."""
        self._measured[measured.row] = measured
        problems = ['; WRONG: %s' % text for text in measured.problems]
        self._tell('%3d/%d  %s: %s%s' % (
            len(self._measured), len(self._rows), measured.row, measured,
            ''.join(problems)))

    def attempt(self, row: table.Row, measure: Measure) -> None:
        """Measure a row."""
        try:
            measured = measure(row)
        except ERRORS as exc:
            measured = Measured(row, {}, ['not measured: %s' % exc])
        self.add(measured)

    def measure(self, rows: abc.Iterable[table.Row],
                measures: abc.Iterable[Measure]) -> None:
        """Measure rows in this order, with a thread for each function."""
        left = [*rows]
        mutex = threading.Lock()

        def work(measure: Measure) -> None:
            while True:
                with mutex:
                    if not left:
                        return
                    row = left.pop(0)
                self.attempt(row, measure)

        # An interrupt kills the processes that these threads wait for.
        threads = [threading.Thread(target=work, args=[measure], daemon=True)
                   for measure in measures]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        finally:
            left.clear()

    def repeat(self, rows: abc.Container[table.Row], measure: Measure) -> None:
        """Measure what has failed again, alone: the machine may be busy."""
        for row in self.failures():
            if row in rows:
                self._tell('Measuring %s again' % row)
                self.attempt(row, measure)

    def finish(self) -> int:
        """Print all figures and problems; return the exit status."""
        results = [self._measured[row] for row in self._rows
                   if row in self._measured]
        measured = [result for result in results if result.figures]
        failures = self.failures()
        print(output.columns((result.row, result) for result in measured))
        for row, problems in failures.items():
            print('\nWRONG: %s\n  %s' % (row, '\n  '.join(problems)))
            if row in self._measured:
                print(self._measured[row].log)
        print('\n%d of %d rows measured, %d failed' % (
            len(measured), len(self._rows), len(failures)), flush=True)
        return 1 if failures else 0

    def write(self) -> None:
        """Write the pages of the documentation, if all was measured."""
        results = {row: self._measured.get(row, Measured(row, {}))
                   for row in (*table.healthy(), *table.outages())}
        if not all(result.figures for result in results.values()):
            return
        (FOLDER / 'outages.inc').write_text(_page(results))
        (FOLDER / 'outages.csv').write_text(_csv(results))


def shown(figure: Figure) -> str:
    """Return a figure for people."""
    if not isinstance(figure, float):
        return ' '.join(str(figure).split())
    if math.isinf(figure):
        return 'never'
    return 'n/a' if math.isnan(figure) else '%.1f' % figure


def cell(results: abc.Sequence[Measured]) -> str:
    """Describe the worst answers, as in ``500 0.1 / 200 1.2``."""
    return ' / '.join(_worst(results, prefix) for prefix in (STOCK, ''))


def _worst(results: abc.Iterable[Measured], prefix: str) -> str:
    answers = [(result.figures[prefix + 'status'],
                result.figures[prefix + 'seconds']) for result in results]
    # The status is 0 if there was no answer.
    missing = [answer for answer in answers if not answer[0]]
    status, seconds = max(missing or answers)
    return '%d %.1f' % (status, seconds) if status else '> %.0f' % seconds


def _page(results: abc.Mapping[table.Row, Measured]) -> str:
    worst: dict[tuple[str, str, str], list[Measured]] = {}
    for row, result in results.items():
        worst.setdefault((row.party, row.kind, row.call), []).append(result)
    rows = []
    for party, kind in dict.fromkeys(key[:2] for key in worst):
        cells = [cell(worst[party, kind, call]) for call in table.CALLS]
        rows.append((table.PARTIES.get(party, 'None'),
                     table.OUTAGES.get(kind, ''), *cells))
    widths = (18, 18, *[16] * len(table.CALLS))
    return pages.figures(
        'Worst responses: nova alone / this package',
        ('Unavailable', 'Fault', *table.CALLS.values()), widths, rows)


def _csv(results: abc.Mapping[table.Row, Measured]) -> str:
    """Return every figure, as comma-separated values."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    figures = next(iter(results.values())).figures
    writer.writerow(['party', 'fault', 'moment', 'call', *figures])
    for row, result in results.items():
        cells = map(shown, result.figures.values())
        writer.writerow([row.party, row.kind, row.moment, row.call, *cells])
    return text.getvalue()
