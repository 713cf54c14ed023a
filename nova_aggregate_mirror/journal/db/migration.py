# SPDX-License-Identifier: Apache-2.0
"""Migrations of the journal's tables to the version of this release."""

import pathlib

import sqlalchemy as sa

HEAD = '0001'
"""The newest migration; a constant, so that nova-api does not load alembic."""


def version(connection: sa.engine.Connection) -> str | None:
    """Read the version of the journal's tables; None without tables."""
    if not sa.inspect(connection).has_table('alembic_version'):
        return None
    found: str | None = connection.scalar(
        sa.text('SELECT version_num FROM alembic_version'))
    return found


def upgrade(connection: sa.engine.Connection) -> None:
    """Run the pending migrations in the caller's transaction."""
    from alembic import command
    from alembic import config

    settings = config.Config()
    settings.set_main_option(
        'script_location', str(pathlib.Path(__file__).parent / 'migrations'))
    settings.attributes['connection'] = connection
    command.upgrade(settings, 'head')
