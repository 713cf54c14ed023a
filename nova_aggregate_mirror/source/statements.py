# SPDX-License-Identifier: Apache-2.0
"""SQL statements on hosts and aggregates."""

import sqlalchemy as sa

from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import nova_tables

# Statements are built once, because building takes longer than executing.
AGGREGATE, MEMBER = nova_tables.aggregates.c, nova_tables.aggregate_hosts.c
HOST, NODE = nova_tables.host_mappings.c, nova_tables.compute_nodes.c
NOTHING = sa.null()
# The columns of two tables may have different collations, which MySQL does
# not compare: no column is compared with one of another table.
IN_AGGREGATE = AGGREGATE.id == MEMBER.aggregate_id
# What names an aggregate whose UUID is none.
NAMED_AGGREGATE = (AGGREGATE.id, AGGREGATE.uuid, AGGREGATE.name)
# Parts of one query instead of several: host mappings and memberships.
_MAPPINGS = sa.select(
    HOST.host, *cells.COLUMNS, NOTHING.label('member'),
    NOTHING.label('aggregate_id'), NOTHING.label('aggregate'),
    NOTHING.label('aggregate_name'),
).join_from(nova_tables.host_mappings, nova_tables.cell_mappings,
            nova_tables.cell_mappings.c.id == HOST.cell_id)
_NO_MAPPING = (NOTHING,) * (1 + len(cells.COLUMNS))
_MEMBERSHIPS = sa.select(
    *_NO_MAPPING, MEMBER.host, *NAMED_AGGREGATE,
).join_from(nova_tables.aggregate_hosts, nova_tables.aggregates, IN_AGGREGATE)
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
