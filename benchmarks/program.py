# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share as programs: their output, and how they end."""

import argparse
from collections.abc import Callable
import sys

from keystoneauth1 import exceptions
import sqlalchemy

from benchmarks import services
from benchmarks import table
from tests.cloud import processes

COULD_NOT_RUN = 2
INTERRUPTED = 130


class Void(Exception):
    """What was measured did not do its work; the text says what is wrong."""


REASONS = (processes.CloudError, Void, exceptions.ClientException,
           sqlalchemy.exc.SQLAlchemyError, OSError)
"""Why a benchmark cannot go on."""
Measure = Callable[[argparse.Namespace, services.Services],
                   tuple[list[table.Table], list[str]]]
"""Does what a command line says; tables, and the targets that are missed."""


def publish(options: argparse.Namespace, *tables: table.Table) -> None:
    """Print tables, and write them where the command line says."""
    print('\n\n'.join(each.text() for each in tables))
    if options.write:
        options.write.write_text('\n'.join(
            each.rst() for each in tables))
    if options.markdown:
        options.markdown.write_text('\n'.join(
            each.markdown() for each in tables))


def compare(options: argparse.Namespace, measure: Measure) -> int:
    """Run a benchmark that has targets, and publish what it found.

    :returns: the exit status
    """
    def benchmark() -> int:
        chosen = services.choose(options.database)
        words = str(chosen)
        tables, missed = measure(options, chosen)
        publish(options, *(each.where(words) for each in tables))
        if missed:
            print('Missed: ' + '; '.join(missed))
        return 1 if missed else 0

    return guarded(benchmark)


def tell(reason: Exception) -> None:
    """Say why a benchmark cannot go on."""
    print('The benchmark cannot go on: %s'
          % str(reason).partition('\n[SQL')[0], file=sys.stderr)


def guarded(benchmark: Callable[[], int]) -> int:
    """Run a benchmark; what keeps it from going on is a line, no traceback.

    :returns: the exit status
    """
    processes.interruptible()
    try:
        return benchmark()
    except REASONS as exc:
        tell(exc)
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print('Interrupted; everything is stopped', file=sys.stderr)
        return INTERRUPTED
