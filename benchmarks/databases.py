# SPDX-License-Identifier: Apache-2.0
"""Temporary databases of a benchmark's cloud."""

from collections.abc import Iterator
import contextlib
import os
import sys

import sqlalchemy

from benchmarks import arguments
from tests.cloud import processes

NAMES = ('keystone', 'placement', 'nova', 'nova_api', 'nova_cell0', 'journal')


def find() -> str:
    """Return the URL of the local MySQL server if accessible, or SQLite."""
    try:
        _execute(arguments.LOOPBACK, 'SELECT 1')
    except processes.CloudError as exc:
        print('Using SQLite, with sequential requests: %s' % exc,
              file=sys.stderr)
        return arguments.SQLITE
    return arguments.LOOPBACK


def version(url: str) -> str:
    """Return the name and version of a database server."""
    if url == arguments.SQLITE:
        return 'SQLite'
    return 'MySQL ' + _execute(url, 'SELECT VERSION()')


@contextlib.contextmanager
def made(url: str) -> Iterator[str]:
    """Create a cloud's databases on a server; yields its ``database``."""
    if url == arguments.SQLITE:
        yield url
        return
    # Benchmarks may run in parallel.
    prefix = '%s%d_' % (arguments.PREFIX, os.getpid())
    with contextlib.ExitStack() as stack:
        for name in NAMES:
            _execute(url, 'CREATE DATABASE ' + prefix + name)
            stack.callback(_execute, url, 'DROP DATABASE ' + prefix + name)
        yield url + '/' + prefix


def _execute(url: str, statement: str) -> str:
    """Run a statement and return its first value, if any.

    :raises CloudError: when the server cannot be used
    """
    try:
        engine = sqlalchemy.create_engine(
            url, poolclass=sqlalchemy.pool.NullPool)
        with engine.connect() as connection:
            found = connection.execute(sqlalchemy.text(statement))
            return str(found.scalar()) if found.returns_rows else ''
    except ImportError as exc:
        raise processes.CloudError(
            '%s: install the requirements of the benchmarks with pip install '
            '-r benchmarks/requirements.txt' % exc) from exc
    except sqlalchemy.exc.SQLAlchemyError as exc:
        raise processes.CloudError(
            'The database server cannot be used: %s'
            % str(exc).partition('\n')[0]) from exc
