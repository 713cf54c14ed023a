# SPDX-License-Identifier: Apache-2.0
"""Main program of benchmarks/run, in the environment that it created."""

from collections.abc import Sequence
import dataclasses
import datetime
import importlib
import subprocess
import sys
import time

from benchmarks import commands
from benchmarks import figures
from benchmarks import machine
from benchmarks import parts
from benchmarks import program
from benchmarks import services
from benchmarks import table


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


def git(*arguments: str) -> str:
    """Return the output of git in this checkout; empty if git fails."""
    try:
        return subprocess.run(
            ['git', *arguments], cwd=commands.CHECKOUT, text=True, check=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ''


def commit() -> str:
    """Return the measured commit, and whether there are local changes."""
    changed = ', with changes' if git('status', '--porcelain') else ''
    return (git('rev-parse', '--short=12', 'HEAD') or 'not known') + changed


def environment(chosen: services.Services, quick: bool) -> dict[str, str]:
    """Return the environment of the figures, by name."""
    today = datetime.datetime.now(datetime.UTC).date()
    return {'date': today.isoformat(), 'commit': commit(),
            'sizes': 'smallest (--quick)' if quick else 'default',
            **machine.description(), **chosen.versions()}


def measure(part: parts.Part, chosen: services.Services, quick: bool
            ) -> Measured:
    """Measure a part; an error is printed and does not stop the others."""
    module = importlib.import_module(part.module)
    before, start = machine.load(), time.monotonic()
    tables, missed = [], []
    try:
        tables, missed = module.measure(
            module.parse(part.quick if quick else part.arguments), chosen)
    except program.REASONS as exc:
        program.tell(exc)
    return Measured(part, tables, missed, time.monotonic() - start, before,
                    machine.load())


def main(argv: list[str]) -> int:
    chosen_options = parts.parse(argv)

    def benchmark() -> int:
        chosen = services.choose(chosen_options.database)
        described = environment(chosen, chosen_options.quick)
        measured = []
        for number, part in enumerate(chosen_options.parts, start=1):
            print('\n[%d/%d] %s, load %s' % (
                number, len(chosen_options.parts), part.title, machine.load()),
                flush=True)
            measured.append(measure(part, chosen, chosen_options.quick))
        print()
        program.publish(
            chosen_options,
            table.Table('Environment', ('', 'value'),
                        [list(each) for each in described.items()]),
            table.Table('Parts', PARTS_HEADER,
                        [each.row() for each in measured]),
            *(shown for each in measured for shown in each.tables))
        missed = [name for each in measured for name in each.missed]
        if missed:
            print('Missed: ' + '; '.join(missed))
        if not all(each.tables for each in measured):
            return program.COULD_NOT_RUN
        return 1 if missed else 0

    return program.guarded(benchmark)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
