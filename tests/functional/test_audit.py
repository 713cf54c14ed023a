# SPDX-License-Identifier: Apache-2.0
"""Servers on the wrong host in a complete nova, as the audit finds them."""

from nova.api.openstack import api_version_request as compute_api
from nova.conf import CONF
from nova.tests.functional.api import client

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import readers
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.scheduler import moving
from tests.scheduling import explaining

ZONE, OTHER = 'az-1', 'az-2'
UNPINS = compute_api.max_api_version() >= compute_api.APIVersionRequest(
    moving.UNPIN_VERSION)
LATE = 4102444800.0
"""A time after everything here, in 2100."""


class AuditTest(explaining.ExplainingTest):

    hosts = ('first', 'second', 'third')

    def audit(self, rules=(), past=(), zone='', **chosen):
        """Return each misplacement; the totals are in ``totals``."""
        auditing = readers.DatabaseAudit(
            CONF, explaining.Placement(), rules, past, zone, UNPINS)
        pages = list(auditing.run(**chosen))
        self.source, self.totals = auditing.source, auditing.totals
        return [misplacement for page in pages for misplacement in page]

    def pin(self, server, zone):
        """Do what the openstack client does; None unpins the server."""
        self.admin_api.api_put('/servers/' + server['id'], {
            'server': {'pinned_availability_zone': zone}})

    def misplacement(self, server, **options):
        """Audit, and return the only misplacement, which is of a server."""
        [misplacement] = self.audit(**options)
        self.assertEqual(server['id'], misplacement.server.uuid)
        return misplacement


class TestZones(AuditTest):
    """Two zones and a host that is in none."""

    def setUp(self):
        super().setUp()
        self.east = self.aggregate('east', ['first'], availability_zone=ZONE)
        self.west = self.aggregate('west', ['second'], availability_zone=OTHER)
        self.wanted = self.flavor()

    def test_drift(self):
        """Placement has a host in the zone, and nova has not: stock's fault.

        Since nova 28 placement alone decides, and the server is created there.
        """
        self.set_aggregates('first')
        self.set_aggregates('third', self.uuid(self.east))
        server = self.boot(flavor_id=self.wanted, az=ZONE)
        self.assertEqual('third', server['OS-EXT-SRV-ATTR:host'])
        found = self.misplacement(server)
        self.assertEqual(
            ('zone', 'zone az-1', 'no zone', 'third', audit.UNKNOWN, None),
            (found.rule, found.requested, found.actual,
             found.server.host,
             found.cause.kind, found.cause.since))
        arrived = found.server.arrived
        drift = [
            full_syncs.Entry('agent', 'ctl', arrived + 5, arrived + 6, 1.0,
                             added=1, removed=1),
            full_syncs.Entry('agent', 'ctl', arrived - 6, arrived - 5, 1.0)]
        found = self.misplacement(server, past=drift)
        self.assertEqual((audit.DRIFT, arrived),
                         (found.cause.kind, found.cause.since))
        self.assertIn('repaired 2 associations', found.cause.text)
        # A sync before it found no difference, and nothing is known after it.
        self.assertEqual(audit.UNKNOWN, self.misplacement(
            server, past=drift[1:]).cause.kind)

    def test_step_is_followed(self):
        """The command moves the server into its zone."""
        self.test_drift()
        self.set_aggregates('first', self.uuid(self.east))
        self.set_aggregates('third')
        [found] = self.audit()
        self.assertEqual('openstack server migrate --live-migration %s'
                         % found.server.uuid, found.step)
        self.admin_api.post_server_action(found.server.uuid, {
            'os-migrateLive': {'host': None, 'block_migration': 'auto'}})
        self.become({'id': found.server.uuid},
                    **{'OS-EXT-SRV-ATTR:host': 'first'})
        self.assertEqual([], self.audit())
        self.assertEqual((1, 0), (self.totals.servers, self.totals.misplaced))

    def test_host_that_changed_its_zone(self):
        """Nova refuses that for a host with servers, but not by metadata."""
        server = self.boot(flavor_id=self.wanted, az=ZONE)
        for column in 'launched_at', 'created_at':
            self.set_column(server, column, "'2026-01-01 00:00:00'")
        number = self.aggregate('empty', availability_zone=OTHER)
        self.assertEqual([], self.audit())
        with explaining.api_db.get_engine().begin() as connection:
            connection.exec_driver_sql(
                'UPDATE aggregate_hosts SET aggregate_id = %d, created_at = '
                '\'2100-01-01 00:00:00\' WHERE host = \'first\'' % number)
        found = self.misplacement(server)
        self.assertEqual(
            ('zone az-2', audit.CHANGED, LATE),
            (found.actual, found.cause.kind, found.cause.since))
        self.assertIn('the host was added to empty (', found.cause.text)
        if not UNPINS:
            self.skipTest('the compute API pins no server to its zone')
        for pinned in None, found.zone:
            self.pin(server, pinned)
        self.assertEqual([], self.audit())

    def test_forced_host(self):
        """A forced host skips the filters, but the zone is that of a host."""
        server = self.boot(flavor_id=self.wanted, az='az-1:first')
        self.assertEqual([], self.audit())
        self.flags(request_filters=[], group='aggregate_mirror')
        self.admin_api.post_aggregate_action(self.east, {
            'set_metadata': {'metadata': {'filter_tenant_id': 'others'}}})
        self.set_column(server, 'launched_at', "'2100-01-01 00:00:00'")
        found = self.misplacement(server, rules=['tenant_isolation'])
        self.assertEqual((audit.FORCED, LATE),
                         (found.cause.kind, found.cause.since))

    def test_which_servers(self):
        """By zone of the request or host, by host, by project."""
        self.set_aggregates('first')
        self.set_aggregates('third', self.uuid(self.east))
        self.boot(flavor_id=self.wanted, az=ZONE)
        self.boot(flavor_id=self.wanted, az=OTHER)
        for chosen, servers_, misplaced in (
                ({}, 2, 1), ({'zone': ZONE}, 1, 1), ({'zone': OTHER}, 1, 0),
                ({'hosts': ['third']}, 1, 1), ({'hosts': ['second']}, 1, 0),
                ({'project': 'another'}, 0, 0),
                ({'project': self.admin_api.project_id}, 2, 1)):
            self.audit(**chosen)
            self.assertEqual((servers_, misplaced), (
                self.totals.servers, self.totals.misplaced), chosen)

    def test_servers_that_are_not_compared(self):
        """A hidden one of a resize to another cell, and a deleted one.

        A server that is resized has the new flavor and still the old host.
        """
        self.set_aggregates('first')
        self.set_aggregates('third', self.uuid(self.east))
        server = self.boot(flavor_id=self.wanted, az=ZONE)
        self.misplacement(server)
        for column, value in (('hidden', 1), ('vm_state', "'soft-delete'"),
                              ('task_state', "'resize_migrating'")):
            before = self.set_column(server, column, value)
            self.assertEqual([], self.audit(), column)
            self.set_column(server, column, before)
        for column in ('hidden', 'vm_state', 'task_state', 'launched_at'):
            self.set_column(server, column, 'NULL')
        self.misplacement(server)

    def set_column(self, server, column, value):
        """Change a value in nova's database; return the one before."""
        engine = self.targeted().db_connection.writer.get_engine()
        with engine.begin() as cell:
            where = 'WHERE uuid = \'%s\'' % server['id']
            before = cell.exec_driver_sql(
                'SELECT %s FROM instances %s' % (column, where)).scalar()
            cell.exec_driver_sql('UPDATE instances SET %s = %s %s' % (
                column, value, where))
        return 'NULL' if before is None else repr(before)

    def test_server_that_is_pinned_to_the_default_zone(self):
        """Nova refuses to unshelve it on a host of a zone, until unpinned."""
        server = self.boot(flavor_id=self.wanted, az='nova')
        self.assertEqual([], self.audit())
        [found] = self.audit(rules=['default_zone'])
        self.assertEqual(
            (server['id'], audit.REQUESTED, 'zone nova'),
            (found.server.uuid, found.cause.kind, found.requested))
        self.assertEqual(1, readers.count_pinned('nova'))
        self._shelve_server(server, 'SHELVED_OFFLOADED')
        self.assertRaises(client.OpenStackApiException, self.unshelve, server)
        if UNPINS:
            self.assertIn('server unset --pinned-avail', found.step)
            self.pin(server, None)
            self.unshelve(server)
        else:
            self.assertIn('unshelve --no-availability-zone', found.step)
            self.unshelve(server, availability_zone=None)
        self.become(server, **{'OS-EXT-SRV-ATTR:host': 'second'})
        self.assertEqual([], self.audit(rules=['default_zone']))
        self.assertEqual(0, readers.count_pinned('nova'))

    def unshelve(self, server, **options):
        self.admin_api.post_server_action(
            server['id'], {'unshelve': {'host': 'second', **options}})


class TestRules(AuditTest):
    """Rules of aggregate metadata, which apply if nova enforces them."""

    host_filters = ('AggregateMultiTenancyIsolation',
                    'AggregateInstanceExtraSpecsFilter')

    def test_metadata_that_was_added_afterwards(self):
        """Each rule, with the aggregate and the time of its change."""
        wanted = self.flavor(**{'aggregate_instance_extra_specs:ssd': 'true'})
        server = self.boot(flavor_id=wanted)
        self.assertEqual('ERROR', server['status'])
        number = self.aggregate('mixed', ['first'], ssd='true')
        server = self.boot(flavor_id=wanted)
        self.assertEqual([], self.audit())
        self.admin_api.post_aggregate_action(number, {'set_metadata': {
            'metadata': {'filter_tenant_id': 'others', 'ssd': 'false',
                         'instance_type': 'm1.huge'}}})
        found = {one.rule: one for one in self.audit()}
        self.assertEqual({'tenant_isolation', 'flavor_extra_specs'},
                         found.keys())
        self.assertEqual(
            'in mixed (%s), which is for others' % self.uuid(number),
            found['tenant_isolation'].actual)
        self.assertEqual('no aggregate matches',
                         found['flavor_extra_specs'].actual)
        for one in found.values():
            self.assertEqual(audit.CHANGED, one.cause.kind)
            self.assertIn('the metadata of mixed (', one.cause.text)
        [typed] = self.audit(['type_affinity'])
        self.assertEqual('flavor m1.tested', typed.requested)
