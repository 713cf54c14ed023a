# SPDX-License-Identifier: Apache-2.0
"""Commands of this package that messages and pages tell an operator to run."""

SYNC = 'nova-aggregate-mirror-manage placement sync_aggregates'
AUDIT = 'nova-aggregate-mirror-manage placement audit_servers'
DB_SYNC = 'nova-aggregate-mirror-manage db sync'
LIST = 'nova-aggregate-mirror-manage journal list'
BIND = 'nova-aggregate-mirror-manage journal bind'
