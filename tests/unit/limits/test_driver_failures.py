# SPDX-License-Identifier: Apache-2.0
"""What databases did, by the errors of their drivers."""

import sqlite3
import ssl
import sys
import types
from unittest import mock

from oslo_db import exception as db_exc
import sqlalchemy as sa
import testtools

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.limits import driver_failures

# Errors of callers, which no statement of this package can have.
CALLERS = {'CausedByException', 'DBInvalidUnicodeParameter', 'InvalidSortKey',
           'ColumnError', 'BackendNotAvailable', 'RetryRequest',
           'NoEngineContextEstablished', 'ContextNotRequestedError'}


PARTY = causes.database('nova', '[x] y', 'sync')


class TestObservations(testtools.TestCase):

    def test_codes(self) -> None:
        """The code decides, in whichever error it is wrapped."""
        for code, cause in (
                (1045, causes.PASSWORD), (1049, causes.ABSENT),
                (1290, causes.READ_ONLY), (1114, causes.FULL),
                (1054, causes.COLUMN),
                (1226, causes.USED_UP.with_detail('limit')),
                (1203, causes.CROWDED_BY_USER), (1130, causes.HOST),
                (2013, causes.CLOSED)):
            error = Exception(code, 'any text')
            # PyMySQL's, of many errors.
            error.sqlstate = '42000'  # type: ignore[attr-defined]
            for wrapped in (error, db_exc.DBError(error), sa.exc.DBAPIError(
                    'SELECT 1', {}, error)):
                self.assertEqual(cause, driver_failures.of_database(wrapped))
        for state, cause in (
                ('28P01', causes.PASSWORD), ('42P01', causes.TABLE),
                ('42703', causes.COLUMN), ('25006', causes.READ_ONLY)):
            error = Exception('any text')
            # Psycopg2's.
            error.pgcode = state  # type: ignore[attr-defined]
            self.assertEqual(cause, driver_failures.of_database(
                sa.exc.DBAPIError('SELECT 1', {}, error)))

    def test_name_of_what_is_missing(self) -> None:
        """It is found in the text of each server."""
        for text, name in (
                ("Unknown column 'dirty.attempts' in 'SELECT'",
                 'column dirty.attempts'),
                ("Table 'nova.services' doesn't exist",
                 'table nova.services'),
                ('column dirty.attempts does not exist\nLINE 1: SELECT',
                 'column dirty.attempts'),
                ('relation "services" does not exist', 'table services'),
                ('no such column: dirty.attempts', 'column dirty.attempts'),
                ('no such table: services', 'table services'),
                ('any text', '')):
            self.assertEqual(name, driver_failures.missing(
                sa.exc.DBAPIError('SELECT 1', {}, Exception(1, text))))

    def test_connection_that_libpq_does_not_open(self) -> None:
        """Its text decides, since there is no code."""
        prefix = 'connection to server at "db" (::1), port 5432 failed: '
        for text, cause in (
                (prefix + 'timeout expired', causes.silent(2.0)),
                ('connection timeout expired', causes.silent(2.0)),
                (prefix + 'Connection refused\n\tIs the server running on '
                 'that host and accepting TCP/IP connections?',
                 causes.REFUSED),
                (prefix + 'No route to host',
                 causes.UNREACHABLE.with_detail('No route to host')),
                ('could not translate host name "db" to address: Name or '
                 'service not known', causes.UNRESOLVED),
                (prefix + 'FATAL:  password authentication failed for user '
                 '"nova"', causes.PASSWORD),
                (prefix + 'FATAL:  no pg_hba.conf entry for host "10.0.0.5"',
                 causes.HOST),
                (prefix + 'FATAL:  sorry, too many clients already',
                 causes.CROWDED),
                (prefix + 'FATAL:  the database system is starting up',
                 causes.STARTING)):
            for module in 'psycopg2', 'psycopg.errors':
                error = type('OperationalError', (Exception,), {
                    '__module__': module})(text)
                self.assertEqual(cause, driver_failures.of_database(
                    sa.exc.OperationalError(None, None, error), 2.0))

    def test_driver_that_is_not_installed(self) -> None:
        """Its package is named, or a driver whose waits have a limit."""
        default = sa.engine.make_url('postgresql://').get_driver_name()
        for url, module, step in (
                ('mysql://', 'MySQLdb',
                 'let [x] y begin with mysql+pymysql://'),
                ('mysql+pymysql://', 'pymysql', 'install the package pymysql'),
                ('postgresql+psycopg2://', 'psycopg2',
                 'install the package psycopg2'),
                # Psycopg2 or psycopg, by SQLAlchemy's release.
                ('postgresql://', default, 'install the package ' + default),
                ('postgresql+pg8000://', 'pg8000',
                 'let [x] y begin with mysql+pymysql:// for MySQL or MariaDB; '
                 'for PostgreSQL, with postgresql+psycopg2:// or '
                 'postgresql+psycopg://, whichever is installed')):
            with mock.patch.dict(sys.modules, {module: None}):
                error = self.assertRaises(
                    ModuleNotFoundError, sa.create_engine, url + 'host/name')
            cause = driver_failures.of_database(error)
            self.assertEqual('needs the Python module %s, which is not '
                             'installed' % module, cause.phrase)
            self.assertIn(step, cause.step_for(PARTY))

    def test_sockets(self) -> None:
        """The error of the socket is the cause of that of the driver."""
        for socket_error, cause in (
                (ConnectionRefusedError(), causes.REFUSED),
                (TimeoutError(), causes.silent(2.0)),
                (ssl.SSLEOFError(8, 'x'), causes.DISCONNECTED),
                (OSError(113, 'x'),
                 causes.UNREACHABLE.with_detail('No route to host')),
                (OSError(24, 'x'), causes.DESCRIPTORS)):
            error = Exception(2003, 'any text')
            error.__cause__ = socket_error
            self.assertEqual(cause, driver_failures.of_database(
                db_exc.DBConnectionError(error), 2.0))

    def test_error_that_the_caller_handles(self) -> None:
        """It is no part of the failure, so this database is no file."""
        try:
            raise sqlite3.OperationalError('of the caller')
        except sqlite3.OperationalError as exc:
            handled = exc
            try:
                raise sa.exc.SQLAlchemyError('any text')
            except sa.exc.SQLAlchemyError as error:
                self.assertEqual(
                    causes.FAILED.with_detail('any text'),
                    driver_failures.of_database(error, handled=handled))

    def test_every_class_is_translated(self) -> None:
        """No error class of oslo.db or SQLAlchemy can reach the callers."""
        count = 0
        for module in (db_exc, sa.exc):
            for cls in _classes(module):
                error = type(cls.__name__, (cls,), {
                    '__str__': lambda self: 'text'})
                with testtools.ExpectedException(
                        exceptions.JournalUnavailable), engine.translated():
                    raise error.__new__(error)
                count += 1
        self.assertGreater(count, 50)


def _classes(module: types.ModuleType) -> list[type[Exception]]:
    return [cls for name, cls in sorted(vars(module).items())
            if isinstance(cls, type) and issubclass(cls, Exception)
            and not issubclass(cls, Warning) and name not in CALLERS]
