# SPDX-License-Identifier: Apache-2.0
"""Columns of nova's tables of aggregates and hosts that this package reads.

They replace nova's models, because importing those takes longer than a full
sync of a thousand hosts. A test compares them with the models.
"""

import sqlalchemy as sa

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
    sa.column('name', sa.String),
    sa.column('database_connection', sa.Text))
compute_nodes = sa.table(
    'compute_nodes', sa.column('uuid', sa.String),
    sa.column('host', sa.String),
    sa.column('hypervisor_hostname', sa.String),
    sa.column('deleted', sa.Integer))
flavor_extra_specs = sa.table(
    'flavor_extra_specs', sa.column('key', sa.String))
services = sa.table(
    'services', sa.column('host', sa.String),
    # MariaDB reserves the word.
    sa.column(sa.sql.quoted_name('binary', quote=True), sa.String),
    sa.column('deleted', sa.Integer))
