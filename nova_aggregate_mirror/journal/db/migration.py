# SPDX-License-Identifier: Apache-2.0
"""Brings the tables of the journal to the version that this release needs."""

import pathlib

import sqlalchemy as sa

HEAD = '0001'
"""The newest migration; a constant, so that nova-api need not load alembic."""


def version(connection: sa.engine.Connection) -> str | None:
    """The version of the journal's tables, or None when there are none."""
    if not sa.inspect(connection).has_table('alembic_version'):
        return None
    found: str | None = connection.scalar(
        sa.text('SELECT version_num FROM alembic_version'))
    return found


def upgrade(connection: sa.engine.Connection) -> None:
    """Run the migrations that are missing, inside the caller's transaction."""
    from alembic import command
    from alembic import config

    settings = config.Config()
    settings.set_main_option(
        'script_location', str(pathlib.Path(__file__).parent / 'migrations'))
    settings.attributes['connection'] = connection
    command.upgrade(settings, 'head')
