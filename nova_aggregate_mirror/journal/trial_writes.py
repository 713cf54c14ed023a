# SPDX-License-Identifier: Apache-2.0
"""Trial of the writes to the journal, of which nothing remains."""

from typing import Any

from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models


def write(database: engine.Database) -> None:
    """Write to every table, and commit a lease with an unused name.

    All inserts are rolled back together, so that no agent sees a row. The
    lease, which is deleted again, shows whether the server accepts a COMMIT.
    """
    name = uuidutils.generate_uuid()

    def insert(connection: Any) -> None:
        for table in models.metadata.sorted_tables:
            # The server numbers rows if this is True; the default is 'auto'.
            required = [column for column in table.c if not column.nullable
                        and column.autoincrement is not True]
            connection.execute(sa.insert(table), {
                column.name: name if column.primary_key
                else column.type.python_type() for column in required})
        connection.get_transaction().rollback()

    database.run(insert)
    # To lock a name writes its row in the table of leases.
    database.run(lambda connection: binding.lock(connection, name))
    delete = sa.delete(models.lease).where(models.lease.c.name == name)
    database.run(lambda connection: connection.execute(delete))
