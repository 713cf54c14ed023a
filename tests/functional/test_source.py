# SPDX-License-Identifier: Apache-2.0
"""Reads from a real nova's databases, with two cells."""

import contextlib
import dataclasses
import sqlite3

from nova import context as nova_context
from nova.db.api import api as api_db
from nova import objects
from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.source import database
from nova_aggregate_mirror.source import host_database
from tests import fixtures
from tests import functional


class SourceTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.StockNova())
        self.source = database.DatabaseSource()
        self.zone = self.cloud.create_aggregate('zone', 'az1')
        self.other = self.cloud.create_aggregate('other')

    def host(self, name, *aggregates, **kwargs):
        host = self.cloud.create_host(name, providers=False, **kwargs)
        for aggregate in aggregates:
            self.cloud.nova.add_member(aggregate.uuid, name)
        return host


class TestRead(SourceTest):

    def test_every_kind_of_host(self):
        """A full read and a narrow one return the same."""
        zone, other = self.zone.uuid, self.other.uuid
        hosts = [(self.host('h1', self.zone, self.other, nodes=3),
                  {zone, other}),
                 (self.host('h2', self.other, cell='cell2'), {other}),
                 (self.host('h3'), set()),
                 (self.host('H1', self.other, cell='cell2', mapped=False),
                  {other})]
        self.host('lonely', self.zone, nodes=0)
        nova = self.source.read_all()
        for host, aggregates in hosts:
            self.assertEqual(dict.fromkeys(host.nodes, aggregates), {
                node: nova.wanted(node) for node in nova.nodes
                if nova.nodes[node] == host.name})
        self.assertEqual(({'H1'}, {'lonely'}),
                         (nova.unmapped, nova.nodeless()))
        self.assertEqual({zone: 'zone', other: 'other'}, nova.aggregates)
        self.assertEqual(nova.aggregates, self.source.aggregates())
        self.assertEqual(nova, self.source.read(
            ['h1', 'h2', 'h3', 'lonely', 'H1'], aggregates=[zone, other]))
        self.assertEqual(
            host_database.Scope(''), self.source.scope(4711, 'unknown'))

    def test_host_that_is_mapped_to_another_cell(self):
        """Its node is mirrored, and the host is reported."""
        host = self.host('h1', self.zone, cell='cell2', mapped=False)
        objects.HostMapping(
            nova_context.get_admin_context(), host='h1',
            cell_mapping=self.cloud.nova.cell('cell1')).create()
        nova = self.source.read_all()
        self.assertEqual({self.zone.uuid}, nova.wanted(host.nodes[0]))
        self.assertEqual(frozenset({'h1'}), nova.unmapped)
        self.assertIn('mapped to cell cell1 (', nova.obstacles['h1'][0])
        # While the cell does not answer, its node may be there as well.
        self.cloud.nova.break_cell('cell1')
        self.assertEqual(frozenset(), self.source.read_all().unmapped)

    def test_hosts_without_a_node(self):
        """One that has gone is told from one that may have a node."""
        self.host('idle', self.zone, nodes=0)
        self.host('gone', self.zone)
        with self.cloud.nova.in_cell('cell1') as context:
            objects.Service.get_by_compute_host(context, 'gone').destroy()
        nova = self.source.read_all()
        self.assertEqual({'idle', 'gone'}, nova.nodeless())
        self.assertIn('neither nova-compute nor', nova.obstacles['gone'][0])
        self.assertEqual('no compute node', nova.obstacles['idle'][0])
        # The one that has gone may be in a cell that does not answer.
        self.cloud.nova.break_cell('cell2')
        self.assertEqual({'idle'}, self.source.read_all().obstacles.keys())


class TestCells(SourceTest):

    def setUp(self):
        super().setUp()
        self.near = self.host('near', self.zone)
        self.far = self.host('far', self.zone, cell='cell2')
        self.homeless = self.host('homeless', self.zone, mapped=False)

    def assert_cell2_is_reported(self, nova):
        name, = nova.cells_down
        self.assertIn('cell2', name)
        self.assertEqual({self.near.nodes[0]}, set(nova.nodes))
        self.assertEqual({self.homeless.nodes[0]: {'homeless'}}, nova.unknown)
        self.assertEqual(dict.fromkeys(('far', 'homeless'), {name}),
                         nova.hosts_down)
        self.assertEqual(frozenset(), nova.nodeless())

    def test_dead_cell_is_reported_and_never_read_as_empty(self):
        """The state of its hosts is unknown, not "without compute nodes"."""
        self.cloud.nova.break_cell('cell2')
        self.assert_cell2_is_reported(self.source.read_all())
        self.assert_cell2_is_reported(
            self.source.read(['near', 'far', 'homeless']))
        for host in ('far', 'homeless'):
            place = self.source.scope(self.zone.id, host)
            self.assertEqual(self.zone.uuid, place.aggregate_uuid)
            self.assertIn('cell2', *place.cells_down)

    def test_dead_cell_does_not_matter_to_others(self):
        """A mapped host is read from its cell only, an aggregate of none."""
        self.cloud.nova.break_cell('cell2')
        nova = self.source.read(['near'], self.near.nodes)
        self.assertEqual({}, nova.cells_down)
        place = host_database.Scope(
            self.zone.uuid, frozenset(self.near.nodes),
            members=frozenset({self.zone.uuid}))
        self.assertEqual(place, self.source.scope(self.zone.id, 'near'))
        # Nova may not have the aggregate.
        self.assertEqual(dataclasses.replace(place, aggregate_uuid=''),
                         self.source.scope(4711, 'near'))
        nova = self.source.read((), aggregates=[self.zone.uuid])
        self.assertEqual({self.zone.uuid}, set(nova.aggregates))
        self.assertEqual({}, nova.cells_down)

    @testtools.skipIf(functional.GREEN, 'SQLite keeps all green threads '
                      'waiting, and no agent or command has them')
    def test_hung_cell_is_bounded_and_reported(self):
        """The other cells are read meanwhile."""
        with contextlib.closing(sqlite3.connect(
                self.cloud.nova.file('cell2'), isolation_level=None)) as other:
            other.execute('BEGIN EXCLUSIVE')
            nova = database.DatabaseSource(
                engines.Limits(2), threads=True).read_all()
            other.execute('ROLLBACK')
        self.assert_cell2_is_reported(nova)
        failure, = nova.cells_down.values()
        self.assertEqual('silent', failure.kind)

    def test_cell_that_was_added_meanwhile_is_read(self):
        """Nova itself would need a restart."""
        self.source.read_all()
        mapping = self.cloud.nova.cell('cell2')
        objects.HostMapping.get_by_host(
            nova_context.get_admin_context(), 'far').destroy()
        connection = mapping.database_connection
        mapping.destroy()
        self.assertNotIn(self.far.nodes[0], self.source.read_all().nodes)
        objects.CellMapping(
            nova_context.get_admin_context(), name='added',
            uuid=uuidutils.generate_uuid(), transport_url='fake:/',
            database_connection=connection).create()
        self.assertIn(self.far.nodes[0], self.source.read_all().nodes)

    def test_api_database_that_is_unavailable(self):
        """It is an error, never an empty result."""
        with api_db.get_engine().begin() as connection:
            connection.exec_driver_sql('DROP TABLE aggregate_hosts')
            connection.exec_driver_sql('DROP TABLE aggregates')
            connection.exec_driver_sql('DROP TABLE cell_mappings')
        for call in (self.source.read_all, self.source.aggregates,
                     self.source.cell_mappings,
                     lambda: self.source.read(['near']),
                     lambda: self.source.scope(1, 'near')):
            self.assertRaises(exceptions.NovaUnavailable, call)
