# SPDX-License-Identifier: Apache-2.0
"""Requests as an explanation prepares them, and as nova-conductor does."""

import json

import fixtures
from nova.compute import instance_actions
from nova.compute import power_state
from nova import context as nova_context
from nova.db.api import api as api_db
from nova import exception
from nova import objects
from nova.scheduler.client import query
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api import client
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa

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


class PreparedRequestsTest(explaining.ExplainingTest):
    """A server in a zone, forced to its host, with a group and a port."""

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
        self.server, _far = (
            self.boot_member(group, host) for host in ('first', 'far'))
        for port in self.neutron._ports.values():
            if port.get('device_id') == self.server['id']:
                port['resource_request'] = BANDWIDTH
        self.flags(pci_in_placement=True, group='filter_scheduler')
        self.refused = True

    def boot_member(self, group, host):
        """Boot a server of the group, with a port, on a host."""
        server = self.admin_api.post_server({
            'server': self._build_server(
                flavor_id=self.wanted, networks='auto',
                az='%s:%s' % (ZONE, host)),
            'os:scheduler_hints': {'group': group}})
        self.become(server, status='ACTIVE')
        return server

    def select_destinations(self, client, context, spec, instance_uuids,
                            **options):
        """Keep the request; later, find no host for it."""
        copy = spec.obj_clone()
        # As nova-scheduler does, whatever the request was for once.
        copy.num_instances = len(instance_uuids)
        self.specs.append(copy)
        if self.refused:
            raise exception.NoValidHost(reason='not asked')
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
        """Compare the fields of both requests; return nova's."""
        prepared = self.of_server(self.server, operation, **changes).spec
        spec = self.conductors(action)
        self.assert_equal(spec, prepared, operation, unstored)
        return spec

    def assert_equal(self, spec, prepared, operation, unstored=frozenset()):
        for name in objects.RequestSpec.fields.keys() - {'id', *unstored}:
            self.assertEqual(*(
                readable(getattr(request, name)) if name in request else None
                for request in (spec, prepared)), '%s: %s' % (operation, name))


class TestOperations(PreparedRequestsTest):
    """Each field is that of the request which nova-conductor hands over."""

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

    def test_cold_migration(self):
        self.assert_prepared({'migrate': None}, 'migrate')

    def test_cold_migration_within_the_host(self):
        """As of vCenter, whose driver adds a trait to the provider."""
        self.set_trait('first', 'COMPUTE_SAME_HOST_COLD_MIGRATE')
        self.assertEqual([], self.assert_prepared(
            {'migrate': None}, 'migrate').ignore_hosts)

    def test_resize(self):
        """The new flavor requests PCI devices and a NUMA topology."""
        large = self._create_flavor(
            name='m1.numa', memory_mb=128, vcpu=2, disk=1, ephemeral=0,
            extra_spec={'hw:numa_nodes': '2',
                        'pci_passthrough:alias': 'nic:1'})
        for same_host in False, True:
            self.flags(allow_resize_to_same_host=same_host)
            spec = self.assert_prepared(
                {'resize': {'flavorRef': large}}, 'resize', flavor=large)
            self.assertEqual(2, len(spec.requested_resources))

    def test_live_migration(self):
        self.assert_prepared({'os-migrateLive': {
            'host': None, 'block_migration': 'auto'}}, 'live-migrate')

    def test_evacuation(self):
        self.admin_api.put_service_force_down(self.service('first'), True)
        self.assert_prepared({'evacuate': {}}, 'evacuate')

    def test_unshelve(self):
        """In its zone, and in another."""
        self._shelve_server(self.server, 'SHELVED_OFFLOADED')
        self.assert_prepared({'unshelve': None}, 'unshelve')
        self.assert_prepared({'unshelve': {'availability_zone': OTHER}},
                             'unshelve', zone=OTHER)
        for port in self.neutron._ports.values():
            port.pop('resource_request', None)
        self.assertEqual([], self.of_server(self.server, 'unshelve').notes)

    def test_rebuild(self):
        # From 2.100 on the answer has hints, which nova 31 and 32 refuse.
        self.admin_api.microversion = '2.93'
        image = self.glance.create(self.context, {
            'name': 'other', 'properties': {'hw_machine_type': 'q35'},
            'status': 'active', 'min_ram': 0, 'min_disk': 0})
        self.assert_prepared({'rebuild': {'imageRef': image['id']}},
                             'rebuild', image=image)


class TestRefusals(PreparedRequestsTest):
    """Nova-api refuses what the explanation says, and nothing else."""

    def assert_refused(self, action, operation, text, **changes):
        self.assertIn(text, self.of_server(
            self.server, operation, **changes).refusal.reason)
        self.assertRaises(client.OpenStackApiException, self.admin_api.
                          post_server_action, self.server['id'], action)

    ACTIONS = {
        'migrate': {'migrate': None},
        'live-migrate': {'os-migrateLive': {
            'host': None, 'block_migration': 'auto'}},
        'evacuate': {'evacuate': {}}, 'unshelve': {'unshelve': None},
        'rebuild': {'rebuild': {'imageRef': uuids.other}}}
    STATES = {
        ('active', None): {'migrate', 'live-migrate', 'evacuate', 'rebuild'},
        ('paused', None): {'live-migrate'},
        ('stopped', None): {'migrate', 'evacuate', 'rebuild'},
        ('error', None): {'evacuate', 'rebuild'},
        ('resized', None): set(), ('active', 'migrating'): {'evacuate'}}

    def test_states(self):
        """Of a server, and of the nova-compute of its host."""
        for down in False, True:
            self.admin_api.put_service_force_down(self.service('first'), down)
            allowed_by_host = {'rebuild', *(
                {'evacuate'} if down else {'migrate', 'live-migrate'})}
            for (state, task), allowed in self.STATES.items():
                self.update(vm_state=state, task_state=task)
                for operation in self.ACTIONS:
                    refusal = self.of_server(self.server, operation).refusal
                    self.assertEqual(
                        operation in allowed & allowed_by_host, not refusal,
                        (state, task, down, operation, refusal))
                    if refusal:
                        self.assert_nova_refuses(operation, refusal)

    def assert_nova_refuses(self, operation, refusal):
        """Compare a refusal, and the states that it names, with nova's."""
        if refusal.step == 'nova-conductor':
            self.specs.clear()
            self.admin_api.post_server_action(
                self.server['id'], self.ACTIONS[operation])
            self._wait_for_action_fail_completion(
                self.server, instance_actions.LIVE_MIGRATION,
                'conductor_live_migrate_instance')
            self.assertEqual([], self.specs)
            return
        exc = self.assertRaises(
            client.OpenStackApiException, self.admin_api.post_server_action,
            self.server['id'], self.ACTIONS[operation])
        _server, is_in, state = refusal.reason.partition('in ')
        if is_in:
            self.assertIn(is_in + state, str(exc))
        if 'vm_state' in state and operation != 'unshelve':
            self.assertEqual('nova requires ' + ' or '.join(sorted(
                state for (state, task), allowed in self.STATES.items()
                if operation in allowed and not task)), refusal.advice)

    def test_host_that_is_down(self):
        """Nova moves the server if the advice is followed, either part."""
        service = self.service('first')
        self.admin_api.put_service_force_down(service, True)
        for operation in 'migrate', 'live-migrate':
            refusal = self.of_server(self.server, operation).refusal
            self.assertEqual('the nova-compute of first is forced down',
                             refusal.reason)
            self.assertIn('openstack compute service set --up first '
                          'nova-compute,', refusal.advice)
            self.assertIn('evacuate the server', refusal.advice)
        self.assert_prepared({'evacuate': {}}, 'evacuate')
        self.admin_api.put_service_force_down(service, False)
        self.update(vm_state='active')
        self.assert_prepared({'migrate': None}, 'migrate')

    def test_host_that_is_up(self):
        """The server can be evacuated once it is down."""
        advice = self.of_server(self.server, 'evacuate').refusal.advice
        self.assertIn('openstack compute service set --down first '
                      'nova-compute', advice)
        self.assert_prepared({'migrate': None}, 'migrate')
        self.admin_api.put_service_force_down(self.service('first'), True)
        self.assert_prepared({'evacuate': {}}, 'evacuate')

    def test_host_without_a_service(self):
        """Nova fails, and moves the server once its row is restored.

        Nova-compute does not create it if it has servers.
        """
        rename = "UPDATE services SET host = '%s' WHERE host = '%s'"
        self.execute('cell1', rename % ('nodeless', 'first'))
        for operation in 'migrate', 'live-migrate', 'evacuate':
            refusal = self.of_server(self.server, operation).refusal
            self.assertEqual('host first is without a nova-compute service',
                             refusal.reason)
            self.assertIn('restore its row', refusal.advice)
            self.assert_nova_refuses(operation, refusal)
        self.assertRaises(
            exception.InvalidConfiguration, self.restart_compute_service,
            self.computes['first'])
        self.execute('cell1', rename % ('first', 'nodeless'))
        self.restart_compute_service(self.computes['first'])
        self.assert_prepared({'migrate': None}, 'migrate')

    def test_host_without_a_compute_node(self):
        """Nova-conductor notices that when it has chosen another host."""
        wanted = self._create_flavor(name='m1.other')
        self.execute('cell1', "UPDATE compute_nodes SET deleted = id "
                     "WHERE host = 'first'")
        for operation, changes, action, event in (
                ('resize', {'flavor': wanted}, {'resize': {
                    'flavorRef': wanted}}, 'cold_migrate'),
                ('live-migrate', {}, self.ACTIONS['live-migrate'],
                 'conductor_live_migrate_instance')):
            answer = self.explain_server(self.server, operation, **changes)
            self.assertEqual('Compute host first could not be found.',
                             answer.failure)
            self.admin_api.post_server_action(self.server['id'], action)
            self._wait_for_action_fail_completion(
                self.server, operation.replace('-', '_').replace(
                    'live_migrate', instance_actions.LIVE_MIGRATION), event)
        self.assert_refused({'migrate': None}, 'migrate',
                            'Compute host first could not be found.')
        self.restart_compute_service(self.computes['first'])
        self.assert_prepared({'migrate': None}, 'migrate')

    def test_power_state(self):
        """Nova-conductor moves a server live only if it runs."""
        self.update(power_state=power_state.SHUTDOWN)
        refusal = self.of_server(self.server, 'live-migrate').refusal
        self.assertEqual(('the server is in power_state shutdown',
                          'migrate the server cold'),
                         (refusal.reason, refusal.advice))
        self.assert_nova_refuses('live-migrate', refusal)
        self.assert_prepared({'migrate': None}, 'migrate')

    def update(self, **values):
        """Change what nova has stored of the server."""
        with nova_context.target_cell(
                self.context, self.cell_mappings['cell1']) as target:
            instance = objects.Instance.get_by_uuid(target, self.server['id'])
            instance.update(values)
            instance.save()

    def test_resize(self):
        """To the same flavor, and to others that it cannot have."""
        self.update(system_metadata={'image_min_ram': '32'})
        for flavor, text in (
                (self.wanted, 'has this flavor'),
                (self._create_flavor(name='m1.diskless', disk=0),
                 'no root disk'),
                (self._create_flavor(name='m1.narrow', memory_mb=16),
                 'memory is too small'),
                (self._create_flavor(name='m1.fpga', extra_spec={
                    'accel:device_profile': 'fpga'}), 'has accelerators'),
                (self._create_flavor(name='m1.numa', extra_spec={
                    'hw:numa_nodes': '3'}), 'evenly distributed'),
                (self._create_flavor(name='m1.card', extra_spec={
                    'pci_passthrough:alias': 'unknown:1'}), 'not defined')):
            self.assert_refused({'resize': {'flavorRef': flavor}}, 'resize',
                                text, flavor=flavor)

    def test_unshelve(self):
        """With a zone, before it is offloaded."""
        self.flags(shelved_offload_time=-1)
        self.admin_api.post_server_action(self.server['id'], {'shelve': None})
        self.become(self.server, status='SHELVED')
        self.assert_refused({'unshelve': {'availability_zone': OTHER}},
                            'unshelve', 'not offloaded', zone=OTHER)

    def test_image_of_the_server(self):
        """Its traits and topology are checked for another image only."""
        server = self.admin_api.get_server(self.server['id'])
        image = {'id': server['image']['id'], 'properties': {
            'hw_numa_nodes': '1', 'trait:CUSTOM_FAST': 'required'}}
        for image_id, refused in (image['id'], False), (uuids.other, True):
            refusal = self.of_server(self.server, 'rebuild', image={
                **image, 'id': image_id}).refusal
            self.assertEqual(refused, bool(refusal), refusal)


class TestOldRequest(PreparedRequestsTest):
    """The stored request is that of an old nova, or outdated."""

    def test_fields_that_are_healed(self):
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
