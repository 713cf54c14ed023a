# SPDX-License-Identifier: Apache-2.0
"""Columns of nova's tables that this package reads.

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
instance_groups = sa.table(
    'instance_groups', sa.column('uuid', sa.String),
    sa.column('name', sa.String))
instances = sa.table(
    'instances', sa.column('id', sa.Integer), sa.column('uuid', sa.String),
    sa.column('display_name', sa.String), sa.column('host', sa.String),
    sa.column('project_id', sa.String), sa.column('vm_state', sa.String),
    sa.column('task_state', sa.String), sa.column('hidden', sa.Boolean),
    sa.column('launched_at', sa.DateTime), sa.column('deleted', sa.Integer))
migrations = sa.table(
    'migrations', sa.column('id', sa.Integer), sa.column('uuid', sa.String),
    sa.column('instance_uuid', sa.String), sa.column('status', sa.String),
    sa.column('migration_type', sa.String),
    sa.column('source_compute', sa.String),
    sa.column('dest_compute', sa.String),
    sa.column('updated_at', sa.DateTime), sa.column('deleted', sa.Integer))
services = sa.table(
    'services', sa.column('host', sa.String),
    # MariaDB reserves the word.
    sa.column(sa.sql.quoted_name('binary', quote=True), sa.String),
    sa.column('deleted', sa.Integer))
build_requests = sa.table(
    'build_requests', sa.column('instance_uuid', sa.String))
instance_mappings = sa.table(
    'instance_mappings', sa.column('instance_uuid', sa.String),
    sa.column('queued_for_delete', sa.Boolean))
request_specs = sa.table(
    'request_specs', sa.column('id', sa.Integer),
    sa.column('instance_uuid', sa.String), sa.column('spec', sa.Text))
