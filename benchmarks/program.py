# SPDX-License-Identifier: Apache-2.0
"""Shared output and error handling of the benchmark programs."""

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
    """The measured work was not done correctly; the text has the reason."""


REASONS = (processes.CloudError, Void, exceptions.ClientException,
           sqlalchemy.exc.SQLAlchemyError, OSError)
"""Errors that stop a benchmark."""
Measure = Callable[[argparse.Namespace, services.Services],
                   tuple[list[table.Table], list[str]]]
"""Runs a benchmark; returns its tables, and the missed targets."""


def publish(options: argparse.Namespace, *tables: table.Table) -> None:
    """Print tables, and write them to the file of the command line."""
    print('\n\n'.join(each.text() for each in tables))
    if options.write:
        options.write.write_text('\n'.join(
            each.rst() for each in tables))


def compare(options: argparse.Namespace, measure: Measure) -> int:
    """Run a benchmark with targets, and publish its results.

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
    """Print the error that stopped a benchmark."""
    print('The benchmark cannot continue: %s'
          % str(reason).partition('\n[SQL')[0], file=sys.stderr)


def guarded(benchmark: Callable[[], int]) -> int:
    """Run a benchmark; print errors as a line instead of a traceback.

    :returns: the exit status
    """
    processes.interruptible()
    try:
        return benchmark()
    except REASONS as exc:
        tell(exc)
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print('Interrupted; all processes are stopped', file=sys.stderr)
        return INTERRUPTED
