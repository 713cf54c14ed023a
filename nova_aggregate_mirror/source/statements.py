# SPDX-License-Identifier: Apache-2.0
"""SQL statements on hosts and aggregates, and the columns that they read.

The tables replace nova's models, because importing those takes longer than a
full sync of a thousand hosts. A test compares them with the models.
"""

from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror.limits import engines


def table(name: str, /, **columns: Any) -> sa.sql.expression.TableClause:
    """Return a table of nova with those columns that are read."""
    return sa.table(name, *map(sa.column, columns, columns.values()))


aggregates = table('aggregates', id=sa.Integer, uuid=sa.String, name=sa.String)
aggregate_hosts = table('aggregate_hosts', aggregate_id=sa.Integer,
                        host=sa.String, created_at=sa.DateTime)
aggregate_metadata = table(
    'aggregate_metadata', aggregate_id=sa.Integer, key=sa.String,
    value=sa.String, created_at=sa.DateTime, updated_at=sa.DateTime)
host_mappings = table('host_mappings', host=sa.String, cell_id=sa.Integer)
cell_mappings = table('cell_mappings', id=sa.Integer, uuid=sa.String,
                      name=sa.String, database_connection=sa.Text)
compute_nodes = table('compute_nodes', uuid=sa.String, host=sa.String,
                      hypervisor_hostname=sa.String, deleted=sa.Integer)
# Statements are built once, because building takes longer than executing.
AGGREGATE, MEMBER = aggregates.c, aggregate_hosts.c
METADATA = aggregate_metadata.c
HOST, NODE, CELL = host_mappings.c, compute_nodes.c, cell_mappings.c
NOTHING = sa.null()
# The columns of two tables may have different collations, which MySQL does
# not compare: no column is compared with one of another table, but IDs.
# What names an aggregate whose UUID is none.
NAMED_AGGREGATE = (AGGREGATE.id, AGGREGATE.uuid, AGGREGATE.name)
# Every cell, and cell0, oldest first.
CELLS = sa.select(*CELL).order_by(CELL.id)
# Parts of one query instead of several: host mappings and memberships.
_MAPPINGS = sa.select(
    HOST.host, *CELL, NOTHING.label('member'), NOTHING.label('aggregate_id'),
    NOTHING.label('aggregate'), NOTHING.label('aggregate_name'),
).join_from(host_mappings, cell_mappings, CELL.id == HOST.cell_id)
_NO_MAPPING = (NOTHING,) * (1 + len(CELL))
MEMBERSHIPS = sa.select(*NAMED_AGGREGATE, MEMBER.host).join_from(
    aggregate_hosts, aggregates, AGGREGATE.id == MEMBER.aggregate_id)
# Those of some hosts and, if its ID is given, an aggregate without its hosts.
HOSTS = sa.union_all(
    _MAPPINGS.where(HOST.host.in_(engines.SOME)),
    MEMBERSHIPS.with_only_columns(*_NO_MAPPING, MEMBER.host, *NAMED_AGGREGATE
                                  ).where(MEMBER.host.in_(engines.SOME)),
    sa.select(*_NO_MAPPING, NOTHING, *NAMED_AGGREGATE).where(
        AGGREGATE.id == sa.bindparam('id', None)))
AGGREGATES = sa.select(*NAMED_AGGREGATE)
EXISTING = AGGREGATES.where(AGGREGATE.uuid.in_(engines.SOME))
VALUES = sa.select(
    AGGREGATE.id, AGGREGATE.uuid, METADATA.key, METADATA.value,
).join_from(aggregate_metadata, aggregates,
            AGGREGATE.id == METADATA.aggregate_id)
# A node without a host was never completed by its nova-compute.
NODES = sa.select(NODE.uuid, NODE.host).where(
    NODE.deleted == 0, NODE.host.is_not(None))
NODES_OF = NODES.where(NODE.host.in_(engines.SOME))
# Nova keeps the spelling that it was given: upper case, or without hyphens.
SPELLED = sa.func.lower(sa.func.replace(NODE.uuid, '-', '')).in_(engines.SOME)
THESE_NODES = NODES.where(SPELLED)


def comparable(node: str) -> str:
    """Return a compute node's UUID as statements compare it."""
    return node.replace('-', '').lower()
