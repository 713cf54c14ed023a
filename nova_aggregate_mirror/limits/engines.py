# SPDX-License-Identifier: Apache-2.0
"""SQLAlchemy engines with bounds for the wait and size of statements.

Long because only the limits of driver and server together bound a statement.
"""

from collections import abc
import contextlib
import contextvars
import dataclasses
import functools
import inspect
import math
import sys
import time
from typing import Any
import urllib.parse

from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import engines
from oslo_db.sqlalchemy import exc_filters
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import backoff
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import driver_failures

# Oslo.db leaves some errors to SQLAlchemy, such as a connection too many;
# SQLAlchemy 2.1 has a class of errors for drivers that have none.
LIBRARY_ERRORS = (
    db_exc.DBError, db_exc.CantStartEngineError, sa_exc.SQLAlchemyError,
    getattr(sa_exc, 'EmulatedDBAPIException', sa_exc.SQLAlchemyError))
# Also those of a driver that is not installed, and of a socket or file.
ERRORS = (*LIBRARY_ERRORS, ImportError, OSError)
# Timeout parameters per driver, and their units per second; by default a hung
# server hangs the caller. Libpq has no read timeout, and its keepalives detect
# only that the host of a server is gone.
_MYSQL = {'connect_timeout': 1, 'read_timeout': 1, 'write_timeout': 1}
_LIBPQ = {'connect_timeout': 1, 'tcp_user_timeout': 1000,
          'keepalives_idle': 1, 'keepalives_interval': 1}
_TIMEOUTS = {'pymysql': _MYSQL, 'mysqldb': _MYSQL,
             'psycopg': _LIBPQ, 'psycopg2': _LIBPQ}
OVERRUN = 1.0  # Seconds that a call's last statement may exceed its deadline.
HEALTHY_SECONDS = 0.25  # For a transaction in a healthy database.
PATIENCE = 5.0  # Seconds for a statement of a call, at most.
# Shares of a statement's limit: when the server ends it, which is before the
# driver gives up the connection, and when a database counts as silent.
AT_SERVER, SILENT = 0.9, 0.8
# On Galera, a transaction that begins with a read (1), or with an UPDATE or
# DELETE (2), which read how many rows match, waits until its node has applied
# what the cluster committed: a new connection may lead to another node. An
# INSERT need not wait: at COMMIT it conflicts with what its node has missed.
CAUSAL = 1 | 2
# MySQL's error after such a wait, or one for a lock; PostgreSQL's for a lock.
TIMED_OUT, LOCK_TIMEOUT = 1205, '55P03'
WRITES = 'INSERT', 'UPDATE', 'DELETE'
# When the last request to a database began in this context: earlier ones were
# answered, and the time between requests was this process's own.
_LAST_REQUEST = contextvars.ContextVar(
    'aggregate_mirror_database_request', default=-math.inf)
# Values per IN list: every database that nova supports accepts as many.
CHUNK = 500
SOME: 'sa.BindParameter[Any]' = sa.bindparam('some', expanding=True)
"""Values of an IN list, which are one of ``chunks``."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of the time that a database may let this process wait."""

    timeout: float = 5.0
    """Seconds for a server to accept a connection or to execute a statement;
    drivers take whole seconds."""
    backoff: float = 0.0
    """Seconds without an attempt after a database did not answer."""
    longest_lock_wait: float = math.inf

    @classmethod
    def of_call(cls, seconds: float, inline_backoff: float) -> 'Limits':
        """Return the limits of nova-api, whose calls have a deadline."""
        return cls(max(1.0, min(PATIENCE, seconds // 2.5)), inline_backoff)

    @property
    def least_left(self) -> float:
        """Seconds that must be left of a call to begin a statement."""
        return max(0.0, self.timeout - OVERRUN)

    @property
    def lock_wait(self) -> float:
        """Seconds that a statement waits for locks of other sessions.

        A lock can be told from a server that hangs only if this wait ends well
        before the statement. MySQL's is a whole second at least, which is too
        long for a ``timeout`` of one second.
        """
        return min(self.timeout / 2, self.longest_lock_wait)

    def check(self, cause: causes.Cause = causes.NOT_ASKED) -> None:
        """Raise NotAsked if a statement might end too late."""
        if deadline.remaining() <= self.least_left:
            raise NotAsked(cause.in_call() if deadline.is_budget() else cause)


class NotAsked(driver_failures.Observed):
    """This process had no time or connection left; nothing was written."""


class LostLock(driver_failures.Observed):
    """A statement waited in vain for a lock that another session holds."""


@contextlib.contextmanager
def backing_off(limits: Limits, silence: backoff.Backoff, insist: bool = False
                ) -> abc.Iterator[None]:
    """Use a database inside; begin its back-off if there is no answer.

    :param insist: whether to ask during a back-off, too
    :raises Observed: what began the back-off, unless it has ended
    :raises NotAsked: when no time or no connection is left
    """
    now = time.monotonic()
    callers_error = sys.exception()  # Python chains it to what is raised here.
    if now < silence.until and not insist:
        raise driver_failures.Observed(causes.not_again(silence.reason))
    # The events check before each statement, but a pool's ping has none.
    limits.check()
    _LAST_REQUEST.set(now)
    try:
        yield
    except (NotAsked, LostLock, exceptions.JournalNotAsked,
            exceptions.JournalLocked):
        # No silence: it was not asked, or only a lock was waited for.
        raise
    except sa_exc.TimeoutError as exc:
        raise NotAsked(causes.POOL) from exc
    except (*ERRORS, exceptions.MirrorError) as exc:
        now = time.monotonic()
        waited = now - _LAST_REQUEST.get()
        if waited >= SILENT * limits.timeout:
            silence.extend(now, driver_failures.of_database(
                exc, waited, callers_error))
        raise
    silence.until = -math.inf


@contextlib.contextmanager
def translated(party: causes.Party,
               kind: abc.Callable[[Exception], type[exceptions.MirrorError]],
               errors: tuple[type[Exception], ...] = ERRORS
               ) -> abc.Iterator[None]:
    """Translate what is raised inside to the class that ``kind`` returns."""
    handled = sys.exception()
    _LAST_REQUEST.set(time.monotonic())
    try:
        yield
    except errors as exc:
        waited = time.monotonic() - _LAST_REQUEST.get()
        raise kind(exc).of(driver_failures.of_database(
            exc, waited, handled), party) from exc


def timeouts(url: sa.engine.URL | str, seconds: float, parameters: str = ''
             ) -> dict[str, str]:
    """Return the timeout parameters that the operator has not set in a URL.

    :param seconds: for a connection, and for each read and write
    :param parameters: ``connection_parameters``, which oslo.db adds to the URL
    """
    url = sa.engine.make_url(url)
    units = _TIMEOUTS.get(url.get_driver_name(), {})
    options = {*url.query, *urllib.parse.parse_qs(parameters)}
    # The drivers take whole seconds.
    return {name: str(math.ceil(seconds) * units[name])
            for name in units if name not in options}


def chunks(values: abc.Iterable[str]) -> abc.Iterator[list[str]]:
    """Split values into sorted lists of at most ``CHUNK``."""
    ordered = sorted(values)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start:start + CHUNK]


def select(connection: Any, statement: Any, values: abc.Iterable[str]
           ) -> abc.Iterator[Any]:
    """Execute a statement with ``IN :some`` by chunks; yield all rows."""
    for chunk in chunks(values):
        yield from connection.execute(statement, {'some': chunk})


def create(url: sa.engine.URL, settings: Any, limits: Limits,
           **overrides: Any) -> sa.engine.Engine:
    """Create an engine whose statements have limits, with oslo.db.

    :param overrides: replace oslo.db's ``settings`` of the same name
    """
    accepted = inspect.signature(engines.create_engine).parameters
    arguments = {name: settings[name] for name in settings if name in accepted}
    # By default oslo.db retries the first connection for 100 seconds.
    arguments |= {'max_retries': 0, **overrides}
    if url.get_backend_name() != 'sqlite':
        arguments['pool_timeout'] = limits.timeout
    bounded = url.update_query_dict(timeouts(
        url, limits.timeout, arguments.get('connection_parameters') or ''))
    engine = build(url, lambda: _bound(
        engines.create_engine(bounded, **arguments), limits))
    if arguments.get('mysql_wsrep_sync_wait') is None:
        # Each transaction sees what was committed on any Galera node. ProxySQL
        # repeats a statement that sets nothing else on each of its servers.
        _at_connect(engine, 'SET SESSION wsrep_sync_wait = %d' % CAUSAL)
    # Before oslo.db's filters, which take a lost lock for a deadlock.
    sa.event.remove(engine, 'handle_error', exc_filters.handler)
    sa.event.listen(engine, 'handle_error', _classify)
    sa.event.listen(engine, 'handle_error', exc_filters.handler, retval=True)
    return engine


def build(url: sa.engine.URL, factory: abc.Callable[[], sa.engine.Engine]
          ) -> sa.engine.Engine:
    """Create an engine that raises Observed for a URL it cannot use.

    Drivers raise built-in errors for parameters that they do not know.
    """

    @contextlib.contextmanager
    def translated_url_errors() -> abc.Iterator[None]:
        try:
            yield
        except (AttributeError, TypeError, ValueError) as exc:
            # An AttributeError names objects of the driver. A UnicodeError
            # quotes a character, perhaps of the password; its reason does not.
            reason = ('' if isinstance(exc, AttributeError)
                      else str(getattr(exc, 'reason', exc)))
            raise driver_failures.Observed(causes.url_unusable(
                url.get_driver_name(), ', '.join(sorted(url.query)), reason)
            ) from exc

    with translated_url_errors():
        engine = factory()

    # After the factory's listeners: after one that connects, none is called.
    @sa.event.listens_for(engine, 'do_connect')
    def connect(dialect: Any, _record: Any, args: Any, options: Any) -> Any:
        if dialect.driver == 'psycopg':
            # A pooler may lead the next transaction to another session.
            options['prepare_threshold'] = None
        with translated_url_errors():
            return dialect.connect(*args, **options)

    return engine


def _classify(context: Any) -> None:
    """Raise LostLock for a lost lock, DBConnectionError for a lagging node."""
    # MySQL and MariaDB report both as error 1205. It counts as a lost lock for
    # a write, and as a lagging Galera node for a read. If a node lags at an
    # UPDATE that begins a transaction, this is wrong; a read soon shows it.
    error = context.original_exception
    if isinstance(error, NotAsked):
        # SQLAlchemy 2.1 passes the errors of events to oslo.db's filters.
        raise error
    state = getattr(error, 'pgcode', None) or getattr(error, 'sqlstate', None)
    is_timeout = error.args[:1] == (TIMED_OUT,)
    # A COMMIT, which has no statement, is a write, too.
    is_write = not context.statement or context.statement.startswith(WRITES)
    if state == LOCK_TIMEOUT or (is_timeout and is_write):
        raise LostLock(causes.LOCKED)
    if driver_failures.of_database(error) == causes.READ_ONLY:
        # The server has become a replica: a new connection finds another one.
        context.is_disconnect = True
    if is_timeout:
        # A proxy may lead the next connection to a node that lags less. A node
        # that lost its cluster answers the same to a ping of older oslo.db.
        context.is_disconnect = True
        raise db_exc.DBConnectionError(error)


def _at_connect(engine: sa.engine.Engine, statement: str) -> None:
    """Send MySQL and MariaDB a statement that one of them may not know."""
    if engine.dialect.name in ('mysql', 'mariadb'):
        @sa.event.listens_for(engine, 'connect')
        def connect(connection: Any, _record: Any) -> None:
            with contextlib.suppress(connection.Error), \
                    contextlib.closing(connection.cursor()) as cursor:
                cursor.execute(statement)


def _bound(engine: sa.engine.Engine, limits: Limits) -> sa.engine.Engine:
    """Limit each statement, and begin none that may end too late."""

    def begin_request(cause: causes.Cause, *_arguments: Any) -> None:
        limits.check(cause)
        _LAST_REQUEST.set(time.monotonic())

    for event, cause in (('do_connect', causes.NOT_ASKED),
                         ('before_cursor_execute', causes.NOT_ASKED_FURTHER),
                         ('commit', causes.NOT_ASKED_FURTHER)):
        sa.event.listen(engine, event, functools.partial(begin_request, cause))
    statement_ms = int(limits.timeout * AT_SERVER * 1000)
    if engine.dialect.name == 'postgresql':
        @sa.event.listens_for(engine, 'begin')
        def begin(connection: sa.engine.Connection) -> None:
            # For this transaction only: a pooler may share the session.
            connection.exec_driver_sql(
                "SELECT set_config('statement_timeout', '%d', true), "
                "set_config('lock_timeout', '%d', true)" % (
                    statement_ms, limits.lock_wait * 1000))

    # MariaDB executes the first comment only, MySQL the second only.
    _at_connect(engine, 'SET SESSION innodb_lock_wait_timeout = %d '
                '/*M!100101 , max_statement_time = %g */ '
                '/*!50708 , max_execution_time = %d */' % (
                    max(1, limits.lock_wait), statement_ms / 1000,
                    statement_ms))
    return engine
