# SPDX-License-Identifier: Apache-2.0
"""Opens the journal's database: oslo.db, and what SQLite needs besides."""

import contextlib
import os
import pathlib
import sqlite3
from typing import Any

from oslo_config import cfg
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa

from nova_aggregate_mirror.db import migration
from nova_aggregate_mirror import exceptions

SYNC_COMMAND = 'nova-aggregate-mirror-manage db sync'


@enginefacade.transaction_context_provider
class _Context:
    """What oslo.db hangs one transaction on."""


class Database:
    """The journal's database.

    :param conf: with the options of ``[aggregate_mirror_database]``
    :raises InvalidConfiguration: when the connection is no database URL
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        settings = dict(conf.aggregate_mirror_database.items())
        # oslo.db would retry the first connection for 100 seconds, and the
        # caller is a user's request.
        settings['max_retries'] = 0
        try:
            url = sa.engine.make_url(settings['connection'])
        except sa.exc.ArgumentError:
            # SQLAlchemy's own message may repeat the URL, password and all.
            raise exceptions.InvalidConfiguration(
                '[aggregate_mirror_database] connection is not the URL of a '
                'database, as in mysql+pymysql://user:password@host/name'
            ) from None
        self._manager = enginefacade.transaction_context()
        self._manager.configure(**settings)
        self._anchor: sqlite3.Connection | None = None
        self._is_sqlite = url.get_backend_name() == 'sqlite'
        if self._is_sqlite:
            self._manager.append_on_engine_create(_begin_immediate)
            if url.database:
                _make_private(pathlib.Path(url.database))
                self._open_log(url.database)

    def transaction(self) -> contextlib.AbstractContextManager[Any]:
        """A connection in a new transaction, committed at the end."""
        return self._manager.writer.connection.using(_Context())

    def version(self) -> str | None:
        """The version of the tables, or None when there are none."""
        with self.transaction() as connection:
            return migration.version(connection)

    def migrate(self) -> None:
        """Bring the tables up to date."""
        with self.transaction() as connection:
            migration.upgrade(connection)

    def prepare(self) -> None:
        """Check the tables; those of an SQLite file are brought up to date.

        :raises JournalUnavailable: when the tables of a server are not, which
            an operator does once for all controllers
        """
        found = self.version()
        if self._is_sqlite and (found is None or found < migration.HEAD):
            self.migrate()
        elif found is None or found < migration.HEAD:
            raise exceptions.JournalUnavailable(
                'the journal\'s database has %s: run "%s" once'
                % ('no tables' if found is None
                   else 'tables of version %s instead of %s'
                   % (found, migration.HEAD), SYNC_COMMAND))

    def _open_log(self, path: str) -> None:
        # The last connection that closes empties and removes the write-ahead
        # log, and oslo.db closes after each transaction: this one stays.
        try:
            self._anchor = sqlite3.connect(path, check_same_thread=False)
            self._anchor.execute('PRAGMA journal_mode = WAL')
            self._anchor.execute('SELECT 1 FROM sqlite_master').fetchall()
        except sqlite3.Error as exc:
            raise exceptions.JournalUnavailable(
                'the journal could not be used: %s' % exc) from exc


def _begin_immediate(engine: sa.engine.Engine) -> None:
    """Take SQLite's write lock at the start of each transaction.

    A transaction that reads first and writes then fails at once, without
    waiting, when another one wrote in between.
    """

    def begin(connection: sa.engine.Connection) -> None:
        if 'in_transaction' in connection.info:
            # oslo.db was first, and its plain BEGIN took no lock yet.
            connection.exec_driver_sql('ROLLBACK')
        connection.exec_driver_sql('BEGIN IMMEDIATE')
        connection.info['in_transaction'] = True

    sa.event.listen(engine, 'begin', begin)


def _make_private(path: pathlib.Path) -> None:
    """Make the file and its directory, for nova's user alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    if os.geteuid() == 0:
        # A command that root runs must not shut nova-api's user out.
        above = path.parent.parent.stat()
        for made in (path.parent, path):
            os.chown(made, above.st_uid, above.st_gid)
