# SPDX-License-Identifier: Apache-2.0
"""Observed failures of other parties, by the error of a driver or a socket.

Codes decide, because the texts of drivers differ between their releases.
"""

import os
import re
import socket
import sqlite3
import ssl

# By the innermost error that is one of these.
_NAMELESS = 'has a name that does not resolve'
_REFUSED = 'refused the connection'
_SOCKET: tuple[tuple[type[BaseException], str], ...] = (
    (ConnectionRefusedError, _REFUSED),
    (ConnectionError, 'closed the connection without an answer'),
    (socket.gaierror, _NAMELESS),
    (ssl.SSLCertVerificationError, 'has a certificate that is not accepted'),
    (ssl.SSLError, 'failed the TLS handshake'),
)
_PASSWORD, _READ_ONLY = 'refused the user or the password', 'is read-only'
_ABSENT, _FULL = 'has no database of this name', 'has no space left'
_RIGHTS = 'refused the user a right that is required'
_CROWDED = 'has too many connections'
_DRIVERLESS = 'has a driver that SQLAlchemy does not know'
_TABLE, _COLUMN = 'lacks a table', 'lacks a column'
_DAMAGED = 'is no SQLite database, or is damaged'
_CLOSED = 'closed the connection'
_SLOW = 'ended a statement that took too long'
# Of MySQL and MariaDB, and SQLSTATE of PostgreSQL.
_CODES = {
    1045: _PASSWORD, 1698: _PASSWORD, '28P01': _PASSWORD, '28000': _PASSWORD,
    1044: _RIGHTS, 1142: _RIGHTS, 1143: _RIGHTS, '42501': _RIGHTS,
    1049: _ABSENT, '3D000': _ABSENT,
    1290: _READ_ONLY, 1792: _READ_ONLY, 1836: _READ_ONLY, '25006': _READ_ONLY,
    1021: _FULL, 1114: _FULL, '53100': _FULL,
    1040: _CROWDED, 1203: _CROWDED, '53300': _CROWDED,
    2006: _CLOSED, 2013: _CLOSED, '57P01': _CLOSED,
    1969: _SLOW, 3024: _SLOW, '57014': _SLOW,
    1146: _TABLE, '42P01': _TABLE, 1054: _COLUMN, '42703': _COLUMN,
    '57P03': 'does not accept connections now',
}
# Of oslo.db and SQLAlchemy, by name: clients of HTTP services have neither.
_CLASSES = {'DBNonExistentTable': _TABLE, 'NoSuchModuleError': _DRIVERLESS}
# The check knows the commands for each database.
_CHECK = 'run "nova-aggregate-mirror-status upgrade check" for the repair'
# The next step, with the option that has the URL of the database.
STEPS = {
    _REFUSED: 'start the database server, or correct host and port in %s',
    _NAMELESS: 'correct the host in %s',
    _PASSWORD: 'correct user and password in %s',
    _ABSENT: 'create the database, or correct its name in %s',
    _READ_ONLY: 'set the host in %s to a server that accepts writes',
    _RIGHTS: 'grant all rights on the database to the user in %s',
    _DRIVERLESS: 'correct the driver in %s',
    _FULL: 'free space on the database server',
    _CROWDED: 'raise max_connections on the database server',
    _TABLE: _CHECK, _COLUMN: _CHECK, _DAMAGED: _CHECK,
}


class Observed(TimeoutError):
    """An error of this package whose text says what a database did."""


def causes(exc: BaseException) -> list[BaseException]:
    """List what led to an error of a library, the innermost first."""
    chain: list[BaseException] = []
    cause: BaseException | None = exc
    while cause and cause not in chain:
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


def of_database(exc: BaseException, waited: float = 0.0,
                option: str = '') -> tuple[str, str]:
    """Return what a database did, and the next step if one is known.

    :param waited: seconds that passed before the error
    :param option: the option with the URL of the database
    """
    for cause in [exc] if getattr(exc, 'filename', '') else causes(exc):
        if isinstance(cause, Observed):
            return str(cause), ''
        if isinstance(cause, ModuleNotFoundError):
            return ('needs the Python package %s, which is not installed'
                    % cause.name, 'install it in this Python environment')
        if isinstance(cause, TimeoutError):
            return 'was silent' + (
                ' for %.1f s' % waited if waited else ''), ''
        # An SQLSTATE of MySQL may be that of many errors.
        codes = (next(iter(cause.args), None),
                 getattr(cause, 'sqlstate', None),
                 getattr(cause, 'pgcode', None))
        observation = next(
            (_CODES[code] for code in codes
             if isinstance(code, (int, str)) and code in _CODES),
            _CLASSES.get(type(cause).__name__)) or of_socket(cause)
        if observation:
            step = STEPS.get(observation, '')
            return observation, step % option if '%s' in step else step
    if is_damage(exc):
        return _DAMAGED, STEPS[_DAMAGED]
    lines = str(exc).strip().splitlines()
    # With an @ in a password, the rest of the password is parsed as host.
    return 'failed: %s' % re.sub(
        r'''(?<=['"])[^'"\s]*@(?=[^'"\s@]+['"])''', '',
        lines[0] if lines else type(exc).__name__), ''


def is_untrusted(exc: BaseException) -> bool:
    """Check whether the certificate of a server was not accepted."""
    return any(isinstance(cause, ssl.SSLCertVerificationError)
               for cause in causes(exc))


def is_damage(exc: BaseException) -> bool:
    """Check whether an SQLite file is damaged, or is none.

    Python has subclasses for all other errors of SQLite.
    """
    return any(type(cause) is sqlite3.DatabaseError for cause in causes(exc))
