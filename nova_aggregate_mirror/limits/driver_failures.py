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

_NAMELESS = 'has a host name that does not resolve'
_REFUSED = 'refused the connection'
# By the innermost error that is one of these.
_SOCKET: tuple[tuple[type[BaseException], str], ...] = (
    (ConnectionRefusedError, _REFUSED),
    (ConnectionError, 'closed the connection without an answer'),
    (socket.gaierror, _NAMELESS),
    (ssl.SSLCertVerificationError, 'has a certificate that is not accepted'),
    (ssl.SSLError, 'failed the TLS handshake'),
)
_PASSWORD, _READ_ONLY = 'refused the user or the password', 'is read-only'
_ABSENT = 'is on a server that has no database of that name'
_FULL = 'has no space left'
_RIGHTS = 'refused the user a right that is required'
_CROWDED = 'has too many connections'
_CROWDED_BY_USER = 'has too many connections of the user'
_CROWDED_DATABASE = 'has too many connections to the database'
_USED_UP = 'refused the user, whose limit is used up'
_HOST = 'does not let the user connect from this host'
_BLOCKED = 'blocks this host after many connections that failed'
_NOT_NOW = 'does not accept connections now'
_SILENT = 'was silent'
_DRIVERLESS = 'has a driver that SQLAlchemy does not know'
_MODULE = 'needs the Python module %s, which is not installed'
_TABLE, _COLUMN = 'lacks a table', 'lacks a column'
_DAMAGED = 'is not an SQLite database, or is damaged'
_CLOSED = 'closed the connection'
_SLOW = 'ended a statement that took too long'
# Of MySQL and MariaDB, and SQLSTATE of PostgreSQL.
_CODES = {
    1045: _PASSWORD, 1698: _PASSWORD, '28P01': _PASSWORD, '28000': _PASSWORD,
    1044: _RIGHTS, 1142: _RIGHTS, 1143: _RIGHTS, '42501': _RIGHTS,
    1049: _ABSENT, '3D000': _ABSENT,
    1290: _READ_ONLY, 1792: _READ_ONLY, 1836: _READ_ONLY, '25006': _READ_ONLY,
    1021: _FULL, 1114: _FULL, '53100': _FULL,
    1040: _CROWDED, '53300': _CROWDED, 1203: _CROWDED_BY_USER, 1226: _USED_UP,
    1129: _BLOCKED, 1130: _HOST,
    2006: _CLOSED, 2013: _CLOSED, '57P01': _CLOSED,
    1969: _SLOW, 3024: _SLOW, '57014': _SLOW,
    1146: _TABLE, '42P01': _TABLE, 1054: _COLUMN, '42703': _COLUMN,
    '57P03': _NOT_NOW,
}
# Texts of libpq, of its driver psycopg, and of a PostgreSQL server that does
# not accept a connection.
_LIBPQ = (
    (r'timeout expired', _SILENT),
    (r'could not translate host name|failed to resolve host', _NAMELESS),
    (r'password authentication failed|no password supplied', _PASSWORD),
    (r'role ".*" (does not exist|is not permitted to log in)', _PASSWORD),
    (r'no pg_hba.conf entry', _HOST),
    (r'database ".*" does not exist', _ABSENT),
    (r'too many connections for role', _USED_UP),
    (r'too many connections for database', _CROWDED_DATABASE),
    (r'too many clients|connection slots are reserved', _CROWDED),
    (r'the database system is|not currently accepting', _NOT_NOW),
    (r'server closed the connection', _CLOSED),
)
_LIBPQ_DRIVERS = 'psycopg', 'psycopg2'
# Of oslo.db and SQLAlchemy, by name: clients of HTTP services have neither.
_CLASSES = {'DBNonExistentTable': _TABLE, 'NoSuchModuleError': _DRIVERLESS}
# The check knows the commands for each database.
CHECK = 'run "nova-aggregate-mirror-status upgrade check" for the repair'
_INSTALL = 'install the package %s in this Python environment'
# With other drivers, the wait for a server has no limit.
BOUNDED_DRIVER = ('let %s begin with mysql+pymysql://, '
                  'postgresql+psycopg2:// or postgresql+psycopg://')
# By the module that is not installed; a package may have another name.
DRIVERS = {
    'MySQLdb': 'let %s begin with mysql+pymysql://',
    'pymysql': _INSTALL % 'PyMySQL', 'psycopg2': _INSTALL % 'psycopg2',
    'psycopg': _INSTALL % 'psycopg'}
# The next step, with the option that has the URL of the database.
STEPS = {
    _REFUSED: 'start the database server, or correct host and port in %s',
    _NAMELESS: 'correct the host in %s',
    _PASSWORD: 'correct user and password in %s',
    _ABSENT: 'create the database, or correct its name in %s',
    _READ_ONLY: 'set the host in %s to a server that accepts writes',
    _RIGHTS: 'grant all rights on the database to the user in %s',
    _DRIVERLESS: BOUNDED_DRIVER,
    _FULL: 'free space on the database server',
    _CROWDED: 'raise max_connections on the database server',
    _CROWDED_BY_USER: 'raise max_user_connections on the database server',
    _CROWDED_DATABASE: 'raise the connection limit of the database',
    _USED_UP: 'on the database server, raise the limits of the user in %s',
    _HOST: 'on the database server, let the user in %s connect from this host',
    _BLOCKED: 'run "mysqladmin flush-hosts" on the database server',
    _TABLE: CHECK, _COLUMN: CHECK, _DAMAGED: CHECK,
}

_AUTHORITY = 'set %s to the file of the authority that signed it'
_OTHER_NAME = 'change the host in %s to a name of the certificate'
# By OpenSSL's codes.
CERTIFICATES = {
    9: 'correct the clock of this host', 10: 'renew the certificate',
    **dict.fromkeys((62, 64), _OTHER_NAME),
    **dict.fromkeys((2, 18, 19, 20, 21), _AUTHORITY)}


class Observed(OSError):
    """An error of this package whose text says what a database did.

    It is no TimeoutError, for which SQLAlchemy 2.1 closes a connection.
    """

    step = ''


class UnusableURL(Observed):
    """A URL that the driver of a database cannot use."""

    step = 'correct %s'


def causes(exc: BaseException, handled: BaseException | None = None
           ) -> list[BaseException]:
    """List what led to an error of a library, the innermost first.

    :param handled: the error that was handled when the library was called
    """
    chain: list[BaseException] = []
    cause: BaseException | None = exc
    while cause and cause is not handled and cause not in chain:
        chain.insert(0, cause)
        reasons = [getattr(cause, name, None) for name in (
            'reason', 'orig', 'inner_exception', 'original_exception')]
        cause = next((reason for reason in (*reasons, *reversed(cause.args))
                      if isinstance(reason, BaseException)),
                     cause.__cause__ or cause.__context__)
    return chain


def of_socket(cause: BaseException) -> str:
    """Return what a peer did; empty if the error does not say so."""
    for cls, observation in _SOCKET:
        if isinstance(cause, cls):
            detail = getattr(cause, 'verify_message', None) or (
                cause.reason if isinstance(cause, ssl.SSLError) else None)
            return observation + (': %s' % detail if detail else '')
    if isinstance(cause, OSError) and cause.errno:
        text = os.strerror(cause.errno)
        return ('cannot use %s: %s' % (cause.filename, text) if cause.filename
                else 'could not be reached: %s' % text)
    return ''


def is_closed(exc: BaseException, handled: BaseException | None) -> bool:
    """Check whether a peer closed a connection without an answer.

    Any cause counts: urllib3 1.26 handles a TypeError when it sends.
    """
    return any(isinstance(cause, (ConnectionError, ssl.SSLEOFError))
               for cause in causes(exc, handled))


def of_database(exc: BaseException, waited: float = 0.0, option: str = '',
                handled: BaseException | None = None) -> tuple[str, str]:
    """Return what a database did, and the next step if one is known.

    :param waited: seconds that passed before the error
    :param option: the option with the URL of the database
    :param handled: the error that was handled when the database was called
    """
    for cause in ([exc] if getattr(exc, 'filename', '')
                  else causes(exc, handled)):
        if isinstance(cause, Observed):
            return str(cause), _filled(cause.step, option)
        if isinstance(cause, ModuleNotFoundError):
            return _MODULE % cause.name, _filled(
                DRIVERS.get(cause.name or '', BOUNDED_DRIVER), option)
        observation = _of_driver(cause)
        if observation:
            seconds = ' for %.1f s' % waited if waited else ''
            return (observation + seconds * (observation == _SILENT),
                    _filled(STEPS.get(observation, ''), option))
    if is_damage(exc):
        return _DAMAGED, STEPS[_DAMAGED]
    lines = str(exc).strip().splitlines()
    # With an @ in a password, the rest of the password is parsed as host.
    return 'failed: %s' % re.sub(
        r'''(?<=['"])[^'"\s]*@(?=[^'"\s@]+['"])''', '',
        lines[0] if lines else type(exc).__name__), ''


def _of_driver(cause: BaseException) -> str:
    """Return what a database did, by the error of its driver; else empty."""
    if isinstance(cause, TimeoutError):
        return _SILENT
    # An SQLSTATE of MySQL may be that of many errors.
    states = [getattr(cause, name, None) for name in ('sqlstate', 'pgcode')]
    for code in (next(iter(cause.args), None), *states):
        if isinstance(code, (int, str)) and code in _CODES:
            return _CODES[code]
    observation = _CLASSES.get(type(cause).__name__) or of_socket(cause)
    return observation or ('' if any(states) else _of_libpq(cause))


def _of_libpq(cause: BaseException) -> str:
    """Return why libpq opened no connection, by its text; else empty."""
    if type(cause).__module__.partition('.')[0] not in _LIBPQ_DRIVERS:
        return ''
    text = str(cause)
    for pattern, observation in _LIBPQ:
        if re.search(pattern, text):
            return observation
    return next((of_socket(OSError(number, '')) for number in errno.errorcode
                 if ': ' + os.strerror(number) in text), '')


def of_certificate(exc: BaseException, cafile: str, address: str) -> str:
    """Return the next step for a certificate that was refused; else empty.

    :param cafile: the option with the authorities
    :param address: where the URL is configured
    """
    step = next((
        CERTIFICATES.get(cause.verify_code, '') for cause in causes(exc)
        if isinstance(cause, ssl.SSLCertVerificationError)), '')
    return _filled(step, address if step is _OTHER_NAME else cafile)


def _filled(step: str, option: str) -> str:
    """Return a step with the option that it names, if any."""
    return step % option if '%s' in step else step


def is_damage(exc: BaseException) -> bool:
    """Check whether an SQLite file is damaged, or is none.

    Python has subclasses for all other errors of SQLite.
    """
    return any(type(cause) is sqlite3.DatabaseError for cause in causes(exc))
