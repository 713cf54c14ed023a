# SPDX-License-Identifier: Apache-2.0
"""Copies of databases: nova takes a minute to create its tables."""

import sqlalchemy as sa

from tests.cloud import sql
from tests import databases


def mysql(address: str, source: str, target: str) -> None:
    """Create a database with the tables and rows of another.

    :param address: the URL of the server
    """
    sql.execute(address, databases.SERVERS['mysql'].create % target)
    with sql.engine('%s/%s' % (address, source)).connect() as connection:
        connection.execution_options(isolation_level='AUTOCOMMIT')

        def run(statement: str) -> sa.engine.CursorResult:
            # A percent sign is no parameter here.
            return connection.exec_driver_sql(statement.replace('%', '%%'))

        statements = {}
        for table, in run('SHOW TABLES').all():
            shown = run('SHOW CREATE TABLE `%s`' % table).one()
            statements[table] = shown[1]
        run('SET foreign_key_checks = 0')
        run('USE `%s`' % target)
        for table, statement in statements.items():
            run(statement)
            run('INSERT INTO `%s` SELECT * FROM `%s`.`%s`' % (
                table, source, table))


def postgresql(address: str, source: str, target: str) -> None:
    """Create a database with the content of another, which is not in use."""
    sql.execute(address, 'CREATE DATABASE %s TEMPLATE %s' % (target, source))
