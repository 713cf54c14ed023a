# SPDX-License-Identifier: Apache-2.0
"""Observed failures of other parties, by the error of a driver or a socket.

Codes decide, because the texts of drivers differ between their releases. Only
libpq has no code for a connection that was not opened.
"""

import errno
import os
import re
import socket
import sqlite3
import ssl

from nova_aggregate_mirror import causes

# Errors of MySQL and MariaDB by number, of PostgreSQL by SQLSTATE.
_CODES = {
    **dict.fromkeys((1045, 1698, '28P01', '28000'), causes.PASSWORD),
    **dict.fromkeys((1044, 1142, 1143, '42501'), causes.RIGHTS),
    **dict.fromkeys((1049, '3D000'), causes.ABSENT),
    **dict.fromkeys((1290, 1792, 1836, '25006'), causes.READ_ONLY),
    **dict.fromkeys((1021, 1114, '53100'), causes.FULL),
    **dict.fromkeys((1040, '53300'), causes.CROWDED),
    1203: causes.CROWDED_BY_USER, 1226: causes.USED_UP, 1129: causes.BLOCKED,
    1130: causes.HOST, '57P03': causes.STARTING,
    **dict.fromkeys((2006, 2013, '57P01'), causes.CLOSED),
    **dict.fromkeys((1969, 3024, '57014'), causes.STOPPED_STATEMENT),
    **dict.fromkeys((1146, '42P01'), causes.TABLE),
    **dict.fromkeys((1054, '42703'), causes.COLUMN)}
# Texts of libpq, psycopg, and a PostgreSQL server that refuses a connection.
_LIBPQ = (
    (r'timeout expired', causes.silent(0)),
    (r'could not translate host name|failed to resolve host',
     causes.UNRESOLVED),
    (r'password authentication failed|no password supplied|'
     r'role ".*" (does not exist|is not permitted to log in)',
     causes.PASSWORD),
    (r'no pg_hba.conf entry', causes.HOST),
    (r'database ".*" does not exist', causes.ABSENT),
    (r'too many connections for role',
     causes.USED_UP.with_detail('connection limit')),
    (r'too many connections for database', causes.CROWDED_DATABASE),
    (r'too many clients|connection slots are reserved', causes.CROWDED),
    (r'the database system is|not currently accepting', causes.STARTING),
    (r'server closed the connection', causes.CLOSED))
# What is missing, which each server and SQLite quotes and spells differently.
_MISSING = re.compile(r'(table|relation|column):? [\'"]?([\w.]+)', re.I)
# Classes of oslo.db and SQLAlchemy, neither of which HTTP clients import.
_CLASSES = {'DBNonExistentTable': causes.TABLE,
            'NoSuchModuleError': causes.DRIVERLESS}


class Observed(OSError):
    """An error of this package about a database.

    It is no TimeoutError, for which SQLAlchemy 2.1 closes a connection.
    """

    def __init__(self, cause: causes.Cause, file: object = None) -> None:
        super().__init__(cause.phrase)
        self.cause, self.file = cause, file


def chain(exc: BaseException, handled: BaseException | None = None
          ) -> list[BaseException]:
    """List what led to an error of a library, the innermost first.

    :param handled: the error that was handled when the library was called
    """
    errors: list[BaseException] = []
    error: BaseException | None = exc
    while error and error is not handled and error not in errors:
        errors.insert(0, error)
        reasons = [getattr(error, name, None) for name in (
            'reason', 'orig', 'inner_exception', 'original_exception')]
        reasons += reversed(error.args)  # Urllib3 has the reason last.
        error = next((reason for reason in reasons
                      if isinstance(reason, BaseException)),
                     error.__cause__ or error.__context__)
    return errors


def of_socket(exc: BaseException) -> causes.Cause | None:
    """Return what a peer did; None if the error does not say so."""
    if isinstance(exc, ssl.SSLCertVerificationError):
        return causes.certificate_refused(exc.verify_code, exc.verify_message)
    if isinstance(exc, ConnectionRefusedError):
        return causes.REFUSED
    if isinstance(exc, (ConnectionError, ssl.SSLEOFError)):
        # Also raised for a kept connection that the peer has closed.
        return causes.DISCONNECTED
    if isinstance(exc, ssl.SSLError):
        return causes.TLS.with_detail(
            ': %s' % exc.reason if exc.reason else '')
    if isinstance(exc, socket.gaierror):
        return causes.UNRESOLVED
    if not isinstance(exc, OSError) or not exc.errno:
        return None
    text = os.strerror(exc.errno)
    if exc.filename:
        return causes.FILE.with_detail((exc.filename, text))
    if exc.errno in (errno.EMFILE, errno.ENFILE):
        return causes.DESCRIPTORS
    return causes.UNREACHABLE.with_detail(text)


def of_database(exc: BaseException, waited: float = 0.0,
                handled: BaseException | None = None) -> causes.Cause:
    """Return what a database did.

    :param waited: seconds that passed before the error
    :param handled: the error that was handled when the database was called
    """
    errors = chain(exc, handled)
    # An error that names a file is the cause, whatever led to it.
    names_file = getattr(exc, 'file', None) or getattr(exc, 'filename', None)
    for error in [exc] if names_file else errors:
        cause = _of_driver(error)
        if cause == causes.silent(0):  # Drivers do not tell how long.
            return causes.silent(waited)
        if cause:
            return cause
    lines = str(exc).strip().splitlines() or [type(exc).__name__]
    # After an @ in a password, the rest of the password counts as the host.
    text = re.sub(r'''(?<=['"])[^'"\s]*@(?=[^'"\s@]+['"])''', '', lines[0])
    is_of_sqlite = any(isinstance(error, sqlite3.Error) for error in errors)
    failure = causes.FILE_FAILED if is_of_sqlite else causes.FAILED
    return failure.with_detail(text)


def missing(exc: BaseException) -> str:
    """Return "table NAME" or "column NAME", which a database lacks.

    :returns: empty if no error of the chain says so; the outermost decides
    """
    for error in reversed(chain(exc)):
        if match := _MISSING.search(str(error)):
            kind = 'column' if match[1].lower() == 'column' else 'table'
            return '%s %s' % (kind, match[2])
    return ''


def _of_driver(error: BaseException) -> causes.Cause | None:
    """Return what one error of a chain says; None if it does not say so."""
    if isinstance(error, Observed):
        return error.cause
    if isinstance(error, ModuleNotFoundError):
        return causes.module_missing(error.name or '')
    if isinstance(error, TimeoutError):
        return causes.silent(0)
    # The number first: many errors of MySQL may share an SQLSTATE.
    states = [getattr(error, name, None) for name in ('sqlstate', 'pgcode')]
    codes = [code for code in (*error.args[:1], *states)
             if isinstance(code, (int, str)) and code in _CODES]
    cause = _CODES[codes[0]] if codes else _CLASSES.get(type(error).__name__)
    if cause in (causes.TABLE, causes.COLUMN):
        name = missing(error)
        return causes.lacking(cause, name) if name else cause
    if cause == causes.USED_UP:
        limit = re.search(r"'(max_\w+)'", str(error))
        return cause.with_detail(limit[1] if limit else 'limit')
    cause = cause or of_socket(error)
    return cause if cause or any(states) else _of_libpq(error)


def _of_libpq(error: BaseException) -> causes.Cause | None:
    """Return why libpq opened no connection, by its text."""
    if not type(error).__module__.startswith('psycopg'):
        return None
    text = str(error)
    for pattern, cause in _LIBPQ:
        if re.search(pattern, text):
            return cause
    for number in errno.errorcode:
        if ': ' + os.strerror(number) in text:
            return of_socket(OSError(number, ''))
    return None
