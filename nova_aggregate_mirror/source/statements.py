# SPDX-License-Identifier: Apache-2.0
"""SQL statements on hosts and aggregates, and the columns that they read.

The tables replace nova's models, because importing those takes longer than a
full sync of a thousand hosts. A test compares them with the models.
"""

import sqlalchemy as sa

from nova_aggregate_mirror.limits import engines

aggregates = sa.table(
    'aggregates', sa.column('id', sa.Integer), sa.column('uuid', sa.String),
    sa.column('name', sa.String))
aggregate_hosts = sa.table(
    'aggregate_hosts', sa.column('aggregate_id', sa.Integer),
    sa.column('host', sa.String), sa.column('created_at', sa.DateTime))
aggregate_metadata = sa.table(
    'aggregate_metadata', sa.column('aggregate_id', sa.Integer),
    sa.column('key', sa.String), sa.column('value', sa.String),
    sa.column('created_at', sa.DateTime), sa.column('updated_at', sa.DateTime))
host_mappings = sa.table(
    'host_mappings', sa.column('host', sa.String),
    sa.column('cell_id', sa.Integer))
cell_mappings = sa.table(
    'cell_mappings', sa.column('id', sa.Integer), sa.column('uuid', sa.String),
    sa.column('name', sa.String), sa.column('database_connection', sa.Text))
compute_nodes = sa.table(
    'compute_nodes', sa.column('uuid', sa.String),
    sa.column('host', sa.String), sa.column('hypervisor_hostname', sa.String),
    sa.column('deleted', sa.Integer))

# Statements are built once, because building takes longer than executing.
AGGREGATE, MEMBER = aggregates.c, aggregate_hosts.c
HOST, NODE, CELL = host_mappings.c, compute_nodes.c, cell_mappings.c
NOTHING = sa.null()
# The columns of two tables may have different collations, which MySQL does
# not compare: no column is compared with one of another table.
IN_AGGREGATE = AGGREGATE.id == MEMBER.aggregate_id
# What names an aggregate whose UUID is none.
NAMED_AGGREGATE = (AGGREGATE.id, AGGREGATE.uuid, AGGREGATE.name)
# Every cell, and cell0, oldest first.
CELLS = sa.select(*CELL).order_by(CELL.id)
# Parts of one query instead of several: host mappings and memberships.
_MAPPINGS = sa.select(
    HOST.host, *CELL, NOTHING.label('member'),
    NOTHING.label('aggregate_id'), NOTHING.label('aggregate'),
    NOTHING.label('aggregate_name'),
).join_from(host_mappings, cell_mappings, CELL.id == HOST.cell_id)
_NO_MAPPING = (NOTHING,) * (1 + len(CELL))
_MEMBERSHIPS = sa.select(
    *_NO_MAPPING, MEMBER.host, *NAMED_AGGREGATE,
).join_from(aggregate_hosts, aggregates, IN_AGGREGATE)
# Also of an aggregate, if any is given, which may have no member.
HOSTS = sa.union_all(
    _MAPPINGS.where(HOST.host.in_(engines.SOME)),
    _MEMBERSHIPS.where(MEMBER.host.in_(engines.SOME)),
    sa.select(*_NO_MAPPING, NOTHING, *NAMED_AGGREGATE).where(
        AGGREGATE.id == sa.bindparam('id', None)))
AGGREGATES = sa.select(*NAMED_AGGREGATE)
EXISTING = AGGREGATES.where(AGGREGATE.uuid.in_(engines.SOME))
# A node without a host was never completed by its nova-compute.
NODES = sa.select(NODE.uuid, NODE.host).where(
    NODE.deleted == 0, NODE.host.is_not(None))
NODES_OF = NODES.where(NODE.host.in_(engines.SOME))
# Nova keeps the spelling that it was given: upper case, or without hyphens.
SPELLED = sa.func.lower(sa.func.replace(NODE.uuid, '-', '')).in_(engines.SOME)
THESE_NODES = NODES.where(SPELLED)


def spelled(node: str) -> str:
    """Return the spelling of a compute node's UUID that is compared."""
    return node.replace('-', '').lower()
