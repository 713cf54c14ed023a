# SPDX-License-Identifier: Apache-2.0
"""Requests as an explanation prepares them, and as nova-conductor does."""

import json

import fixtures
from nova import context as nova_context
from nova.db.api import api as api_db
from nova import exception as nova_exception
from nova import objects
from nova.scheduler.client import query
from nova.tests import fixtures as nova_fixtures
import sqlalchemy as sa

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import stored
from tests.scheduling import cloud
from tests.scheduling import explaining

ZONE, OTHER = 'az-1', 'az-2'
ALIAS = json.dumps({'vendor_id': '8086', 'product_id': '1528', 'name': 'nic'})
BANDWIDTH = {'resources': {'NET_BW_EGR_KILOBIT_PER_SEC': 1000},
             'required': ['CUSTOM_PHYSNET_1']}
GENERATED = ('request_id', 'requester_id')


def readable(value):
    """Return a field as JSON, without what differs each time."""
    if hasattr(value, 'obj_to_primitive'):
        value = value.obj_to_primitive()['nova_object.data']
    if isinstance(value, dict):
        if 'nova_object.data' in value:
            value = value['nova_object.data']
        if 'cell' in value:
            # Nova reads False where it is not set.
            value = {'allow_cross_cell_move': False, **value}
        return {name: readable(part) for name, part in value.items()
                if name not in GENERATED} or None
    if isinstance(value, (list, tuple, set)):
        return [readable(part) for part in value] or None
    return value


class TestOperations(explaining.ExplainingTest):
    """A server in a zone, forced to its host, with a group and a port.

    Each field is that of the request which nova-conductor hands over.
    """

    NUMBER_OF_CELLS = 2
    hosts = ('first', 'second', 'far')
    cells = {'far': 'cell2'}

    def setUp(self):
        super().setUp()
        self.flags(alias=[ALIAS], group='pci')
        self.aggregate('east', ['first', 'far'], availability_zone=ZONE)
        self.aggregate('west', ['second'], availability_zone=OTHER)
        self.specs, self.refused = [], False
        self.select = query.SchedulerQueryClient.select_destinations
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.client.query.SchedulerQueryClient.'
            'select_destinations', self.select_destinations))
        self.wanted = self.flavor()
        group = self.admin_api.post_server_groups(
            {'name': 'apart', 'policy': 'anti-affinity'})['id']
        servers = []
        for host in 'first', 'far':
            request = self._build_server(
                flavor_id=self.wanted, networks='auto',
                az='%s:%s' % (ZONE, host))
            servers.append(self.admin_api.post_server({
                'server': request, 'os:scheduler_hints': {'group': group}}))
            self.become(servers[-1], status='ACTIVE')
        self.server = servers[0]
        for port in self.neutron._ports.values():
            if port.get('device_id') == self.server['id']:
                port['resource_request'] = BANDWIDTH
        self.flags(pci_in_placement=True, group='filter_scheduler')
        self.refused = True

    def select_destinations(self, client, context, spec, instance_uuids,
                            **options):
        """Keep the request; later, find no host for it."""
        copy = spec.obj_clone()
        # As nova-scheduler does, whatever the request was for once.
        copy.num_instances = len(instance_uuids)
        self.specs.append(copy)
        if self.refused:
            raise nova_exception.NoValidHost(reason='not asked')
        return self.select(client, context, spec, instance_uuids, **options)

    def conductors(self, action):
        """Return the request that nova-conductor makes for an action."""
        self.specs.clear()
        self.admin_api.post_server_action(self.server['id'], action)
        self._wait_for_assert(
            lambda: self.assertEqual(1, len(self.specs)),
            max_retries=cloud.PATIENCE)
        self.become(self.server)
        return self.specs[0]

    def assert_prepared(self, action, operation, unstored=frozenset(),
                        **changes):
        """Let an action fail; compare nova's request with both of ours.

        Without the operation, it is the newest that failed, with its
        arguments where nova keeps them.

        :returns: nova's request
        """
        spec = self.conductors(action)

        def compare():
            chosen = self.of_server(self.server)
            self.assertIn(
                'operation of the server, %s, failed at 20' % operation,
                ''.join(chosen.remarks))
            self.assert_equal(spec, chosen.spec, operation, unstored)

        self._wait_for_assert(compare, max_retries=cloud.PATIENCE)
        prepared = self.of_server(self.server, operation, **changes).spec
        self.assert_equal(spec, prepared, operation, unstored)
        return spec

    def assert_equal(self, spec, prepared, operation, unstored=frozenset()):
        for name in objects.RequestSpec.fields.keys() - {'id', *unstored}:
            expected, observed = (
                readable(getattr(request, name)) if name in request else None
                for request in (spec, prepared))
            self.assertEqual(
                expected, observed, '%s: %s' % (operation, name))

    def test_creation(self):
        """Nova does not store which networks were requested for it.

        The server group has hosts in all cells, and for a move only those in
        the cell of the server.
        """
        [spec, _far] = self.specs
        prepared = self.of_server(self.server, 'create').spec
        self.assert_equal(spec, prepared, 'create', {
            'requested_networks', 'network_metadata', 'requested_resources',
            'instance_group'})
        self.assertEqual({'first', 'far'}, {*prepared.instance_group.hosts})
        self.assertEqual((1, 1), (len(prepared.requested_networks),
                                  len(prepared.requested_resources)))
        other = nova_fixtures.NeutronFixture.port_with_resource_request['id']
        prepared = self.of_server(self.server, 'create', ports=[other]).spec
        self.assertEqual([other], [
            group.requester_id for group in prepared.requested_resources])
        self.assertEqual([other], [
            port.port_id for port in prepared.requested_networks])

    def test_moves(self):
        """A driver such as that of vCenter adds a trait to the provider.

        Its servers may stay on their host.
        """
        self.assert_prepared({'os-migrateLive': {
            'host': None, 'block_migration': 'auto'}}, 'live-migrate')
        self.assert_prepared({'migrate': None}, 'migrate')
        self.set_trait('first', 'COMPUTE_SAME_HOST_COLD_MIGRATE')
        self.assertEqual([], self.assert_prepared(
            {'migrate': None}, 'migrate').ignore_hosts)

    def test_evacuation(self):
        """Nova stores the name of a host, for this operation only.

        Its action keeps its error if another host took the server.
        """
        self.admin_api.put_service_force_down(self.service('first'), True)
        self.assert_prepared({'evacuate': {}}, 'evacuate')
        self.admin_api.microversion = '2.95'
        spec = self.conductors({'evacuate': {'host': 'second'}})
        self._wait_for_assert(
            lambda: self.assert_equal(
                spec, self.of_server(self.server).spec, 'evacuate'),
            max_retries=cloud.PATIENCE)
        self.assertEqual('second', spec.requested_destination.host)
        self.execute('cell1', "UPDATE compute_nodes SET deleted = id "
                     "WHERE host = 'second'")
        error = self.assertRaises(
            exceptions.UnknownName, self.of_server, self.server)
        self.assertIn('nova has no longer host second', str(error))
        with nova_context.target_cell(
                self.context, self.cell_mappings['cell1']) as target:
            objects.Migration(
                target, instance_uuid=self.server['id'], status='completed',
                migration_type='evacuation', source_compute='first',
                dest_compute='second').create()
        [remark] = self.of_server(self.server).remarks
        self.assertIn('did not fail', remark)

    def test_resize(self):
        """The new flavor requests PCI devices and a NUMA topology.

        A reboot after the resize schedules nothing and does not count; a
        flavor that is gone has to be given.
        """
        large = self.flavor('m1.numa', 128, 2, **{
            'hw:numa_nodes': '2', 'pci_passthrough:alias': 'nic:1'})
        for same_host in False, True:
            self.flags(allow_resize_to_same_host=same_host)
            spec = self.assert_prepared(
                {'resize': {'flavorRef': large}}, 'resize', flavor=large)
            self.assertEqual(2, len(spec.requested_resources))
        self.admin_api.post_server_action(
            self.server['id'], {'reboot': {'type': 'HARD'}})
        self.become(self.server)
        self.assertEqual('resize', self.of_server(self.server).operation)
        self.admin_api.api_delete('/flavors/' + large)
        error = self.assertRaises(
            exceptions.UnknownName, self.of_server, self.server)
        self.assertIn('--for resize FLAVOR', str(error))

    def test_unshelve(self):
        """In its zone, in another, and in one that nova-api refuses.

        It is on no host that it could leave: what failed before is over.
        """
        self.conductors({'migrate': None})
        self._shelve_server(self.server, 'SHELVED_OFFLOADED')
        self.assertEqual('unshelve', self.of_server(self.server).operation)
        self.assert_prepared({'unshelve': None}, 'unshelve')
        self.assert_prepared({'unshelve': {'availability_zone': OTHER}},
                             'unshelve', zone=OTHER)
        for port in self.neutron._ports.values():
            port.pop('resource_request', None)
        note, = self.of_server(self.server, 'unshelve').notes
        self.assertIn('Nova does not store a host that was named', note)
        error = self.assertRaises(
            exceptions.UnknownName, self.of_server, self.server, 'unshelve',
            zone='typo')
        self.assertIn('no availability zone typo', str(error))

    def test_rebuild(self):
        # From 2.100 on the answer has hints, which nova 31 and 32 refuse.
        self.admin_api.microversion = '2.93'
        image = self.glance.create(self.context, {
            'name': 'other', 'properties': {'hw_machine_type': 'q35'},
            'status': 'active', 'min_ram': 0, 'min_disk': 0})
        self.assert_prepared({'rebuild': {'imageRef': image['id']}},
                             'rebuild', image=image)
        self.assertEqual('', self.of_server(self.server).stays)
        # It failed on its host: nova-scheduler has accepted the image.
        self.execute('cell1', "UPDATE instances SET image_ref = '%s'"
                     % image['id'])
        self.assertEqual(stored.KEPT_IMAGE,
                         self.of_server(self.server).stays)

    def test_nothing_failed(self):
        """The operation is chosen by the state of the server."""
        for state, operation in (
                ('active', 'live-migrate'), ('paused', 'live-migrate'),
                ('stopped', 'migrate'), ('shelved_offloaded', 'unshelve')):
            self.execute('cell1', "UPDATE instances SET vm_state = '%s' "
                         "WHERE uuid = '%s'" % (state, self.server['id']))
            request = self.of_server(self.server)
            self.assertEqual(operation, request.operation)
            [remark] = request.remarks
            self.assertIn('did not fail: this is about %s' % operation, remark)

    def test_request_of_an_old_nova(self):
        """Owner, root disk, flavor and server group are read again."""
        with api_db.get_engine().begin() as connection:
            where = ' WHERE instance_uuid = \'%s\'' % self.server['id']
            stored = json.loads(connection.execute(sa.text(
                'SELECT spec FROM request_specs' + where)).scalar())
            fields = stored['nova_object.data']
            for name in 'is_bfv', 'user_id':
                del fields[name]
            fields['project_id'] = None
            fields['flavor']['nova_object.data']['memory_mb'] = 1
            connection.execute(sa.text(
                'UPDATE request_specs SET spec = :spec' + where),
                {'spec': json.dumps(stored)})
        for action, operation, memory in (
                ({'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
                 'live-migrate', 1), ({'migrate': None}, 'migrate', 64)):
            # Nova forgets the hosts of the group when it saves the request,
            # and reads them again in nova-scheduler.
            spec = self.assert_prepared(action, operation, {'instance_group'})
            self.assertEqual(memory, spec.flavor.memory_mb)
