# SPDX-License-Identifier: Apache-2.0
"""SQL statements that read nova's databases."""

from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import tables

# Statements are built once, because building takes longer than executing.
SOME: 'sa.BindParameter[Any]' = sa.bindparam('some', expanding=True)
AGGREGATE, MEMBER = tables.aggregates.c, tables.aggregate_hosts.c
METADATA = tables.aggregate_metadata.c
HOST, NODE = tables.host_mappings.c, tables.compute_nodes.c
IN_CELL = tables.cell_mappings.c.id == HOST.cell_id
NAMED: 'sa.BindParameter[Any]' = sa.bindparam('host')
OF_HOST = tables.aggregates.alias()
# A row per membership of the host. The outer joins start at a row that always
# exists: nova may have neither the aggregate nor the host.
PLACE = sa.select(
    AGGREGATE.uuid.label('aggregate'), HOST.host, *cells.COLUMNS,
    MEMBER.host.label('member'), OF_HOST.c.uuid.label('member_of'),
).select_from(
    sa.select(sa.literal_column('1').label('one')).subquery(),
).outerjoin(
    tables.aggregates, AGGREGATE.id == sa.bindparam('id'),
).outerjoin(
    tables.host_mappings, HOST.host == NAMED,
).outerjoin(
    tables.cell_mappings, IN_CELL,
).outerjoin(
    tables.aggregate_hosts, MEMBER.host == NAMED,
).outerjoin(
    OF_HOST, OF_HOST.c.id == MEMBER.aggregate_id)
AGGREGATES = sa.select(AGGREGATE.uuid, AGGREGATE.name)
EXISTING = AGGREGATES.where(AGGREGATE.uuid.in_(SOME))
MEMBERS = sa.select(MEMBER.host, AGGREGATE.uuid, AGGREGATE.name).join_from(
    tables.aggregate_hosts, tables.aggregates,
    AGGREGATE.id == MEMBER.aggregate_id)
ZONES = sa.select(AGGREGATE.uuid, METADATA.value).join_from(
    tables.aggregates, tables.aggregate_metadata,
    AGGREGATE.id == METADATA.aggregate_id,
).where(METADATA.key == 'availability_zone')
MEMBERS_OF = MEMBERS.where(MEMBER.host.in_(SOME))
MAPPED = sa.select(HOST.host, HOST.cell_id)
# One query instead of two: a row per membership of each mapped host.
HOSTS = sa.select(
    HOST.host, *cells.COLUMNS, MEMBER.host.label('member'),
    AGGREGATE.uuid.label('aggregate'),
    AGGREGATE.name.label('aggregate_name'),
).join_from(
    tables.host_mappings, tables.cell_mappings, IN_CELL,
).outerjoin(
    tables.aggregate_hosts, MEMBER.host == HOST.host,
).outerjoin(
    tables.aggregates, AGGREGATE.id == MEMBER.aggregate_id,
).where(HOST.host.in_(SOME))
# A node without a host was never completed by its nova-compute.
NODES = sa.select(NODE.uuid, NODE.host).where(
    NODE.deleted == 0, NODE.uuid.is_not(None), NODE.host.is_not(None))
NODES_OF = NODES.where(NODE.host.in_(SOME))
GALERA = sa.text('SHOW GLOBAL STATUS LIKE \'wsrep_cluster_size\'')
SYNC_WAIT = sa.text('SHOW GLOBAL VARIABLES LIKE \'wsrep_sync_wait\'')
THESE_NODES = NODES.where(NODE.uuid.in_(SOME))
