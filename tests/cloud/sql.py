# SPDX-License-Identifier: Apache-2.0
"""Statements in databases, which are written and read without a service."""

from collections import abc
import functools
from typing import Any

import sqlalchemy as sa


@functools.cache
def engine(url: str) -> sa.engine.Engine:
    """Return the engine of a database, which keeps no connection open."""
    return sa.create_engine(
        without_tls(sa.engine.make_url(url)), poolclass=sa.pool.NullPool)


def without_tls(url: sa.engine.URL) -> sa.engine.URL:
    """Return a URL for connections to this machine.

    PyMySQL reads all certificates of the machine for each connection that may
    use TLS: 30 ms of processor time.
    """
    if url.drivername != 'mysql+pymysql':
        return url
    return url.update_query_dict({'ssl_disabled': 'true'})


def changed(url: str, **parts: Any) -> str:
    """Return a URL with other parts, such as its port."""
    return sa.engine.make_url(url).set(**parts).render_as_string(
        hide_password=False)


def execute(url: str, /, *statements: str, **values: Any
            ) -> list[sa.engine.Row]:
    """Run statements, each in a transaction; return the rows of the last.

    :param values: of the parameters in each statement, such as ``:host``, or
        ``IN :hosts`` for a list
    """
    lists = [sa.bindparam(name, expanding=True)
             for name, value in values.items() if isinstance(value, list)]
    rows: list[sa.engine.Row] = []
    with engine(url).connect() as connection:
        connection.execution_options(isolation_level='AUTOCOMMIT')
        for statement in statements:
            result = (
                connection.execute(
                    sa.text(statement).bindparams(*lists), values)
                if values else connection.exec_driver_sql(statement))
            rows = list(result) if result.returns_rows else []
    return rows


def insert(url: str, table: str, rows: abc.Sequence[abc.Mapping[str, Any]]
           ) -> None:
    """Insert rows, if any, which have the same columns."""
    if rows:
        # MariaDB reserves words that SQLAlchemy does not quote, such as
        # binary.
        columns: list[Any] = [
            sa.column(sa.sql.quoted_name(name, quote=True))
            for name in rows[0]]
        with engine(url).begin() as connection:
            connection.execute(sa.table(table, *columns).insert(), rows)
