# SPDX-License-Identifier: Apache-2.0
"""``scheduling explain`` as an operator runs it: output and exit status."""

import json
import pathlib

import fixtures as base_fixtures
from nova import context as nova_context
from nova.db.main import api as main_db
from nova.db.main import models
from nova import objects
from oslo_utils.fixture import uuidsentinel

from tests.functional import test_manage
from tests.unit import servers

PATIENCE = 60
MORE = """
[DEFAULT]
service_down_time = 100000
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_aggregate_mirror.scheduler.filters.all_filters
"""


class ExplainTest(test_manage.ManageTest):

    def setUp(self):
        super().setUp()
        self.write_conf(more=MORE)
        self.flavor('m1.small', 1)
        self.near, self.far = (
            self.ready(name, cell) for name, cell in (
                ('near', 'cell1'), ('far', 'cell2')))
        self.assertEqual(200, self.cloud.add_host(
            self.zone, self.near).status)
        self.cloud.placement.set_aggregates(
            self.near.nodes[0], [self.zone.uuid])

    def flavor(self, name, vcpus):
        objects.Flavor(
            nova_context.get_admin_context(), name=name, flavorid=name,
            vcpus=vcpus, memory_mb=1, root_gb=1, ephemeral_gb=0, swap=0,
            rxtx_factor=1.0, disabled=False, is_public=True).create()

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
        return self.run_command('scheduling', 'explain', *argv)


class TestExplain(ExplainTest):

    def test_hosts_in_two_cells(self):
        """It exits with 0 and tells why the other host is not used."""
        done = self.explain('--flavor', 'm1.small', '--zone', 'az1')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.assertEqual(
            '1 of 2 hosts can take the server (near): 1 not in zone az1',
            done.stdout.splitlines()[0])
        self.assertIn('if it should be: openstack aggregate', done.stdout)

    def test_message_queue_that_is_not_configured(self):
        """One line, without the password in the URL."""
        self.write_conf(more=MORE.replace(
            '[DEFAULT]', '[DEFAULT]\ntransport_url = nonsense://u:hunter2@h/'))
        done = self.explain('--flavor', 'm1.small')
        self.assertEqual((255, ''), (done.returncode, done.stdout))
        self.assertIn('[DEFAULT] transport_url', done.stderr)
        self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)
        self.assertNotIn('hunter2', done.stderr)

    def test_no_host(self):
        """It exits with 1; the document has the reasons for a program."""
        self.flavor('m1.huge', 9)
        done = self.explain('--flavor', 'm1.huge', '--format', 'json',
                            '--host', 'far')
        self.assertEqual((1, ''), (done.returncode, done.stderr))
        answer = json.loads(done.stdout)
        self.assertEqual('0 of 1 hosts: 1 have fewer than 9 VCPU free',
                         answer['summary'])
        [host] = answer['hosts']
        self.assertEqual(
            ('far', 'resources', 'asked 9, free 2 of 2 x 1'),
            (host['host'], host['kind'], host['detail']))

    def test_hosts_that_share_a_compute_node(self):
        """Each of them can be explained."""
        twin = self.cloud.create_host(
            'twin', cell='cell2', providers=False)
        with self.cloud.nova.in_cell('cell2') as context:
            with main_db.get_context_manager(context).writer.using(context):
                context.session.query(models.ComputeNode).filter_by(
                    uuid=twin.nodes[0]).update({'uuid': self.near.nodes[0]})
        for host in 'near', 'twin':
            done = self.explain('--flavor', 'm1.small', '--host', host)
            self.assertEqual('', done.stderr)
            self.assertIn(' of 1 hosts', done.stdout)

    def test_log_lines_are_not_in_the_document(self):
        """A program that reads the standard output gets JSON only."""
        self.write_conf(more=MORE + '[DEFAULT]\ndebug = true\n')
        done = self.explain('--flavor', 'm1.small', '--format', 'json')
        self.assertIn('DEBUG', done.stderr)
        self.assertIn('hosts', json.loads(done.stdout))

    def test_glance_that_is_silent(self):
        """It exits with 255 and tells what to give instead of the image."""
        server = self.useFixture(servers.Server(
            lambda _server, client: client.recv(4096) and client.recv(4096)))
        self.write_conf(more=MORE + '[aggregate_mirror]\nrequest_timeout = 1\n'
                        '[glance]\nendpoint_override = %s\n' % server.url)
        done = self.explain('--flavor', 'm1.small',
                            '--image', uuidsentinel.image)
        self.assertEqual((255, ''), (done.returncode, done.stdout))
        [line] = done.stderr.splitlines()
        self.assertIn('--image-property', line)
        self.assertEqual(1, server.accepted)

    def test_what_cannot_be_explained(self):
        """It exits with 255 and one line that says what to do."""
        for argv, said in (
                (['--flavor', 'm1.none'], 'openstack flavor list --all'),
                (['--server', uuidsentinel.none], 'Describe the server with'),
                (['--server', 'none'], 'openstack server list'),
                (['--flavor', 'm1.small', '--project', 'none'],
                 'looking up project none'),
                (['--flavor', 'm1.small', '--host', 'none'],
                 'openstack compute service list'),
                (['--flavor', 'm1.small', '--hint',
                  'group=' + uuidsentinel.none], 'server group list'),
                (['--flavor', 'm1.small', '--for', 'resize'], 'new flavor'),
                (['--flavor', 'm1.small', '--image', uuidsentinel.none],
                 '--image-property')):
            done = self.explain(*argv)
            self.assertEqual((255, ''), (done.returncode, done.stdout), argv)
            [line] = done.stderr.splitlines()
            self.assertIn(said, line)

    def test_placement_is_unavailable(self):
        """It exits with 255: no condition can be checked without it."""
        self.cloud.placement.refuse()
        done = self.explain('--flavor', 'm1.small')
        self.assertEqual(255, done.returncode)
        [line] = done.stderr.splitlines()
        self.assertIn('refused the connection', line)

    def test_database_is_unavailable(self):
        """It exits with 255, and one line names the option."""
        self.conf.write_text(self.conf.read_text().replace(
            '[api_database]\nconnection = sqlite:///',
            '[api_database]\nconnection = sqlite:////nowhere'))
        done = self.explain('--flavor', 'm1.small')
        self.assertEqual(255, done.returncode, done.stdout)
        [line] = done.stderr.splitlines()
        self.assertIn('nova\'s API database ', line)

    def test_flavor_that_nova_refuses(self):
        """It exits with 255, and one line has the reason of nova."""
        done = self.explain('--flavor', 'm1.small', '--image-property',
                            'hw_numa_nodes=two')
        self.assertEqual(255, done.returncode, done.stdout)
        [line] = done.stderr.splitlines()
        self.assertIn('check flavor, image and hints', line)

    def test_refused_by_a_request_filter(self):
        """Only the explanation is printed, not what nova-scheduler logs."""
        self.write_conf(more=MORE + (
            'enabled_filters = AggregateMembershipFilter\n'
            '[aggregate_mirror]\nrequest_filters = flavor_extra_specs\n'))
        flavor = objects.Flavor.get_by_name(
            nova_context.get_admin_context(), 'm1.small')
        flavor.extra_specs = {'ssd': 'true'}
        flavor.save()
        done = self.explain('--flavor', 'm1.small')
        self.assertEqual((1, ''), (done.returncode, done.stderr))
        self.assertEqual(
            "0 of 2 hosts: no host aggregate matches the flavor's extra spec "
            'ssd', done.stdout.splitlines()[0])

    def test_unknown_host_filter(self):
        """The option is named."""
        self.write_conf(more=MORE + 'enabled_filters = None\n')
        done = self.explain('--flavor', 'm1.small')
        self.assertEqual(255, done.returncode)
        [line] = done.stderr.splitlines()
        self.assertIn('[filter_scheduler] enabled_filters: ', line)


class TestPage(ExplainTest):
    """The explanation as an HTML page."""

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(base_fixtures.TempDir()).path)
        self.file = self.directory / 'explained.html'

    def test_summary_and_status(self):
        """It prints the summary; the exit status is that of the tables."""
        self.flavor('m1.huge', 9)
        for flavor, status, summary in (
                ('m1.small', 0, '1 of 2 hosts can take the server (near): '
                 '1 not in zone az1'),
                ('m1.huge', 1, '0 of 2 hosts: 2 have fewer than 9 VCPU free')):
            done = self.explain('--flavor', flavor, '--zone', 'az1', '--html',
                                str(self.file))
            self.assertEqual(
                (status, '%s: %s\n' % (self.file, summary), ''),
                (done.returncode, done.stdout, done.stderr))
            self.assertIn('<bdi>%s</bdi></h1>' % summary,
                          self.file.read_text())
        self.assertEqual([self.file], list(self.directory.iterdir()))

    def test_standard_output(self):
        """It gets only the page; the summary goes to standard error."""
        done = self.explain('--flavor', 'm1.small', '--html', '-')
        self.assertEqual(0, done.returncode)
        self.assertTrue(done.stdout.startswith('<!DOCTYPE html>'))
        self.assertTrue(done.stdout.endswith('</html>'))
        self.assertEqual('standard output: 2 of 2 hosts can take the server '
                         '(far, near)\n', done.stderr)
