# SPDX-License-Identifier: Apache-2.0
"""Shared options of the benchmarks; imports the standard library only."""

import argparse
import os
import pathlib
from urllib import parse

SQLITE = 'sqlite'
LOOPBACK = 'mysql+pymysql://root@127.0.0.1'
PREFIX = 'mirror_benchmark_'
"""Prefix of the names of a benchmark's databases."""
OTHERWISE = ('default: the MySQL server on the loopback interface, or SQLite '
             'if there is none')


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError('%s is not greater than 0' % text)
    return number


def database(text: str) -> str:
    if text != SQLITE and not text.startswith('mysql+pymysql://'):
        raise argparse.ArgumentTypeError(
            '%s is neither "sqlite" nor mysql+pymysql://...' % text)
    try:
        parse.urlsplit(text).port
    except ValueError as exc:
        raise argparse.ArgumentTypeError('%s: %s' % (text, exc)) from exc
    return text.rstrip('/')


def output(text: str) -> pathlib.Path:
    """Return the path of a writable file, to fail before the benchmark."""
    path = pathlib.Path(text).absolute()
    if path.is_dir() or not os.access(
            path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError('%s cannot be written' % text)
    return path


def add_database(parser: argparse.ArgumentParser, default: str | None = None,
                 otherwise: str = OTHERWISE) -> None:
    """Add ``--database`` to a command line.

    :param otherwise: help on the default
    """
    parser.add_argument(
        '--database', type=database, default=default, metavar='URL',
        help='MySQL server for the services\' databases, such as %s, or '
             'sqlite; databases with the prefix %s are created and dropped '
             'there (%s)' % (LOOPBACK, PREFIX, otherwise))


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add ``--write`` to a command line."""
    parser.add_argument('--write', type=output, metavar='FILE',
                        help='write the results as reStructuredText')
