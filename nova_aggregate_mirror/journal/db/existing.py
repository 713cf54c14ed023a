# SPDX-License-Identifier: Apache-2.0
"""The journal's database, as commands open and migrate it.

Each function raises ``JournalUnavailable`` if the database, or the option with
its URL, cannot be used.
"""

import contextlib
import pathlib

from oslo_config import cfg
from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.journal.db import sqlite
from nova_aggregate_mirror.limits import engines

# An ALTER waits for the locks of all sessions that use the table.
HOUR = engines.Limits(timeout=3600.0)


def display_url(conf: cfg.ConfigOpts) -> str:
    """Return the URL of the journal without password and parameters."""
    url = engine.configured(conf)
    return url.set(query={}).render_as_string(hide_password=True)


def sqlite_file(conf: cfg.ConfigOpts) -> pathlib.Path | None:
    """Return the path of an SQLite journal; None for a database server."""
    url = engine.configured(conf)
    if url.get_backend_name() != 'sqlite':
        return None
    return pathlib.Path(url.database or '')


@engine.translated()
def is_missing(conf: cfg.ConfigOpts) -> bool:
    """Check whether the journal is an SQLite file that does not exist."""
    file = sqlite_file(conf)
    if file is None:
        return False
    try:
        # Path.exists() may answer False to a user who may not look.
        file.stat()
    except FileNotFoundError:
        return True
    except OSError as exc:
        raise sqlite.failure(exc, file) from exc
    return False


@engine.translated()
def open_existing(conf: cfg.ConfigOpts) -> engine.Database:
    """Open the journal's database without creating or migrating anything.

    A missing SQLite file is treated as an empty journal.

    :raises JournalUnavailable: also when its tables are missing or outdated
    """
    file = sqlite_file(conf)
    if file and is_missing(conf):
        # Raise why nova-api could not create the file, if so.
        try:
            sqlite.try_write(sqlite.nearest_existing(file.parent))
        except FileNotFoundError as exc:
            # The directory exists, but takes no file: name the file instead.
            raise sqlite.failure(exc, file) from exc
        return open_empty(conf)
    database = engine.Database(conf)
    database.prepare(migrates=False)
    return database


def open_empty(conf: cfg.ConfigOpts) -> engine.Database:
    """Open an empty journal in memory, in place of a missing SQLite file."""
    database = engine.Database(conf, engine.configured(conf).set(database=''))
    database.prepare()
    return database


@engine.translated()
def migrate(conf: cfg.ConfigOpts) -> models.Schema:
    """Run pending migrations; tables of a newer release stay."""
    with (contextlib.closing(engine.Database(conf)) as database,
          contextlib.closing(engine.Database(conf, limits=HOUR)) as patient):
        for _attempt in range(engine.ATTEMPTS):
            before = database.schema()
            try:
                with patient.open().begin() as connection:
                    models.upgrade(connection)
                return database.schema()
            except (db_exc.DBError, sa.exc.SQLAlchemyError) as exc:
                # Of concurrent migrations, one creates each table. No lock
                # keeps them apart: on Galera each node has its own.
                if not engine.is_conflict(exc) and database.schema() == before:
                    raise
                error = exc
        raise error
