# SPDX-License-Identifier: Apache-2.0
"""Columns of nova's tables of servers, as ``nova_tables`` has those of hosts.
"""

import sqlalchemy as sa

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
build_requests = sa.table(
    'build_requests', sa.column('instance_uuid', sa.String))
request_specs = sa.table(
    'request_specs', sa.column('instance_uuid', sa.String),
    sa.column('spec', sa.Text))
