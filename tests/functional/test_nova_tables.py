# SPDX-License-Identifier: Apache-2.0
"""The package's declarations of nova's tables, compared with nova's own."""

from nova.db.api import models as api_models
from nova.db.main import models as main_models
import sqlalchemy as sa
import testtools

from nova_aggregate_mirror.source import database
from nova_aggregate_mirror.source import database_servers
from nova_aggregate_mirror.source import metadata
from nova_aggregate_mirror.source import statements

MODELS = {
    'aggregates': api_models.Aggregate,
    'aggregate_hosts': api_models.AggregateHost,
    'aggregate_metadata': api_models.AggregateMetadata,
    'host_mappings': api_models.HostMapping,
    'cell_mappings': api_models.CellMapping,
    'compute_nodes': main_models.ComputeNode,
    'flavor_extra_specs': api_models.FlavorExtraSpecs,
    'instance_groups': api_models.InstanceGroup,
    'instances': main_models.Instance,
    'migrations': main_models.Migration,
    'build_requests': api_models.BuildRequest,
    'instance_mappings': api_models.InstanceMapping,
    'request_specs': api_models.RequestSpec,
    'services': main_models.Service,
}
DECLARATIONS = (vars(statements) | vars(database) | vars(metadata)
                | vars(database_servers))
TABLES = {name: table for name, table in DECLARATIONS.items()
          if isinstance(table, sa.sql.TableClause)}
"""The package's declarations, by name."""


class TestTables(testtools.TestCase):

    def test_nova_has_them(self):
        """Nova has each declared table and column."""
        self.assertEqual(MODELS.keys(), TABLES.keys())
        for name, table in TABLES.items():
            theirs = MODELS[name].__table__
            self.assertEqual(theirs.name, table.name)
            for column in table.c:
                self.assertIn(column.name, theirs.c)
