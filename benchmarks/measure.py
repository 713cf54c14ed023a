# SPDX-License-Identifier: Apache-2.0
"""Main program of benchmarks/run, in the environment that it created."""

import datetime
import importlib
import subprocess
import sys
import time

from benchmarks import commands
from benchmarks import machine
from benchmarks import options
from benchmarks import parts
from benchmarks import program
from benchmarks import report
from benchmarks import services


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
            ) -> report.Measured:
    """Measure a part; an error is printed and does not stop the others."""
    module = importlib.import_module(part.module)
    before, start = machine.load(), time.monotonic()
    tables, missed = [], []
    try:
        tables, missed = module.measure(
            module.parse(part.quick if quick else part.arguments), chosen)
    except program.REASONS as exc:
        program.tell(exc)
    return report.Measured(part.told, tables, missed,
                           time.monotonic() - start, before, machine.load())


def main(argv: list[str]) -> int:
    chosen_options = options.parse(argv)

    def benchmark() -> int:
        chosen = services.choose(chosen_options.database)
        described = environment(chosen, chosen_options.quick)
        measured = []
        for number, part in enumerate(chosen_options.parts, start=1):
            print('\n[%d/%d] %s, load %s' % (
                number, len(chosen_options.parts), part.told, machine.load()),
                flush=True)
            measured.append(measure(part, chosen, chosen_options.quick))
        print()
        result = report.Report(described, measured)
        program.publish(chosen_options, *result.tables())
        if result.missed:
            print('Missed: ' + '; '.join(result.missed))
        if not result.complete:
            return program.COULD_NOT_RUN
        return 1 if result.missed else 0

    return program.guarded(benchmark)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
