# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share as programs: arguments, output, how they end."""

import argparse
from collections.abc import Callable
import os
import pathlib
import sys

from keystoneauth1 import exceptions
import sqlalchemy

from benchmarks import databases
from benchmarks import table
from tests.cloud import processes

COULD_NOT_RUN = 2
INTERRUPTED = 130


class Void(Exception):
    """What was measured did not do its work; the text says what is wrong."""


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError('%s is not above 0' % text)
    return number


def database(text: str) -> str:
    if text != databases.SQLITE and not text.startswith('mysql+pymysql://'):
        raise argparse.ArgumentTypeError(
            '%s is neither "sqlite" nor mysql+pymysql://...' % text)
    return text.rstrip('/')


def output(text: str) -> pathlib.Path:
    """A file that can be written, or it would be known only at the end."""
    path = pathlib.Path(text).absolute()
    if path.is_dir() or not os.access(
            path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError('%s cannot be written' % text)
    return path


def add_database(parser: argparse.ArgumentParser,
                 default: str | None, otherwise: str) -> None:
    """Add ``--database`` to a command line.

    :param otherwise: what it does without this option
    """
    parser.add_argument(
        '--database', type=database, default=default, metavar='URL',
        help='a MySQL server for the services\' databases, as in %s, or '
             'sqlite; databases whose names begin with %s are made and '
             'dropped there (%s)' % (
                 databases.LOOPBACK, databases.PREFIX, otherwise))


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add ``--write`` and ``--markdown`` to a command line."""
    for name, what in (('write', 'reStructuredText'),
                       ('markdown', 'Markdown')):
        parser.add_argument('--' + name, type=output, metavar='FILE',
                            help='write what was found as ' + what)


def publish(options: argparse.Namespace, *tables: table.Table) -> None:
    """Print tables, and write them where the command line says."""
    print('\n\n'.join(each.text() for each in tables))
    if options.write:
        options.write.write_text('\n'.join(
            each.rst() for each in tables))
    if options.markdown:
        options.markdown.write_text('\n'.join(
            each.markdown() for each in tables))


def guarded(benchmark: Callable[[], int]) -> int:
    """Run a benchmark; what keeps it from going on is a line, no traceback.

    :returns: the exit status
    """
    processes.interruptible()
    try:
        return benchmark()
    except (processes.CloudError, Void, exceptions.ClientException,
            sqlalchemy.exc.SQLAlchemyError, OSError) as exc:
        print('The benchmark cannot go on: %s'
              % str(exc).partition('\n[SQL')[0], file=sys.stderr)
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print('Interrupted; everything is stopped', file=sys.stderr)
        return INTERRUPTED
