# SPDX-License-Identifier: Apache-2.0
"""Main program of benchmarks/run, in the environment that it created."""

import argparse
import datetime
import importlib
import os
import subprocess
import sys
import time

from benchmarks import commands
from benchmarks import figures
from benchmarks import parts
from benchmarks import services
from tests.cloud import cloud
from tests.cloud import processes
from tests import databases

COULD_NOT_RUN = 2
UNAVAILABLE = 3
INTERRUPTED = 130
ERRORS = (*cloud.ERRORS, services.Void)
"""Errors that stop a benchmark."""
PARTS_HEADER = ('', 'duration, s', 'load before', 'load after')


def load() -> str:
    """Return the load average of the last minute."""
    return '%.1f' % os.getloadavg()[0]


def git(*arguments: str) -> str:
    """Return the output of git in this checkout; empty if git fails."""
    return subprocess.run(
        ['git', *arguments], cwd=commands.CHECKOUT, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL).stdout.strip()


def environment(quick: bool) -> str:
    """Return a table of the environment of the figures."""
    return figures.table('Environment', ('', 'value'), {
        'date': datetime.datetime.now(datetime.UTC).date().isoformat(),
        'commit': git('rev-parse', '--short=12', 'HEAD') + (
            ', with changes' if git('status', '--porcelain') else ''),
        'sizes': 'smallest (--quick)' if quick else 'default',
        **services.description()}.items())


def measure(part: parts.Part, quick: bool) -> str:
    """Measure a part; return its table, or '' after a printed error."""
    module = importlib.import_module('benchmarks.' + part.module)
    run = getattr(module, part.function)
    try:
        text: str = run(**{**part.sizes, **(part.quick if quick else {})})
    except ERRORS as exc:
        tell(exc)
        return ''
    print(text, flush=True)
    return text


def tell(error: Exception) -> None:
    """Print the error that stopped a benchmark."""
    print('The benchmark cannot continue: %s'
          % str(error).partition('\n[SQL')[0], file=sys.stderr)


def report(options: argparse.Namespace) -> int:
    """Measure the chosen parts, and publish the report."""
    first, durations, texts = environment(options.quick), [], []
    for number, part in enumerate(options.parts, start=1):
        before, start = load(), time.monotonic()
        print('\n[%d/%d] %s, load %s' % (
            number, len(options.parts), part.title, before), flush=True)
        texts.append(measure(part, options.quick))
        seconds = '%.0f' % (time.monotonic() - start)
        durations.append((part.title, seconds if texts[-1] else 'not measured',
                          before, load()))
    overview = '\n\n'.join([
        first, figures.table('Parts', PARTS_HEADER, durations)])
    print('\n' + overview)
    if options.write:
        options.write.write_text('\n\n'.join(
            [overview, *filter(None, texts)]) + '\n')
    return 0 if all(texts) else COULD_NOT_RUN


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
