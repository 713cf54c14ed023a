# SPDX-License-Identifier: Apache-2.0
"""A row of nova that is odd in one column, beside hosts that are healthy.

Nova's schema allows NULL in many columns, and any text in most.
"""

import contextlib
import datetime
import json

import fixtures as base_fixtures
from nova.db.api import api as api_db
from nova import objects
from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios
from testtools import content

from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import readers
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import aggregate_metadata
from nova_aggregate_mirror.checks import journal as journal_checks
from nova_aggregate_mirror.checks import nova as nova_checks
from nova_aggregate_mirror.checks import placement as placement_checks
from nova_aggregate_mirror.console import syncs
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror import hooks
from nova_aggregate_mirror.hooks import mirror
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.source import database_servers
from nova_aggregate_mirror.source import keyed_aggregates
from nova_aggregate_mirror.source import metadata
from tests import fixtures
from tests.functional import test_nova_tables
from tests.functional import test_source
from tests import nova_server
from tests import nova_service

CONF = nova_service.CONF
NOW = datetime.datetime(2026, 1, 1)
NODE, SERVER, UUID = (uuidutils.generate_uuid() for _uuid in range(3))
ODD_ID = 77
ROWS = {
    'aggregates': {'id': ODD_ID, 'uuid': UUID, 'name': 'odd'},
    'aggregate_hosts': {'aggregate_id': ODD_ID, 'host': 'h2',
                        'created_at': NOW},
    'aggregate_metadata': {
        'aggregate_id': ODD_ID, 'key': 'trait:CUSTOM_ODD', 'value': 'required',
        'created_at': NOW, 'updated_at': NOW},
    'host_mappings': {'host': 'odd', 'cell_id': 2},
    'cell_mappings': {'id': ODD_ID, 'uuid': UUID, 'name': 'odd',
                      'database_connection': 'sqlite://'},
    'compute_nodes': {'uuid': NODE, 'host': 'h2', 'deleted': 0,
                      'hypervisor_hostname': 'odd'},
    'services': {'host': 'odd', 'binary': 'nova-compute', 'deleted': 0},
    'flavor_extra_specs': {'key': 'odd'},
    'instance_groups': {'uuid': UUID, 'name': 'odd'},
    'instances': {
        'id': ODD_ID, 'uuid': SERVER, 'display_name': 'odd', 'host': 'h1',
        'project_id': 'odd', 'vm_state': 'active', 'task_state': 'resized',
        'hidden': False, 'launched_at': NOW, 'deleted': 0},
    'migrations': {
        'id': ODD_ID, 'uuid': UUID, 'instance_uuid': SERVER, 'status': 'done',
        'migration_type': 'evacuation', 'source_compute': 'h2',
        'dest_compute': 'h1', 'updated_at': NOW, 'deleted': 0},
    'build_requests': {'instance_uuid': UUID},
    'instance_mappings': {'instance_uuid': UUID, 'queued_for_delete': False},
    'request_specs': {'id': ODD_ID, 'instance_uuid': SERVER, 'spec': '{}'},
}
"""A row of each table, with a value in each column that is read."""

BESIDE = {
    'aggregates': ('aggregate_hosts', 'aggregate_metadata'),
    'aggregate_hosts': ('aggregates',), 'aggregate_metadata': ('aggregates',),
    'compute_nodes': ('aggregates', 'aggregate_hosts'),
    'migrations': ('instances',), 'request_specs': ('instances',),
    'instances': ('request_specs', 'migrations')}
"""Tables to the other tables whose rows belong to their row."""

OF_SERVERS = {
    'instances', 'migrations', 'build_requests', 'instance_mappings',
    'request_specs', 'instance_groups'}
"""Tables that are read about servers only."""

NAMED = {('aggregates', 'uuid'), ('cell_mappings', 'database_connection'),
         ('compute_nodes', 'uuid')}
"""Columns without which a part of nova cannot be mirrored."""


def odd_values(column, healthy):
    """Yield what nova's schema allows and nobody expects."""
    if column.nullable:
        yield None
    if isinstance(column.type, sa.String):
        # As long as the column: controls, and what ends a text elsewhere.
        length = column.type.length or 255
        yield from ('', '   ', ('\x1b[2J\r\n\'",;%&' * length)[:length])
        if healthy.upper() != healthy:
            yield healthy.upper()


class TestOddColumns(testscenarios.WithScenarios, test_source.SourceTest):

    scenarios = [(table, {'table': table})
                 for table in test_nova_tables.MODELS]

    def setUp(self):
        super().setUp()
        self.useFixture(base_fixtures.WarningsFilter(
            [{'action': 'ignore', 'category': FutureWarning}]))
        objects.register_all()
        self.useFixture(fixtures.MirroredNova())
        self.hosts = {name: self.cloud.create_host(name, providers=True)
                      for name in ('h1', 'h2', 'h3')}
        self.cloud.nova.add_member(self.zone.uuid, 'h1')
        self.agent = fixtures.Agent()
        self.hook = mirror.Mirror(CONF)
        server = self.useFixture(nova_server.NovaServer(self.cloud.nova))
        self.api = nova_server.source(server.url)
        with api_db.get_engine().connect() as connection:
            url = connection.scalar(sa.text(
                "SELECT database_connection FROM cell_mappings "
                "WHERE name = 'cell1'"))
        self.cell = sa.create_engine(url, poolclass=sa.pool.NullPool)

    @contextlib.contextmanager
    def row(self, table, **values):
        """Insert the row of a table, with other values in some columns."""
        theirs = test_nova_tables.MODELS[table].__table__
        cell = test_nova_tables.main_models.BASE.metadata
        engine = self.cell if theirs.metadata is cell else api_db.get_engine()
        required = {
            column.name: _filling(column) for column in theirs.c
            if not column.nullable and not column.primary_key
            and column.default is None}
        with engine.begin() as connection:
            ids = connection.execute(sa.insert(theirs), {
                **required, **ROWS[table], **values}).inserted_primary_key
        try:
            yield
        finally:
            with engine.begin() as connection:
                connection.execute(sa.delete(theirs).where(
                    list(theirs.primary_key)[0] == ids[0]))

    def test_each_column(self):
        """Whatever it has: healthy hosts are repaired, nothing raises.

        A column that this package reads is walked here or has no odd value.
        """
        ours = test_nova_tables.TABLES[self.table]
        self.assertEqual({column.name for column in ours.c},
                         set(ROWS[self.table]))
        columns = test_nova_tables.MODELS[self.table].__table__.c
        with contextlib.ExitStack() as stack:
            for table in BESIDE.get(self.table, ()):
                stack.enter_context(self.row(table))
            for name, healthy in ROWS[self.table].items():
                for value in odd_values(columns[name], healthy):
                    with self.row(self.table, **{name: value}):
                        self.check(name, value)

    def check(self, column, value):
        """Let everything act beside a row with this value in this column."""
        where = '%s.%s = %r' % (self.table, column, value)
        self.addDetail('odd', content.text_content(where))
        problems = self.sync()
        if (self.table, column) in NAMED and (
                not uuidutils.is_uuid_like(value)):
            self.assertNotEqual([], problems)
        self.audit()
        self.scheduler()
        if self.table in OF_SERVERS:
            self.servers()
            return
        self.add_host()
        self.checks()
        self.client()

    def placed(self, host):
        return self.cloud.placement.aggregates(self.hosts[host].nodes[0])

    def place(self, host, *uuids):
        self.cloud.placement.set_aggregates(self.hosts[host].nodes[0], uuids)

    def sync(self):
        """Run a full sync; return its problems."""
        if self.table == 'services':
            # They are read if a member has no compute node.
            with self.row('aggregate_hosts', aggregate_id=self.other.id,
                          host='gone'):
                self.assertEqual(
                    {'gone'}, self.source.read_all().obstacles.keys())
        self.place('h1')
        judged = self.agent.sync()
        self.assertEqual({self.zone.uuid}, self.placed('h1'))
        json.dumps(syncs.document(judged))
        self.assertNotEqual('failure', judged.judgement)
        self.assertNotEqual('', judged.summary())
        return judged.lines()

    def add_host(self):
        """Let nova add a healthy host to an aggregate, and remove it."""
        members = test_nova_tables.MODELS['aggregate_hosts'].__table__
        for method, change, expected in (
                ('add_host_to_aggregate', sa.insert(members).values(
                    aggregate_id=self.other.id, host='h3'),
                 {self.other.uuid}),
                ('remove_host_from_aggregate', sa.delete(members).where(
                    members.c.host == 'h3'), set())):
            operation = hooks.Operation(method, self.other.id, 'h3', 'req')
            state = self.hook.before(operation)
            with api_db.get_engine().begin() as connection:
                connection.execute(change)
            self.hook.after(operation, state)
            self.assertEqual(expected, self.placed('h3'))
        self.assertEqual([], self.agent.journal.rows.all())

    def checks(self):
        """Run the checks that read nova; one is a dry run."""
        self.place('h1')
        deployment = checks.Deployment(CONF, lambda: self.source)
        self.assertIn('h1', ' '.join(
            finding.text for finding in placement_checks.drift(deployment)))
        for check in (nova_checks.database, journal_checks.ownership,
                      aggregate_metadata.zones, aggregate_metadata.ratios,
                      aggregate_metadata.isolation,
                      aggregate_metadata.unread_keys):
            check(deployment)

    def audit(self):
        """Audit all servers, by all rules of aggregates."""
        audited = readers.DatabaseAudit(
            CONF, client.Client(CONF), [
                name for name in rules.NAMES if name != 'segment'])
        for page in filter(None, audited.run()):
            auditor.table(page)
            json.dumps(list(map(auditor.row, page)))

    def servers(self):
        """Read what an explanation shows of servers and migrations."""
        servers = database_servers.DatabaseServers(engines.Limits(60.0))
        servers.consumers([SERVER, UUID])
        servers.servers_named('odd')
        servers.groups_named('odd')
        readers.count_pinned('nova')
        self.source.node_names([NODE])

    def scheduler(self):
        """Read what nova-scheduler reads; it cannot start beside some rows."""
        keys = keyed_aggregates.Keys(prefixes=frozenset({'trait:', 'odd'}))
        metadata.MetadataSource().overlaps(
            metadata.MetadataSource().read(keys))
        try:
            host_states.HostManager()
        except exceptions.NovaUnavailable as exc:
            self.assertIn('cannot read a row', str(exc))

    def client(self):
        """Compare by the compute API; nova-api fails beside some rows."""
        with contextlib.suppress(exceptions.NovaUnavailable):
            nova = self.api.read_all()
            self.assertIn('h1', nova.members)
            self.api.node_names(nova.nodes)


def _filling(column):
    """Return a value for a column that is required and not read here."""
    if isinstance(column.type, sa.Boolean):
        return False
    if isinstance(column.type, (sa.Integer, sa.Float)):
        return 0
    return NOW if isinstance(column.type, sa.DateTime) else '{}'
