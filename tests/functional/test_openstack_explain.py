# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror explain``: real nova-api and placement."""

import json

from nova import context as nova_context
from nova.db.api import api as api_db
from nova.network import model
from nova import objects
from oslo_utils.fixture import uuidsentinel
from oslo_utils import uuidutils
import webob

from tests import commands
from tests import fixtures
from tests.functional import test_manage
from tests.functional import test_openstack_client
from tests import placement_service
from tests.unit import servers

FAST, SLOW = 'CUSTOM_FAST', 'CUSTOM_SLOW'
DISABLED = 'COMPUTE_STATUS_DISABLED'
# Filters that only check what nova-api shows as well.
NEUTRAL = """
[DEFAULT]
service_down_time = 100000
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_aggregate_mirror.scheduler.filters.all_filters
enabled_filters = ComputeFilter
"""
SSD = {'aggregate_instance_extra_specs:ssd': 'true'}


class ExplainTest(test_openstack_client.ClientTest):
    """A zone, and hosts that offer two processors each."""

    def setUp(self):
        # Nova-api reads it once; no nova-compute reports to it here.
        fixtures.CONF.set_override('service_down_time', 100000)
        self.addCleanup(fixtures.CONF.clear_override, 'service_down_time')
        super().setUp()
        self.flavor('m1.small', vcpus=2)

    def flavor(self, name, vcpus=1, **extra_specs):
        context = nova_context.get_admin_context()
        found = objects.Flavor(
            context, name=name, flavorid=uuidutils.generate_uuid(),
            vcpus=vcpus, memory_mb=1, root_gb=1, ephemeral_gb=0, swap=0,
            rxtx_factor=1.0, disabled=False, is_public=True)
        found.extra_specs = extra_specs
        found.create()
        return found

    def ready(self, name, *aggregates, traits=(), mirrored=True, vcpus=2,
              **service):
        """Create a host that has reported its resources."""
        host = self.cloud.create_host(name)
        [node] = host.nodes
        context = nova_context.get_admin_context()
        for one in aggregates:
            objects.Aggregate.get_by_uuid(context, one.uuid).add_host(name)
        if mirrored:
            self.placement.set_aggregates(
                node, [one.uuid for one in aggregates])
        self.placement.set_inventories(
            node, VCPU=vcpus, MEMORY_MB=1, DISK_GB=1)
        self.placement.set_traits(node, 'OWNER_NOVA', *traits)
        with self.cloud.nova.in_cell('cell1') as cell:
            found = objects.Service.get_by_compute_host(cell, name)
            for key, value in service.items():
                setattr(found, key, value)
            found.save()
            compute = objects.ComputeNode.get_by_uuid(cell, node)
            compute.free_disk_gb, compute.free_ram_mb = 1, 1
            compute.supported_hv_specs, compute.stats = [], {}
            compute.pci_device_pools = None
            compute.cpu_allocation_ratio = compute.ram_allocation_ratio = (
                compute.disk_allocation_ratio) = 1.0
            compute.save()
        return node

    def metadata(self, aggregate, **metadata):
        objects.Aggregate.get_by_uuid(
            nova_context.get_admin_context(), aggregate.uuid
        ).update_metadata(metadata)

    def create_traits(self):
        for name in FAST, SLOW:
            self.placement.create_trait(name)

    def create_server(self, flavor, zone='', image='', cell='cell0',
                      **fields):
        """Create a server, which by default has found no host."""
        # Nova-api reads the security groups of a server from neutron.
        neutron = self.useFixture(servers.Cloud())
        neutron.answers['/v2.0/ports'] = (200, {'ports': []})
        self.cloud.nova.conf.config(endpoint_override=neutron.url,
                                    group='neutron')
        server = uuidutils.generate_uuid()
        values = {'vm_state': 'error', **fields}
        with self.cloud.nova.in_cell(cell) as context:
            instance = objects.Instance(
                context, uuid=server, project_id='tenant-a', user_id='user',
                flavor=flavor, image_ref=image, system_metadata={},
                power_state=0, display_name='web',
                hostname='web', config_drive='', kernel_id='', ramdisk_id='',
                launch_index=0, reservation_id='r-1', locked=False,
                root_device_name='/dev/vda',
                info_cache=objects.InstanceInfoCache(
                    network_info=model.NetworkInfo()),
                availability_zone=zone or None, **values)
            instance.create()
        context = nova_context.get_admin_context()
        objects.InstanceMapping(
            context, instance_uuid=server, project_id='tenant-a',
            user_id='user', cell_mapping=self.cloud.nova.cell(cell),
            queued_for_delete=False).create()
        spec = objects.RequestSpec.from_components(
            context, server, {'properties': {}}, flavor, None, None, {}, None,
            zone or None, project_id='tenant-a')
        spec.num_instances = 1
        spec.create()
        return server

    def explain(self, *argv, status=0):
        """Return host to the row of its compute node, and what was said."""
        rows, errors = self.mirror('explain', '--long', *argv, status=status)
        return {row['Host']: row for row in rows}, errors

    def reasons(self, *argv, status=0):
        rows, _errors = self.explain(*argv, status=status)
        return {host: row['Reason'] for host, row in rows.items()}


class TestConditions(ExplainTest):
    """Each host has a reason of its own."""

    def setUp(self):
        super().setUp()
        self.create_traits()
        zone = self.zone
        self.good = self.ready('good', zone, traits=[FAST])
        self.ready('elsewhere', self.rack, traits=[FAST])
        self.ready('lagging', zone, traits=[FAST], mirrored=False)
        self.ready('off', zone, traits=[FAST, DISABLED], disabled=True,
                   disabled_reason='new disks')
        self.ready('off early', zone, traits=[FAST], disabled=True)
        self.ready('down', zone, traits=[FAST], forced_down=True)
        self.ready('full', zone, traits=[FAST], vcpus=1)
        self.ready('plain', zone)
        self.ready('slow', zone, traits=[FAST, SLOW])
        self.cloud.create_host('bare', providers=False)
        self.fast = self.flavor('m1.fast', 2, **{
            'trait:' + FAST: 'required', 'trait:' + SLOW: 'forbidden'})
        self.expected = {
            'good': 'acceptable',
            'elsewhere': 'not in zone az1',
            'lagging': 'in zone az1 in nova but not in placement',
            'off': 'disabled',
            'off early': 'disabled',
            'down': 'forced down',
            'full': 'have fewer than 2 VCPU free',
            'plain': 'without trait CUSTOM_FAST',
            'slow': 'with the forbidden trait CUSTOM_SLOW',
            'bare': 'without a resource provider',
        }

    def test_described_server(self):
        """Each host has its reason, figures and advice."""
        rows, errors = self.explain('--flavor', 'm1.fast', '--zone', 'az1')
        self.assertEqual(self.expected, {
            host: row['Reason'] for host, row in rows.items()})
        self.assertEqual('asked 2, free 1 of 1 x 1', rows['full']['Detail'])
        self.assertEqual('reason: new disks', rows['off']['Detail'])
        self.assertEqual(
            'openstack aggregate mirror sync --host lagging',
            rows['lagging']['What to do'])
        self.assertEqual(
            'if it should be: openstack aggregate add host zone elsewhere',
            rows['elsewhere']['What to do'])
        self.assertEqual(
            '1 of 10 hosts can take the server (good): 2 disabled, 1 forced '
            'down, 1 have fewer than 2 VCPU free, 1 in zone az1 in nova but '
            'not in placement, 1 not in zone az1, 1 with the forbidden trait '
            'CUSTOM_SLOW, 1 without a resource provider, 1 without trait '
            'CUSTOM_FAST', errors.splitlines()[0])
        self.assertIn('Request: flavor m1.fast, zone az1', errors)
        self.assertIn('The journal is not visible', errors)
        self.assertIn('scheduling explain', ' '.join(errors.split()))
        self.assertEqual({'GET'}, {
            request.method for request in self.placement.requests})

    def test_funnel_and_rows(self):
        """Conditions have a source, and hosts in one state share a row."""
        said, errors = self.openstack(
            'aggregate', 'mirror', 'explain', '--flavor', self.fast.flavorid,
            '--zone', 'az1', '-f', 'json')
        self.assertIn(
            ('1', 'elsewhere', 'not in zone az1'),
            [(str(row['Hosts']), row['Names'], row['Reason'])
             for row in json.loads(said)])
        steps = [[cell.strip() for cell in line.split('|')[1:4]]
                 for line in errors.splitlines() if line.startswith('| ')]
        self.assertEqual([
            ['compute nodes in nova', '', '10'],
            ['with a resource provider', '', '9'],
            ['1 DISK_GB', 'flavor', '9'],
            ['1 MEMORY_MB', 'flavor', '9'],
            ['2 VCPU', 'flavor', '8'],
            ['without trait COMPUTE_STATUS_DISABLED', 'nova', '7'],
            ['without trait CUSTOM_SLOW', 'flavor', '6'],
            ['trait CUSTOM_FAST', 'flavor', '5'],
            ['nova-compute enabled and up', 'nova', '1'],
        ], [step for step in steps[1:]
            if step[2] and 'aggregate' not in step[0]])

    def test_advice_is_followed(self):
        """A host becomes acceptable after the command of its row."""
        rows, _errors = self.explain('--flavor', 'm1.fast', '--zone', 'az1',
                                     '--host', 'lagging', status=1)
        self.openstack(*rows['lagging']['What to do'].split()[1:])
        self.assertEqual({'lagging': 'acceptable'}, self.reasons(
            '--flavor', 'm1.fast', '--zone', 'az1', '--host', 'lagging'))

    def test_server(self):
        """Its flavor and its zone are those that it has asked for."""
        server = self.create_server(self.fast, 'az1')
        self.fast.destroy()
        rows, errors = self.explain('--server', server)
        self.assertEqual(self.expected, {
            host: row['Reason'] for host, row in rows.items()})
        self.assertIn('server %s, flavor m1.fast, project tenant-a, zone az1'
                      % server, ' '.join(errors.split()))
        self.assertNotIn('is not visible before', errors)
        self.assertIn('image in the volume', errors)

    def test_nova_without_the_zone_of_a_server(self):
        """Before microversion 2.96 it is not explained, which is said."""
        server = self.create_server(self.fast, 'az1')
        self.server.latest = '2.95'
        rows, errors = self.explain('--server', server)
        self.assertEqual('acceptable', rows['elsewhere']['Reason'])
        self.assertIn('is not visible before', errors)

    def test_stale_host(self):
        """It is acceptable only because placement is stale."""
        stale = self.ready('stale', traits=[FAST])
        self.placement.set_aggregates(stale, [self.zone.uuid])
        rows, errors = self.explain('--flavor', 'm1.fast', '--zone', 'az1')
        self.assertEqual('acceptable', rows['stale']['Reason'])
        self.assertIn('Placement has these hosts in zone az1, nova does not: '
                      'stale. Run "openstack aggregate mirror sync --prune"',
                      ' '.join(errors.split()))


class TestRequests(ExplainTest):
    """What a request may ask for."""

    def setUp(self):
        super().setUp()
        self.node = self.ready('h1', self.zone)

    def test_no_host(self):
        """It exits with 1, and the table is printed nevertheless."""
        self.flavor('m1.huge', 9)
        self.assertEqual({'h1': 'have fewer than 9 VCPU free'}, self.reasons(
            '--flavor', 'm1.huge', status=1))

    def test_volume(self):
        """The root disk of the flavor is not requested."""
        self.placement.set_inventories(self.node, VCPU=2, MEMORY_MB=1)
        self.assertEqual({'h1': 'have no DISK_GB'}, self.reasons(
            '--flavor', 'm1.small', status=1))
        self.reasons('--flavor', 'm1.small', '--volume')
        flavor = objects.Flavor.get_by_name(
            nova_context.get_admin_context(), 'm1.small')
        self.reasons('--server', self.create_server(flavor))

    def test_image(self):
        """Its traits are required, of a server as well."""
        self.create_traits()
        glance = self.useFixture(servers.Cloud())
        image = uuidutils.generate_uuid()
        glance.answers['/v2/images/' + image] = (200, {
            'id': image, 'name': 'linux', 'trait:' + FAST: 'required'})
        self.clouds['image_endpoint_override'] = glance.url
        self.write_clouds(**self.clouds)
        said = {'h1': 'without trait CUSTOM_FAST'}
        small = ('--flavor', 'm1.small')
        self.assertEqual(said, self.reasons(
            *small, '--image', image, status=1))
        self.assertEqual(said, self.reasons(
            *small, '--image-property', 'trait:%s=required' % FAST, status=1))
        flavor = objects.Flavor.get_by_name(
            nova_context.get_admin_context(), 'm1.small')
        server = self.create_server(flavor, image=image)
        self.assertEqual(said, self.reasons('--server', server, status=1))
        del glance.answers['/v2/images/' + image]
        self.assertIn('The image of the server is not explained (describe '
                      'the server with --flavor instead): glance has no image',
                      ' '.join(self.explain('--server', server)[1].split()))
        self.assertIn('with --image-property', self.explain(
            *small, '--image', image, status=255)[1])
        glance.answers['/v2/images/' + image] = (503, {})
        self.assertIn('with --image-property', self.explain(
            *small, '--image', image, status=2)[1])

    def test_groups(self):
        """A numbered group is asked as a whole, in one provider."""
        self.create_traits()
        self.flavor('m1.group', 1, **{
            'resources1:VCPU': '1', 'trait1:' + FAST: 'required',
            'resources:MEMORY_MB': '1', 'hw:tpm_version': '2.0'})
        rows, errors = self.explain('--flavor', 'm1.group', status=1)
        self.assertEqual('cannot meet request group 1', rows['h1']['Reason'])
        self.assertIn('Nova adds conditions for hw:tpm_version', errors)
        self.placement.set_traits(self.node, FAST)
        self.reasons('--flavor', 'm1.group')

    def test_dedicated_processors(self):
        """Shared processors are the alternative, as for nova."""
        self.flavor('m1.pinned', 2, **{'hw:cpu_policy': 'dedicated'})
        self.reasons('--flavor', 'm1.pinned')
        self.placement.set_inventories(
            self.node, PCPU=2, MEMORY_MB=1, DISK_GB=1)
        self.reasons('--flavor', 'm1.pinned')
        self.placement.set_inventories(
            self.node, PCPU=1, MEMORY_MB=1, DISK_GB=1)
        self.assertEqual(1, len(self.reasons(
            '--flavor', 'm1.pinned', status=1)))

    def test_query_that_placement_refuses(self):
        """It would refuse that of nova-scheduler, too."""
        self.flavor('m1.typo', 1, **{'resources:CUSTOM_NOTHING': '1'})
        rows, errors = self.explain('--flavor', 'm1.typo', status=1)
        self.assertEqual('refused', rows['h1']['Kind'])
        self.assertIn('CUSTOM_NOTHING', errors.splitlines()[0])

    def test_default_zone(self):
        """Nova adds no condition for it, and refuses unknown zones."""
        self.ready('h2')
        rows, errors = self.explain('--flavor', 'm1.small', '--zone', 'nova')
        self.assertEqual('acceptable', rows['h1']['Reason'])
        self.assertIn('--rule default_availability_zone', errors)
        self.assertEqual(
            {'h2': 'acceptable', 'h1': 'in an aggregate that excludes zone '
             'nova'}, self.reasons('--flavor', 'm1.small', '--zone', 'nova',
                                   '--rule', 'default_availability_zone'))


class TestRules(ExplainTest):
    """Rules on the metadata of aggregates."""

    def setUp(self):
        super().setUp()
        self.ready('free')
        self.ready('theirs', self.rack)
        self.small = ('--flavor', 'm1.small', '--project', 'tenant-a')

    def test_tenant_isolation(self):
        """It is a note until it is asked for, then the reason of a host."""
        self.metadata(self.rack, filter_tenant_id='tenant-b, tenant-c')
        rows, errors = self.explain(*self.small)
        self.assertEqual({'acceptable'}, {
            row['Reason'] for row in rows.values()})
        self.assertIn('If nova-scheduler has AggregateMultiTenancyIsolation, '
                      'it does not use 1 of the hosts that are left: --rule '
                      'tenant_isolation shows which.',
                      ' '.join(errors.split()))
        rows, errors = self.explain(*self.small, '--rule', 'tenant_isolation')
        self.assertEqual(
            ('in an aggregate that excludes tenant tenant-a',
             'rack (%s)' % self.rack.uuid),
            (rows['theirs']['Reason'], rows['theirs']['Detail']))
        self.assertNotIn('If nova-scheduler has', errors)

    def test_host_in_two_kinds_of_aggregates(self):
        """Placement cannot be asked about it, and nova is."""
        both = self.cloud.create_aggregate('both')
        self.metadata(self.rack, filter_tenant_id='tenant-b')
        self.metadata(both, filter_tenant_id='tenant-a')
        self.ready('shared', self.rack, both)
        self.assertEqual(
            {'free': 'acceptable', 'shared': 'acceptable',
             'theirs': 'in an aggregate that excludes tenant tenant-a'},
            self.reasons(*self.small, '--rule', 'tenant_isolation'))

    def test_flavor_extra_specs(self):
        """The host must be in a matching aggregate, which must exist."""
        self.flavor('m1.ssd', 1, **SSD)
        asked = ('--flavor', 'm1.ssd', '--rule', 'flavor_extra_specs')
        _rows, errors = self.explain(*asked, status=1)
        self.assertEqual(
            "0 of 2 hosts: no host aggregate matches the flavor's extra spec "
            'aggregate_instance_extra_specs:ssd', errors.splitlines()[0])
        self.metadata(self.rack, ssd='true')
        self.assertEqual(
            {'theirs': 'acceptable',
             'free': "not in an aggregate for the flavor's extra spec "
                     'aggregate_instance_extra_specs:ssd'},
            self.reasons(*asked))

    def test_rules_of_nova_itself(self):
        """An aggregate for a trait, and one for a tenant."""
        self.metadata(self.rack, **{'trait:CUSTOM_FAST': 'required'})
        self.assertEqual(
            {'free': 'acceptable', 'theirs': 'in an aggregate that excludes '
             'requests without the traits of the aggregate'},
            self.reasons(*self.small, '--rule', 'isolated_aggregates'))
        self.metadata(self.rack, filter_tenant_id='tenant-a')
        self.assertEqual(
            {'free': 'not in an aggregate for tenant tenant-a',
             'theirs': 'acceptable'},
            self.reasons(*self.small, '--rule', 'tenant_aggregate'))


class TestTwin(ExplainTest):
    """The command for hosts with nova-scheduler says the same."""

    def setUp(self):
        super().setUp()
        self.conf = self.home / 'nova.conf'

    def manage(self, flavor, *argv, more=''):
        """Return host to the phrase of its reason."""
        self.conf.write_text(test_manage.CONF % {
            'state': fixtures.CONF.state_path,
            'api': api_db.get_engine().url, 'placement': self.placement.url,
            'token': placement_service.TOKEN, 'more': NEUTRAL + more})
        done = commands.run(commands.MANAGE, [
            '--config-file', str(self.conf), 'scheduling', 'explain',
            *argv, '--format', 'json'])
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return {one['host']: one['reason']
                for one in json.loads(done.stdout)['hosts']}

    def test_reasons_are_the_same(self):
        """For each host, whatever is asked."""
        self.create_traits()
        other = self.cloud.create_aggregate('other', 'az2')
        self.metadata(self.rack, filter_tenant_id='tenant-b', ssd='true')
        self.ready('h1', self.zone, traits=[FAST])
        self.ready('h2', self.zone, self.rack, traits=[SLOW])
        self.ready('h3', other, mirrored=False)
        self.ready('h4', other, traits=[FAST, DISABLED], disabled=True)
        self.ready('h5', other, self.rack, vcpus=1)
        self.ready('h6', self.rack, traits=[FAST], forced_down=True)
        stale = self.ready('h7')
        self.placement.set_aggregates(stale, [self.zone.uuid])
        self.flavor('fast', **{'trait:' + FAST: 'required'})
        self.flavor('slow', **{'trait:' + FAST: 'forbidden'})
        self.flavor('ssd', **SSD)
        self.flavor('big', 2, **{'resources:MEMORY_MB': '0'})
        self.flavor('pinned', 2, **{'hw:cpu_policy': 'dedicated'})
        rules = ('tenant_isolation', 'flavor_extra_specs')
        chosen = [one for name in rules for one in ('--rule', name)]
        counted = set()
        for flavor, argv in (
                ('fast', ()), ('slow', ()), ('slow', ('--zone', 'az2')),
                ('big', ('--zone', 'az1')), ('pinned', ()), ('ssd', ()),
                ('big', ('--project', 'tenant-b', '--zone', 'az1'))):
            argv = ('--flavor', flavor, '--project', 'tenant-a', *argv)
            rows, errors = self.mirror(
                'explain', '--long', *argv, *chosen, status=None)
            found = {row['Host']: row['Reason'] for row in rows}
            expected = self.manage(flavor, *argv, more=(
                '[aggregate_mirror]\nrequest_filters = %s\n'
                % ','.join(rules)))
            self.assertEqual(
                {host: text.replace('disabled', '') for host, text
                 in expected.items()},
                {host: text.replace('disabled', '') for host, text
                 in found.items()}, (argv, errors))
            counted.add(sum(one == 'acceptable' for one in found.values()))
        self.assertGreater(len(counted), 2, counted)


class TestErrors(ExplainTest):

    def said(self, *argv, status):
        rows, errors = self.explain(*argv, status=status)
        self.assertEqual({}, rows)
        self.assertNotIn('nova.conf', errors)
        return errors

    def test_unknown_names(self):
        """The message has a command that lists what exists."""
        self.ready('h1', self.zone)
        for argv, words in (
                (['--flavor', 'none'], 'openstack flavor list --all'),
                (['--server', uuidsentinel.none], 'openstack server list'),
                (['--flavor', 'm1.small', '--host', 'none'],
                 'openstack compute service list'),
                (['--flavor', 'm1.small', '--zone', 'az9'], 'az1')):
            self.assertIn(words, self.said(*argv, status=255))

    def test_usage(self):
        """Either a server or a flavor, and nothing about a server."""
        self.assertIn('--server', self.said(status=2))
        self.assertIn('is not a UUID', self.said(
            '--server', 'web', status=2))
        self.assertIn('key=value', self.said(
            '--flavor', 'm1', '--image-property', 'x', status=2))
        self.assertIn('--image-property applies to --flavor only', self.said(
            '--server', uuidsentinel.none, '--image-property', 'a=b',
            status=255))
        self.assertIn('--rule tenant_isolation needs --project', self.said(
            '--flavor', 'm1.small', '--rule', 'tenant_isolation',
            status=255))

    def test_services_that_are_down(self):
        """Each has its exit status."""
        self.placement.refuse()
        self.assertIn('placement runs', self.said(
            '--flavor', 'm1.small', status=2))
        self.server.answers['/os-services'] = webob.Response(status=503)
        self.assertIn('os-services', self.said(
            '--flavor', 'm1.small', status=255))

    def test_user_who_must_not_see_extra_specs(self):
        """An explanation without them would be wrong."""
        def edit(body):
            for one in body['flavors']:
                del one['extra_specs']

        self.server.edits['/flavors/detail'] = edit
        self.assertIn('os-flavor-extra-specs', self.said(
            '--flavor', 'm1.small', status=255))

    def test_help(self):
        """It lists the exit statuses."""
        said, _errors = self.openstack(
            'aggregate', 'mirror', 'explain', '--help')
        self.assertIn('1 when none is left', ' '.join(said.split()))
