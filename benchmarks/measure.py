# SPDX-License-Identifier: Apache-2.0
"""Main program of benchmarks/run, in the environment that it created."""

import argparse
from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import datetime
import importlib
import os
import subprocess
import sys
import time

from keystoneauth1 import exceptions
import sqlalchemy

from benchmarks import commands
from benchmarks import figures
from benchmarks import parts
from benchmarks import services
from benchmarks import table
from tests.cloud import processes
from tests import databases

COULD_NOT_RUN = 2
UNAVAILABLE = 3
INTERRUPTED = 130
ERRORS = (processes.CloudError, services.Void, exceptions.ClientException,
          sqlalchemy.exc.SQLAlchemyError, OSError)
"""Errors that stop a benchmark."""
Measure = Callable[..., tuple[Sequence[table.Table], Sequence[str]]]
"""Runs a benchmark with ``Services`` and the sizes of a part as arguments;
returns its tables, and the missed targets."""
PARTS_HEADER = ('', 'duration, s', 'load before', 'load after', 'targets')


@dataclasses.dataclass(frozen=True)
class Measured:
    """A part of the report; without tables it could not be measured."""

    part: parts.Part
    tables: Sequence[table.Table]
    missed: Sequence[str]
    seconds: float
    load_before: str
    load_after: str

    def row(self) -> list[str]:
        """Return its row of the overview."""
        return [self.part.title, '%.0f' % self.seconds, self.load_before,
                self.load_after, self._verdict()]

    def _verdict(self) -> str:
        """Return the targets that are met or missed; empty without targets."""
        if not self.tables:
            return 'could not be measured'
        if self.missed:
            return 'MISSED: ' + '; '.join(self.missed)
        met = sum(cell.endswith(figures.MET) for each in self.tables
                  for row in each.rows for cell in row)
        return '%d met' % met if met else figures.NONE


def load() -> str:
    """Return the load average of the last minute."""
    return '%.1f' % os.getloadavg()[0]


def git(*arguments: str) -> str:
    """Return the output of git in this checkout; empty if git fails."""
    return subprocess.run(
        ['git', *arguments], cwd=commands.CHECKOUT, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL).stdout.strip()


def environment(chosen: services.Services, quick: bool) -> dict[str, str]:
    """Return the environment of the figures, by name."""
    return {'date': datetime.datetime.now(datetime.UTC).date().isoformat(),
            'commit': git('rev-parse', '--short=12', 'HEAD') + (
                ', with changes' if git('status', '--porcelain') else ''),
            'sizes': 'smallest (--quick)' if quick else 'default',
            **chosen.description()}


def measure(part: parts.Part, chosen: services.Services, quick: bool
            ) -> Measured:
    """Measure a part; an error is printed and does not stop the others."""
    module = importlib.import_module('benchmarks.' + part.module)
    before, start = load(), time.monotonic()
    tables, missed = [], []
    try:
        tables, missed = module.measure(
            chosen, **{**part.sizes, **(part.quick if quick else {})})
    except ERRORS as exc:
        tell(exc)
    for each in tables:
        print(each.text(), flush=True)
    return Measured(part, tables, missed, time.monotonic() - start, before,
                    load())


def tell(error: Exception) -> None:
    """Print the error that stopped a benchmark."""
    print('The benchmark cannot continue: %s'
          % str(error).partition('\n[SQL')[0], file=sys.stderr)


def report(options: argparse.Namespace) -> int:
    """Measure the chosen parts, and publish the report."""
    chosen = services.Services(options.database or databases.find('mysql'))
    described = environment(chosen, options.quick)
    measured = []
    for number, part in enumerate(options.parts, start=1):
        print('\n[%d/%d] %s, load %s' % (
            number, len(options.parts), part.title, load()), flush=True)
        measured.append(measure(part, chosen, options.quick))
    overview = [
        table.Table('Environment', ('', 'value'),
                    [list(each) for each in described.items()]),
        table.Table('Parts', PARTS_HEADER, [each.row() for each in measured])]
    print('\n' + '\n\n'.join(each.text() for each in overview))
    if options.write:
        options.write.write_text('\n'.join(each.rst() for each in (
            *overview, *(shown for part in measured
                         for shown in part.tables))))
    if not all(each.tables for each in measured):
        return COULD_NOT_RUN
    return 1 if any(each.missed for each in measured) else 0


def main() -> int:
    """Print errors as a line instead of a traceback."""
    options = parts.parse(sys.argv[1:])
    processes.interruptible()
    try:
        return report(options)
    except databases.Unavailable as exc:
        tell(exc)
        return UNAVAILABLE
    except ERRORS as exc:
        tell(exc)
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print('Interrupted; all processes are stopped', file=sys.stderr)
        return INTERRUPTED


if __name__ == '__main__':
    sys.exit(main())
