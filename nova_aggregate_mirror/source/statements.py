# SPDX-License-Identifier: Apache-2.0
"""SQL statements on hosts and aggregates."""

from typing import Any

import sqlalchemy as sa

from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.source import cells
from nova_aggregate_mirror.source import nova_tables

# Statements are built once, because building takes longer than executing.
AGGREGATE, MEMBER = nova_tables.aggregates.c, nova_tables.aggregate_hosts.c
METADATA = nova_tables.aggregate_metadata.c
SERVICE = nova_tables.services.c
HOST, NODE = nova_tables.host_mappings.c, nova_tables.compute_nodes.c
NAMED: 'sa.BindParameter[Any]' = sa.bindparam('host')
NOTHING = sa.null()
ZONE = 'availability_zone'
# The columns of two tables may have different collations, which MySQL does
# not compare: no column is compared with one of another table.
IN_AGGREGATE = AGGREGATE.id == MEMBER.aggregate_id
# What names an aggregate whose UUID is none.
_AGGREGATE = (AGGREGATE.id, AGGREGATE.uuid, AGGREGATE.name)
# Parts of one query instead of several: host mappings and memberships.
_MAPPINGS = sa.select(
    HOST.host, *cells.COLUMNS, NOTHING.label('member'),
    NOTHING.label('aggregate_id'), NOTHING.label('aggregate'),
    NOTHING.label('aggregate_name'),
).join_from(nova_tables.host_mappings, nova_tables.cell_mappings,
            nova_tables.cell_mappings.c.id == HOST.cell_id)
_NO_MAPPING = (NOTHING,) * (1 + len(cells.COLUMNS))
_MEMBERSHIPS = sa.select(
    *_NO_MAPPING, MEMBER.host, *_AGGREGATE,
).join_from(nova_tables.aggregate_hosts, nova_tables.aggregates, IN_AGGREGATE)
# With the aggregate itself, which may have no member.
SCOPE = sa.union_all(
    _MAPPINGS.where(HOST.host == NAMED),
    _MEMBERSHIPS.where(MEMBER.host == NAMED),
    sa.select(*_NO_MAPPING, NOTHING, *_AGGREGATE).where(
        AGGREGATE.id == sa.bindparam('id')))
HOSTS = sa.union_all(
    _MAPPINGS.where(HOST.host.in_(engines.SOME)),
    _MEMBERSHIPS.where(MEMBER.host.in_(engines.SOME)))
AGGREGATES = sa.select(*_AGGREGATE)
EXISTING = sa.select(AGGREGATE.uuid, AGGREGATE.name).where(
    AGGREGATE.uuid.in_(engines.SOME))
# A membership without a host is nobody's.
MEMBERS = sa.select(MEMBER.host, *_AGGREGATE).join_from(
    nova_tables.aggregate_hosts, nova_tables.aggregates, IN_AGGREGATE,
).where(MEMBER.host.is_not(None))
USED = sa.select(AGGREGATE.uuid).distinct().join_from(
    nova_tables.aggregate_hosts, nova_tables.aggregates, IN_AGGREGATE)
ZONES = sa.select(AGGREGATE.uuid, METADATA.key, METADATA.value).join_from(
    nova_tables.aggregates, nova_tables.aggregate_metadata,
    AGGREGATE.id == METADATA.aggregate_id,
).where(METADATA.key == ZONE)
MAPPED = sa.select(HOST.host, HOST.cell_id)
# Those that the database finds in each case.
SPELLINGS = sa.select(HOST.host).where(
    sa.func.lower(HOST.host) == sa.func.upper(HOST.host))
# A node without a host was never completed by its nova-compute.
NODES = sa.select(NODE.uuid, NODE.host).where(
    NODE.deleted == 0, NODE.host.is_not(None))
NODES_OF = NODES.where(NODE.host.in_(engines.SOME))
NAMED_NODES = NODES.with_only_columns(NODE.hypervisor_hostname, NODE.host)
SERVICES = sa.select(NOTHING, SERVICE.host).where(
    SERVICE.binary == 'nova-compute', SERVICE.deleted == 0,
    SERVICE.host.is_not(None))
GALERA = sa.text('SHOW GLOBAL STATUS LIKE \'wsrep_cluster_size\'')
SYNC_WAIT = sa.text('SHOW GLOBAL VARIABLES LIKE \'wsrep_sync_wait\'')
# Nova keeps the spelling that it was given: upper case, or without hyphens.
SPELLED = sa.func.lower(sa.func.replace(NODE.uuid, '-', '')).in_(engines.SOME)
THESE_NODES = NODES.where(SPELLED)
NODE_NAMES = sa.select(NODE.uuid, NODE.hypervisor_hostname).where(
    NODE.deleted == 0, NODE.hypervisor_hostname.is_not(None), SPELLED)


def spelled(node: str) -> str:
    """Return the spelling of a compute node's UUID that is compared."""
    return node.replace('-', '').lower()
