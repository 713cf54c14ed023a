# SPDX-License-Identifier: Apache-2.0
"""Connections to nova's databases, apart from nova's own."""

from collections import abc
import contextlib
import threading
from typing import Any

from nova.conf import CONF
from oslo_config import cfg
import sqlalchemy as sa

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import backoff
from nova_aggregate_mirror.limits import driver_failures
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror import option_values

PARTY = causes.database(
    'nova\'s API database', '[api_database] connection',
    'run "nova-manage api_db sync"')
# A URL whose port is not a number is a ValueError of SQLAlchemy.
ERRORS = (*engines.ERRORS, ValueError)


class Pool:
    """Connections to one database, for reading; opened on first use.

    Nova's own connections wait without a limit. At most one connection stays
    open while it is not in use.

    :param kind: the class of all failures
    :param settings: the options of oslo.db for this database
    """

    def __init__(self, party: causes.Party, kind: type[exceptions.Retriable],
                 find_url: abc.Callable[[], str], settings: Any,
                 limits: engines.Limits) -> None:
        self._party = party
        self._kind = kind
        self._find_url = find_url
        self._settings = settings
        self._limits = limits
        self._back_off = backoff.Backoff(limits.backoff, limits.backoff)
        self._mutex = threading.Lock()
        self._engine: sa.engine.Engine | None = None

    @contextlib.contextmanager
    def reading(self) -> abc.Iterator[Any]:
        """Open a new transaction on the writer: it sees what is committed."""
        translated = engines.translated(
            self._party, lambda _error: self._kind, ERRORS)
        backing_off = engines.backing_off(self._limits, self._back_off)
        with translated, backing_off, self._opened().begin() as connection:
            yield connection

    def _opened(self) -> sa.engine.Engine:
        """Return the engine, created at first use; it is not connected."""
        try:
            with self._mutex:
                self._engine = self._engine or engines.create(
                    sa.engine.make_url(self._find_url()), self._settings,
                    self._limits, max_pool_size=1)
                return self._engine
        except cfg.Error as exc:
            failure = option_values.invalid_option(CONF, exc).failure
            raise driver_failures.Observed(causes.Cause(
                failure.kind, 'cannot be asked: ' + failure.observation,
                failure.step)) from exc


def api_database(seconds: float = engines.Limits.timeout) -> Pool:
    """Return nova's API database, which has some seconds for an answer.

    It has no back-off: nova itself needs it for every request.
    """
    return Pool(PARTY, exceptions.NovaUnavailable,
                lambda: CONF.api_database.connection or '',
                CONF.api_database, engines.Limits(seconds))
