# SPDX-License-Identifier: Apache-2.0
"""Every statement about nova's databases, on each kind of server.

Table-by-table conversions, and new defaults of MariaDB, leave databases whose
columns have different collations. MySQL does not compare such columns.
"""

import datetime
import json
import warnings

from nova.conf import CONF
from oslo_config import fixture as config_fixture
import sqlalchemy as sa
import testscenarios
import testtools

from nova_aggregate_mirror.audit import readers
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.source import database
from nova_aggregate_mirror.source import host_database
from nova_aggregate_mirror.source import keyed_aggregates
from nova_aggregate_mirror.source import metadata
from tests import databases
from tests.functional import test_nova_tables
from tests import patience

AGGREGATE, OTHER, CELL, NODE, SERVER = (
    '%08d-0f4c-4a34-b5cc-09e6d5cc4b6c' % number for number in range(5))
NOW = datetime.datetime(2026, 1, 1)
COLLATION = 'CHARACTER SET utf8mb3 COLLATE utf8mb3_unicode_ci'
PINNED = json.dumps({'availability_zone': 'a_1', 'num_instances': 1})
ROWS = {
    'aggregates': [{'id': 1, 'uuid': AGGREGATE, 'name': 'zone'},
                   {'id': 2, 'uuid': OTHER, 'name': 'rack'}],
    'aggregate_hosts': [{'aggregate_id': 1, 'host': 'h1', 'created_at': NOW},
                        {'aggregate_id': 2, 'host': 'h1', 'created_at': NOW}],
    'aggregate_metadata': [
        {'aggregate_id': 1, 'key': 'availability_zone', 'value': 'az1',
         'created_at': NOW},
        {'aggregate_id': 2, 'key': 'availability_zone', 'value': 'az2',
         'created_at': NOW},
        {'aggregate_id': 2, 'key': 'Availability_Zone', 'value': 'az3',
         'created_at': NOW}],
    'host_mappings': [{'host': 'h1', 'cell_id': 1}],
    'compute_nodes': [{'uuid': NODE.upper(), 'host': 'h1', 'deleted': 0}],
    'instances': [{
        'id': 1, 'uuid': SERVER, 'display_name': 'server', 'host': 'h1',
        'project_id': 'tenant', 'vm_state': 'active', 'hidden': False,
        'launched_at': NOW, 'deleted': 0}],
    'migrations': [{
        'id': 1, 'instance_uuid': SERVER, 'status': 'finished',
        'migration_type': 'resize', 'source_compute': 'h0',
        'dest_compute': 'h1', 'updated_at': NOW, 'deleted': 0}],
    'services': [{'host': 'h2', 'binary': 'nova-compute', 'deleted': 0},
                 {'host': 'h3', 'binary': 'nova-conductor', 'deleted': 0}],
    'flavor_extra_specs': [{'key': 'ssd'}, {'key': 'SSD'}],
    'instance_mappings': [
        {'instance_uuid': SERVER, 'queued_for_delete': False},
        {'instance_uuid': OTHER, 'queued_for_delete': True}],
    'request_specs': [
        {'id': number, 'instance_uuid': uuid, 'spec': PINNED}
        for number, uuid in enumerate((SERVER, OTHER))],
}


class TestStatements(testscenarios.WithScenarios, testtools.TestCase):

    scenarios = databases.SCENARIOS

    def setUp(self):
        super().setUp()
        self.url = databases.create(self, self.kind)
        schema = sa.MetaData()
        for table in test_nova_tables.TABLES.values():
            for column in table.c:
                kind = (sa.String(255) if isinstance(column.type, sa.String)
                        else column.type)
                sa.Table(table.name, schema, sa.Column(column.name, kind),
                         extend_existing=True)
        engine = sa.create_engine(self.url, poolclass=sa.pool.NullPool)
        schema.create_all(engine)
        with engine.begin() as connection:
            for name, rows in {**ROWS, 'cell_mappings': [{
                    'id': 1, 'uuid': CELL, 'name': 'cell1',
                    'database_connection': self.url}]}.items():
                connection.execute(schema.tables[name].insert(), rows)
        conf = self.useFixture(config_fixture.Config(CONF)).conf
        conf.set_override('connection', self.url, 'api_database')

    def read_everything(self):
        """Call each reader, with warnings as errors."""
        with warnings.catch_warnings():
            warnings.simplefilter('error', sa.exc.SAWarning)
            nova = database.DatabaseSource()
            self.assertEqual(
                host_database.Scope(
                    AGGREGATE, frozenset({NODE}), {},
                    frozenset({AGGREGATE, OTHER})),
                nova.scope(1, 'h1'))
            self.assertEqual(host_database.Scope(''), nova.scope(0))
            whole = nova.read_all()
            self.assertEqual({NODE: 'h1'}, whole.nodes)
            self.assertEqual({'h1': {AGGREGATE, OTHER}}, whole.members)
            for truth in (nova.read(['h1'], aggregates=[AGGREGATE]),
                          nova.read([], [NODE]),
                          nova.read([], [NODE], (), {})):
                self.assertEqual(whole, truth)
            self.assertEqual({AGGREGATE: 'zone', OTHER: 'rack'},
                             nova.aggregates())
            self.assertEqual({AGGREGATE, OTHER}, nova.with_hosts())
            self.assertEqual({AGGREGATE: 'az1', OTHER: 'az2'}, nova.zones())
            self.assertEqual({CELL}, set(nova.cell_mappings()))
            self.read_members_without_nodes(nova)
            nova.galera()
            keys = keyed_aggregates.Keys(frozenset({'availability_zone'}))
            self.assertEqual({AGGREGATE, OTHER}, set(
                metadata.MetadataSource().read(keys)))
            self.assertEqual(
                {frozenset({AGGREGATE, OTHER})},
                metadata.MetadataSource().overlaps({AGGREGATE}))
            self.assertEqual({AGGREGATE}, metadata.MetadataSource().known(
                [AGGREGATE]))
            self.assertEqual({AGGREGATE: 'zone', OTHER: 'rack'},
                             metadata.read_all().names)
            (placed, requests), _last = readers.ServerPages(
                engines.Limits(patience.seconds(60))).pages()
            self.assertEqual('resize', placed[0].moved)
            self.assertEqual({SERVER: PINNED}, requests)
            self.assertEqual({'ssd', 'SSD'}, metadata.extra_specs())
            # One was deleted, and nova has not removed its request.
            self.assertEqual(1, readers.count_pinned('a_1'))
            for zone in 'ab1', 'A_1':
                self.assertEqual(0, readers.count_pinned(zone))

    def read_members_without_nodes(self, nova):
        """Of another spelling, without a mapping, and without a service."""
        databases.execute(self.url, *(
            'INSERT INTO aggregate_hosts (aggregate_id, host) VALUES '
            '(1, \'%s\')' % host for host in ('H1', 'h2', 'h3')))
        texts = [text for text, _step in nova.read_all().obstacles.values()]
        self.assertEqual(
            ['nova has this member as host h1' if self.kind == 'mysql'
             else texts[2], 'no host mapping'], texts[:2])
        databases.execute(
            self.url, 'DELETE FROM aggregate_hosts WHERE created_at IS NULL')

    def test_every_statement(self):
        """It is executed without a warning, and finds nova's spelling."""
        self.read_everything()

    def test_each_column_with_another_collation(self):
        """No column that is read is compared with another one."""
        if self.kind != 'mysql':
            self.skipTest('only MySQL and MariaDB refuse such a comparison')
        for table in test_nova_tables.TABLES.values():
            for column in table.c:
                if not isinstance(column.type, sa.String):
                    continue
                change = 'ALTER TABLE %s MODIFY `%s` VARCHAR(255) ' % (
                    table.name, column.name)
                databases.execute(self.url, change + COLLATION)
                self.read_everything()
                databases.execute(
                    self.url, change + 'CHARACTER SET utf8mb3 COLLATE '
                    'utf8mb3_general_ci')
