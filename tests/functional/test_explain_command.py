# SPDX-License-Identifier: Apache-2.0
"""``scheduling explain`` as an operator runs it: output and exit status."""

import json
import pathlib

import fixtures as base_fixtures
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from nova.db.main import models
from nova import objects
from oslo_utils.fixture import uuidsentinel
import sqlalchemy as sa

from tests.functional import test_manage
from tests import patience
from tests import placed
from tests.unit import servers

PASSWORD = 'hunter2'
NO_ROOM = 'DISK_GB, MEMORY_MB'
SMALL = ('--flavor', 'm1.small')
MORE = """
[DEFAULT]
service_down_time = 100000
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_aggregate_mirror.scheduler.filters.all_filters
"""
ENABLED = MORE + '[scheduler]\n%s = true\n'
ROUTED = 'query_placement_for_routed_network_aggregates'
TENANTS = 'limit_tenants_to_placement_aggregate'
TYPES = 'query_placement_for_image_type_support'


class ExplainTest(test_manage.ManageTest):
    """With services that nova-scheduler's hosts need."""

    def setUp(self):
        super().setUp()
        self.services = [self.service(binary) for binary in (
            'nova-scheduler', 'nova-conductor')]
        self.write_conf(more=MORE)
        self.flavor = placed.create_flavor()
        self.near, self.far = (
            self.ready(name, cell) for name, cell in (
                ('near', 'cell1'), ('far', 'cell2')))
        self.assertEqual(200, self.cloud.add_host(self.zone, self.near).status)
        self.cloud.placement.set_aggregates(
            self.near.nodes[0], [self.zone.uuid])

    def service(self, binary):
        """Create a service, as it does when it starts, in cell0."""
        with self.cloud.nova.in_cell('cell0') as context:
            service = objects.Service(
                context, host='control', binary=binary, topic=binary,
                report_count=1)
            service.create()
        return service

    def ready(self, name, cell):
        """Create a host that has reported its resources."""
        host = self.cloud.create_host(name, cell=cell)
        [node] = host.nodes
        with self.cloud.nova.in_cell(cell) as context:
            compute = objects.ComputeNode.get_by_uuid(context, node)
            compute.free_disk_gb, compute.free_ram_mb = 1, 1
            compute.supported_hv_specs, compute.stats = [], {}
            compute.pci_device_pools = None
            compute.cpu_allocation_ratio = compute.ram_allocation_ratio = (
                compute.disk_allocation_ratio) = 1.0
            compute.save()
        self.cloud.placement.set_inventories(
            node, VCPU=2, MEMORY_MB=1, DISK_GB=1)
        self.cloud.placement.set_traits(node, 'OWNER_NOVA')
        return host

    def explain(self, *argv):
        done = self.run_command('scheduling', 'explain', *argv)
        self.assertNotIn(PASSWORD, done.stderr)
        return done


class TestExplain(ExplainTest):

    def test_no_host(self):
        """It exits with 1; the document has the reasons for a program.

        Log lines are not in it.
        """
        placed.create_flavor('m1.huge', 9)
        self.write_conf(more=MORE + '[DEFAULT]\ndebug = true\n')
        done = self.explain('--flavor', 'm1.huge', '--format', 'json',
                            '--host', 'far')
        self.assertEqual(1, done.returncode)
        self.assertIn('DEBUG', done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual('nova-scheduler finds 0 of 1 hosts: 1 allow at most '
                         '2 VCPU for a server', answer['summary'])
        [host] = answer['hosts']
        self.assertEqual(
            ('far', 'max_unit', 'asked 9, free 2 of 2 x 1'),
            (host['host'], host['kind'], host['detail']))

    def test_hosts_that_share_a_compute_node(self):
        """Each of them can be explained."""
        twin = self.cloud.create_host('twin', cell='cell2', providers=False)
        with self.cloud.nova.in_cell('cell2') as context:
            with main_db.get_context_manager(context).writer.using(context):
                context.session.query(models.ComputeNode).filter_by(
                    uuid=twin.nodes[0]).update({'uuid': self.near.nodes[0]})
        for host in 'near', 'twin':
            done = self.explain('--flavor', 'm1.small', '--host', host)
            self.assertEqual('', done.stderr)
            self.assertIn(' of 1 hosts', done.stdout)

    def test_refused_by_a_request_filter(self):
        """Only the explanation is printed, not what nova-scheduler logs."""
        self.write_conf(more=MORE + (
            'enabled_filters = AggregateMembershipFilter\n'
            '[aggregate_mirror]\nrequest_filters = flavor_extra_specs\n'))
        self.flavor.extra_specs = {'ssd': 'true'}
        self.flavor.save()
        done = self.explain('--flavor', 'm1.small')
        self.assertEqual((1, ''), (done.returncode, done.stderr))
        self.assertEqual(
            'nova-scheduler finds 0 of 2 hosts: no host aggregate matches the '
            'flavor\'s extra spec ssd', done.stdout.splitlines()[0])


class TestSeveral(ExplainTest):

    def test_as_many_as_fit(self):
        """It exits with 1 only if none fits."""
        done = self.explain(*SMALL, '--count', 'all')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual('2 more; then %s on 2 of 2 hosts' % NO_ROOM,
                         done.stdout.splitlines()[0])
        self.assertIn('| az1  | 1       |', done.stdout)
        document = json.loads(self.explain(
            *SMALL, '--count', 'all', '--format', 'json').stdout)
        self.assertEqual((2, {NO_ROOM: 2}, {'az1': 1, 'nova': 1}), (
            document['count'], document['ran_out'], document['zones']))
        placed.create_flavor('m1.huge', 9)
        done = self.explain('--flavor', 'm1.huge', '--count', 'all')
        self.assertEqual(1, done.returncode)
        self.assertIn('nova-scheduler finds 0 of 2 hosts', done.stdout)

    def test_servers_of_a_host(self):
        """A host without servers can be emptied; another one is an error."""
        done = self.explain('--servers-of', 'near')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.assertIn('No server is on near', done.stdout)
        page = pathlib.Path(
            self.useFixture(base_fixtures.TempDir()).path, 'page.html')
        done = self.explain('--servers-of', 'near', '--html', str(page))
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn('<h1 class="good">', page.read_text())
        done = self.explain('--servers-of', 'typo')
        self.assertEqual(255, done.returncode)
        self.assertIn('nova has no compute node of host typo', done.stderr)


class TestRefusals(ExplainTest):
    """What could not be explained: 255, and one line that says what to do."""

    def assert_refused(self, text, *argv):
        done = self.explain(*(argv or SMALL))
        self.assertEqual((255, ''), (done.returncode, done.stdout), argv)
        [line] = done.stderr.splitlines()
        self.assertIn(text, line)

    def assert_explained(self, summary, *argv):
        done = self.explain(*SMALL, *argv)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertTrue(done.stdout.startswith(summary), done.stdout)

    def test_cell_that_fails_meanwhile(self):
        """Its hosts are not explained, which comes first and is the status.

        Without any host, nothing is explained.
        """
        for cell in 'cell2', 'cell1':
            self.drop(cell, 'services')
            if cell == 'cell2':
                done = self.explain(*SMALL)
                self.assertEqual(5, done.returncode, done.stderr)
                first, _empty, *others = done.stdout.splitlines()
                self.assertIn('the database of cell cell2', first)
                self.assertIn('nova-scheduler finds 1 of 1 hosts (near)',
                              others)
        done = self.explain(*SMALL)
        self.assertEqual((5, ''), (done.returncode, done.stdout))
        self.assertIn('lacks the table', done.stderr)

    def drop(self, cell, table):
        """Break the database of a cell."""
        with self.cloud.nova.in_cell(cell) as context:
            engine = main_db.get_context_manager(context).writer.get_engine()
            with engine.begin() as database:
                database.execute(sa.text('DROP TABLE ' + table))

    def test_server_whose_cell_fails(self):
        """Its creation is explained; a move needs to know its host."""
        server = placed.create_server(
            self.cloud.nova, self.flavor, 'far', 'cell2')
        for table in 'instances', 'compute_nodes':
            self.drop('cell2', table)
        done = self.explain('--server', server)
        self.assertEqual((5, ''), (done.returncode, done.stderr))
        before, finds, _hosts = ' '.join(done.stdout.split()).partition(
            'nova-scheduler finds 1 of 1 hosts (near)')
        self.assertTrue(finds, done.stdout)
        self.assertTrue(before.startswith('the database of cell cell2'))
        self.assertIn('this is about its creation', before)
        done = self.explain('--server', server, '--for', 'migrate')
        self.assertEqual((5, ''), (done.returncode, done.stdout))
        self.assertIn('the database of cell cell2', done.stderr)

    def test_arguments(self):
        """Each tells where to look, or what to give instead."""
        for text, *argv in (
                ('openstack flavor list --all', '--flavor', 'm1.none'),
                ('Describe the server with', '--server', uuidsentinel.none),
                ('; it has ', *SMALL, '--host', 'none'),
                ('--image-property', *SMALL, '--image', uuidsentinel.none),
                ('check flavor, image, zone, hints', *SMALL,
                 '--image-property', 'hw_numa_nodes=two')):
            self.assert_refused(text, *argv)

    def test_glance_that_is_silent(self):
        """It is waited for once."""
        server = self.useFixture(servers.Server(
            lambda _server, client: client.recv(4096) and client.recv(4096)))
        self.write_conf(more=MORE + (
            '[aggregate_mirror]\nrequest_timeout = %d\n'
            '[glance]\nendpoint_override = %s\n' % (
                patience.seconds(3), server.url)))
        self.assert_refused('--image-property', *SMALL, '--image',
                            uuidsentinel.image)
        self.assertEqual(1, server.accepted)

    def test_configuration(self):
        """The option is named, without a password."""
        for text, more in (
                ('[DEFAULT] transport_url', MORE.replace(
                    '[DEFAULT]', '[DEFAULT]\n'
                    'transport_url = nonsense://u:%s@h/' % PASSWORD)),
                ('[filter_scheduler] ram_weight_multiplier in %s is "high": '
                 'set it to a number' % self.conf,
                 MORE + 'ram_weight_multiplier = high\n'),
                ('[DEFAULT] service_down_time in %s is "1m": set it to a '
                 'whole number' % self.conf, MORE.replace(
                     'service_down_time = 100000', 'service_down_time = 1m')),
                ('[filter_scheduler] enabled_filters: ',
                 MORE + 'enabled_filters = None\n'),
                ('[filter_scheduler] available_filters or weight_classes: ',
                 MORE + 'available_filters = os.missing\n'),
                ('[neutron]', ENABLED % ROUTED + (
                    '[aggregate_mirror]\nmissing_credentials = fail\n'))):
            self.write_conf(more=more)
            self.assert_refused(text)

    def test_services_that_are_not_up(self):
        """Whatever hosts there are, no server gets one: that comes first.

        The exit status is that of the hosts.
        """
        scheduler, conductor = self.services
        with self.cloud.nova.in_cell('cell0') as context:
            for service in self.services:
                service._context = context
            scheduler.forced_down = True
            scheduler.save()
            conductor.destroy()
        done = self.explain(*SMALL)
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        text = ' '.join(done.stdout.split())
        self.assertTrue(text.startswith(
            'No nova-scheduler is up, the last report is of 20'), text)
        self.assertIn('No nova-conductor is up, nova has none: no server gets '
                      'a host. Start it. nova-scheduler finds 2', text)

    def test_zones(self):
        """Nova-api refuses unknown ones; it has a default for requests."""
        self.assert_refused(
            'nova has no availability zone az2, and refuses servers for it; '
            'it has az1, internal, nova', *SMALL, '--zone', 'az2')
        self.assert_refused('Unable to parse availability_zone (check flavor, '
                            'image, zone', *SMALL, '--zone', 'a:b:c:d')
        more = MORE.replace(
            '[DEFAULT]', '[DEFAULT]\ndefault_schedule_zone = %s')
        self.write_conf(more=more % 'az1')
        self.assert_explained('nova-scheduler finds 1 of 2 hosts')
        self.assert_explained('nova-scheduler finds 2 of 2 hosts',
                              '--zone', 'nova')
        self.write_conf(more=more % 'az2')
        self.assert_refused('az2 ([DEFAULT] default_schedule_zone), and')

    def test_what_nova_needs(self):
        """The project, for its aggregates; the image, for its format."""
        self.write_conf(more=ENABLED % TENANTS)
        self.assert_refused('give --project')
        self.assert_explained('nova-scheduler finds 2 of 2 hosts', '--project',
                              uuidsentinel.project)
        self.write_conf(more=ENABLED % TYPES)
        self.assert_refused('give --image, or --volume', *SMALL,
                            '--image-property', 'disk_format=qcow2')
        self.assert_explained('nova-scheduler finds 2 of 2 hosts', '--volume')

    def test_request_that_nova_cannot_read(self):
        """The line says how to describe the server instead."""
        with api_db.get_engine().begin() as connection:
            connection.exec_driver_sql(
                'INSERT INTO request_specs (instance_uuid, spec) '
                'VALUES (\'%s\', \'%s\')' % (
                    uuidsentinel.server, '[' * 60000))
        self.assert_refused('(RecursionError). Describe the server with',
                            '--server', uuidsentinel.server)


class TestPage(ExplainTest):
    """The explanation as an HTML page."""

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(base_fixtures.TempDir()).path)
        self.file = self.directory / 'explained.html'

    def test_summary_and_status(self):
        """It prints the summary; the exit status is that of the tables."""
        placed.create_flavor('m1.huge', 9)
        for flavor, status, summary in (
                ('m1.small', 0, 'nova-scheduler finds 1 of 2 hosts (near): '
                 '1 not in zone az1'),
                ('m1.huge', 1, 'nova-scheduler finds 0 of 2 hosts: 2 allow at '
                 'most 2 VCPU for a server')):
            done = self.explain('--flavor', flavor, '--zone', 'az1', '--html',
                                str(self.file))
            self.assertEqual(
                (status, '%s: %s\n' % (self.file, summary), ''),
                (done.returncode, done.stdout, done.stderr))
            self.assertIn('<bdi>%s</bdi></h1>' % summary,
                          self.file.read_text())
        self.assertEqual([self.file], list(self.directory.iterdir()))
