# SPDX-License-Identifier: Apache-2.0
"""Several servers, one after the other: as predicted, and as nova does it.

A real nova and placement in this process. Each of the servers alone finds a
host.
"""

import fixtures as base_fixtures
from nova.conf import CONF
from nova import exception as nova_exception
from nova import objects
from nova.scheduler.filters import compute_filter
from oslo_utils import fixture
from oslo_utils.fixture import uuidsentinel

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import departures
from nova_aggregate_mirror.explain import emptying
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.scheduler import moving
from tests.scheduling import explaining

PARTS = 'CUSTOM_PARTS'
HOST = 'OS-EXT-SRV-ATTR:host'
# Operation to nova's action, its name, and the event that fails.
ACTIONS = {
    moving.LIVE: ({'os-migrateLive': {
        'host': None, 'block_migration': 'auto'}},
        'live-migration', 'conductor_live_migrate_instance'),
    moving.COLD: (
        {'migrate': None}, 'migrate', 'cold_migrate'),
}


class FillingTest(explaining.ExplainingTest):

    microversion = 'latest'
    hosts = ('h1', 'h2', 'h3')
    host_filters = ('DifferentHostFilter',)

    def setUp(self):
        super().setUp()
        self.plain = self.flavor()

    def _start_compute(self, host, cell_name=None):
        self.flags(initial_cpu_allocation_ratio=1.0)
        return super()._start_compute(host, cell_name)

    def server(self, name, flavor='', host='h1', **hints):
        """Boot a server on a host; return its ID."""
        server = self.admin_api.post_server({
            'server': self._build_server(
                name=name, flavor_id=flavor or self.plain, networks='none',
                host=host), 'os:scheduler_hints': hints})
        self.become(server, status='ACTIVE')
        return server['id']

    def predicted(self, operation='', order='name'):
        """Return where the servers of the first host would go."""
        return emptying.explain(
            self.cloud(), 'h1', operation, order).departures

    def assertMoves(self, expected, found):
        """Compare names and hosts, and move the servers in nova."""
        self.assertEqual(expected, {
            one.name: one.destination for one in found})
        for one in found:
            # Each of them would find a host if it alone was moved.
            self.assertTrue(one.destination or one.first, one.reason)
            self.moved(one)

    def moved(self, one):
        """Move a server as predicted, until nova-compute has reported it."""
        server, (action, name, event) = (
            {'id': one.server}, ACTIONS[one.operation])
        self.admin_api.post_server_action(one.server, action)
        if not one.destination:
            self._wait_for_action_fail_completion(server, name, event)
            self.become(server, **{HOST: 'h1'})
            return
        if one.operation == moving.COLD:
            self.become(server, status='VERIFY_RESIZE')
            self.admin_api.post_server_action(
                one.server, {'confirmResize': None})
        self.become(server, status='SHUTOFF' if one.state == 'stopped'
                    else 'ACTIVE', **{HOST: one.destination})
        self._run_periodics()


class TestTogether(FillingTest):

    def test_server_whose_request_cannot_be_read(self):
        """Nova fails its move; the others find their hosts."""
        lost = self.server('lost')
        self.server('web')
        objects.RequestSpec._destroy_in_db(self.context, lost)
        by_name = {one.name: one for one in self.predicted()}
        self.assertEqual('', by_name['lost'].destination)
        self.assertIn('nova has no request of server', by_name['lost'].reason)
        self.assertNotEqual('', by_name['web'].destination)

    def test_two_servers_and_one_gap(self):
        """The larger one goes first, or by name; the other finds no host."""
        self.server('a')
        self.server('b', self.flavor('large', 128, 2))
        self.reserve('h3', 'VCPU')
        inventory = self._get_provider_inventory(
            self._get_provider_uuid_by_host('h2'))['VCPU']
        self.reserve('h2', 'VCPU', inventory['total'] - 2)
        self.assertEqual(['h2', ''], [
            one.destination for one in self.predicted()])
        found = self.predicted(order='size')
        self.assertEqual(['b', 'a'], [one.name for one in found])
        self.assertEqual(
            'no host is left after 1 move (VCPU); if it goes first it takes '
            'h2, and another may find none', found[1].reason)
        self.assertMoves({'b': 'h2', 'a': ''}, found)

    def test_images_of_volumes(self):
        """The answer about one server is not that about another one."""
        for name, traits in ('a', ['CUSTOM_GPU']), ('b', []):
            spec = objects.RequestSpec.get_by_instance_uuid(
                self.context, self.server(name))
            # Nova stores no ID of the image of a volume.
            spec.image = objects.ImageMeta(
                properties=objects.ImageMetaProps(traits_required=traits))
            spec.save()
        self.placement.put('/traits/CUSTOM_GPU', None, version='1.6')
        for host in 'h2', 'h3':
            self.reserve(host, 'VCPU')
        first, second = self.predicted()
        self.assertIn('CUSTOM_GPU', first.reason)
        self.assertNotIn('CUSTOM_GPU', second.reason)

    def test_different_host(self):
        """A server avoids the destination of the one before it."""
        first, second = self.server('a'), self.server('b')
        spec = objects.RequestSpec.get_by_instance_uuid(self.context, second)
        spec.scheduler_hints = {'different_host': [first]}
        spec.save()
        self.reserve('h3', 'VCPU')
        found = self.predicted()
        self.assertIn('(DifferentHostFilter)', found[1].reason)
        self.assertMoves({'a': 'h2', 'b': ''}, found)


class TestServers(FillingTest):

    def test_what_cannot_be_moved(self):
        """It is told apart from what finds no host."""
        stopped, broken, resized, _active = map(
            self.server, ('stopped', 'broken', 'resized', 'active'))
        self.admin_api.post_server_action(stopped, {'os-stop': {}})
        self.become({'id': stopped}, status='SHUTOFF')
        self.admin_api.post_server_action(
            broken, {'os-resetState': {'state': 'error'}})
        self.admin_api.post_server_action(resized, {'migrate': None})
        self.become({'id': resized}, status='VERIFY_RESIZE')
        found = self.predicted()
        self.assertEqual({
            'active': (moving.LIVE, 'h2', ''),
            'stopped': (moving.COLD, 'h2', ''),
            'broken': ('', '', 'in ERROR'),
            'resized': ('', '', 'resize not confirmed')}, {
                one.name: (one.operation, one.destination, one.reason)
                for one in found})
        self.assertEqual(
            '2 of 4 servers find a host; 2 cannot be moved now (1 in ERROR, 1 '
            'resize not confirmed)',
            departures.sentence(departures.Answer('h1', found)))
        self.moved(found[1])
        [evacuated] = [one for one in self.predicted(moving.EVACUATION)
                       if one.name == 'broken']
        self.assertEqual('h2', evacuated.destination)

    def test_no_host_for_one_alone(self):
        """The reason is that of the explanation of its own request."""
        group = self.admin_api.post_server_groups(
            {'name': 'together', 'policy': 'affinity'})['id']
        server = [self.server(name, group=group) for name in ('a', 'b')][0]
        expected = 'none of 3 hosts takes it: ' + explanation.excluded(
            self.explain_server({'id': server}, moving.LIVE))
        self.assertEqual([('', '', expected)] * 2, [
            (one.destination, one.first, one.reason)
            for one in self.predicted()])

    def test_shared_storage(self):
        """A migration gives back what it held; an evacuation does not."""
        for host in self.hosts:
            self.reserve(host, 'DISK_GB')
        aggregate = uuidsentinel.shared
        self._providers['storage'] = self.placement.post(
            '/resource_providers', {'name': 'storage'},
            version='1.36').body['uuid']
        # Room for the two servers and for one of the moves at a time.
        self._put('storage', 'inventories', inventories={
            'DISK_GB': {'total': 3}})
        self.set_trait('storage', 'MISC_SHARES_VIA_AGGREGATE')
        for name in (*self.hosts, 'storage'):
            self.set_aggregates(name, aggregate)
        for name in 'a', 'b':
            # Nova takes no shared storage for a host that is named; the first
            # one has the largest weight.
            self.server(name, host=None)
        self.assertEqual(['h2', ''], [
            one.destination for one in self.predicted(moving.EVACUATION)])
        self.assertMoves({'a': 'h2', 'b': 'h2'}, self.predicted())

    def test_ironic(self):
        """There are no moves of its servers."""
        self.execute('cell1', "UPDATE compute_nodes SET hypervisor_type = "
                     "'ironic' WHERE host = 'h1'")
        error = self.assertRaises(exceptions.UnknownName, self.predicted)
        self.assertIn(
            str(nova_exception.InstanceEvacuateNotSupported()), str(error))


class TestAll(FillingTest):

    def setUp(self):
        super().setUp()
        self.wanted = self.flavor('parts', **{'resources:' + PARTS: '1'})

    def filled(self):
        return self.explain(self.described(
            'parts', count=explanation.MAX_SERVERS))

    def test_until_nothing_is_left(self):
        """The number is that of the servers that nova then creates."""
        self.provide('h1', PARTS, 2)
        self.provide('h3', PARTS, 3)
        answer = self.filled()
        self.assertEqual(
            '5 more; then CUSTOM_PARTS on 2 of 3 hosts, 1 have no '
            'CUSTOM_PARTS', explanation.sentence(answer))
        created = []
        while self.boot(flavor_id=self.wanted)['status'] == 'ACTIVE':
            created.append(1)
        self.assertEqual(5, len(created))
        self.assertEqual({'nova': 5}, answer.zones)

    def test_host_that_is_mapped_to_no_cell(self):
        """Nova-conductor fails the servers that get it."""
        for host in 'h1', 'h3':
            self.provide(host, PARTS, 2)
        objects.HostMapping.get_by_host(self.context, 'h3').destroy()
        answer = self.filled()
        self.assertEqual(['h1', 'h1'], answer.placed)
        self.assertEqual({PARTS: 1, 'no host mapping': 1}, answer.ran_out)

    def test_time_passes(self):
        """Nova-computes that were up stay so, however long it takes."""
        self.provide('h1', PARTS, 20)
        clock = self.useFixture(fixture.TimeFixture())
        passing = compute_filter.ComputeFilter.host_passes

        def slow(*arguments):
            clock.advance_time_seconds(CONF.service_down_time / 8)
            return passing(*arguments)

        self.useFixture(base_fixtures.MonkeyPatch(
            'nova.scheduler.filters.compute_filter.ComputeFilter.host_passes',
            slow))
        self.assertEqual(10, self.filled().count)

    def test_filter_that_fails_later(self):
        """Its failure is the answer: nova fails the request in the end."""
        self.provide('h1', PARTS, 20)
        passing, calls = compute_filter.ComputeFilter.host_passes, []

        def failing(*arguments):
            calls.append(arguments)
            if len(calls) > 8:
                raise KeyError('missing')
            return passing(*arguments)

        self.useFixture(base_fixtures.MonkeyPatch(
            'nova.scheduler.filters.compute_filter.ComputeFilter.host_passes',
            failing))
        self.assertEqual("ComputeFilter raises KeyError: 'missing'",
                         self.filled().failure)
