# SPDX-License-Identifier: Apache-2.0
"""Arguments that several benchmarks have, checked before anything starts."""

import argparse
import os
import pathlib

from benchmarks import databases


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
