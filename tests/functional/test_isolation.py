# SPDX-License-Identifier: Apache-2.0
"""Where servers land, also while placement's aggregates differ from nova's.

The wrong host always has the highest weight, so that only a filter can keep a
server off it.
"""

import fixtures as base_fixtures
from nova.scheduler import utils
import testscenarios

from tests.scheduling import cloud
from tests.scheduling import explaining
from tests.scheduling import oracle

load_tests = testscenarios.load_tests_apply_scenarios

WRONG, RIGHT, SPARE = 'wrong', 'right', 'spare'


class IsolationTest(explaining.ExplainingTest):
    """With the guard."""

    hosts = (WRONG, RIGHT, SPARE)
    host_filters = (cloud.GUARD,)

    def assert_lands(self, server, host, **expected):
        self.become(server, **expected, **{'OS-EXT-SRV-ATTR:host': host})


class TestStaleAssociation(IsolationTest):
    """Placement still has a host that nova has removed from the aggregate."""

    request_filters = ('flavor_extra_specs',)

    def test_each_operation(self):
        """The server is created on, and moves to, hosts of the aggregate."""
        fast = self.aggregate('fast', [RIGHT, SPARE], ssd='true',
                              availability_zone='east')
        small, large = (self.flavor(name, memory, **cloud.SSD)
                        for name, memory in (('small', 64), ('large', 96)))
        self.set_aggregates(WRONG, self.uuid(fast))
        server = self.boot(flavor_id=small, az='east')
        self.assert_lands(server, RIGHT)
        for action, status, host in (
                ({'migrate': None}, 'VERIFY_RESIZE', SPARE),
                ({'confirmResize': None}, 'ACTIVE', SPARE),
                ({'resize': {'flavorRef': large}}, 'VERIFY_RESIZE', RIGHT),
                ({'confirmResize': None}, 'ACTIVE', RIGHT),
                ({'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
                 'ACTIVE', SPARE),
                ({'shelve': {}}, 'SHELVED_OFFLOADED', None),
                ({'unshelve': None}, 'ACTIVE', RIGHT)):
            self.admin_api.post_server_action(server['id'], action)
            self.assert_lands(server, host, status=status)
        self.computes[RIGHT].stop()
        self.admin_api.put_service_force_down(self.service(RIGHT), True)
        self.admin_api.post_server_action(server['id'], {'evacuate': {}})
        self.assert_lands(server, SPARE)


class TestHintOfRebuild(IsolationTest):
    """A user's hint makes nova believe that a server is rebuilt.

    Nova 29.4.0 and 30.3.0 accept it, and nova keeps it for later moves.
    """

    request_filters = ('tenant_isolation',)

    def test_stored_hint(self):
        """A server that an older nova has created is moved."""
        properties = utils.build_filter_properties

        def build(hints, *arguments):
            return properties({
                **(hints or {}), '_nova_check_type': 'rebuild'}, *arguments)

        self.aggregate('theirs', [WRONG], filter_tenant_id='others')
        # As nova 29 does.
        with base_fixtures.MonkeyPatch(
                'nova.scheduler.utils.build_filter_properties', build):
            server = self.boot(flavor_id=self.flavor(), az='nova:' + RIGHT)
        self.become(server, **{'OS-EXT-SRV-ATTR:host': RIGHT})
        self.admin_api.post_server_action(server['id'], {
            'os-migrateLive': {'host': None, 'block_migration': 'auto'}})
        self.assert_lands(server, SPARE, status='ACTIVE')


class TestMixedHost(IsolationTest):
    """Placement is in sync, but a query cannot express the rule."""

    request_filters = ('tenant_isolation',)

    def test_create(self):
        """A host in both kinds keeps its aggregate from being forbidden."""
        self.aggregate('theirs', [WRONG, SPARE], filter_tenant_id='others')
        self.aggregate('mine', [SPARE],
                       filter_tenant_id=self.admin_api.project_id)
        self.assert_lands(self.boot(flavor_id=self.flavor()), RIGHT)


class TestTenants(explaining.ExplainingTest):
    """Nova confines a tenant, and this package keeps others out."""

    hosts = ('free', 'own')
    host_filters = (cloud.GUARD,)
    request_filters = ('tenant_isolation',)

    def setUp(self):
        super().setUp()
        self.flags(limit_tenants_to_placement_aggregate=True,
                   group='scheduler')
        self.aggregate('own', ['own'], filter_tenant_id='listed')
        self.wanted = self.flavor()

    def boot_as(self, project):
        """Boot a server of a tenant; return its host, or None."""
        self.admin_api.project_id = project
        return self.boot(flavor_id=self.wanted)['OS-EXT-SRV-ATTR:host']

    def enable(self, host, status):
        self.admin_api.put_service(self.service(host), {'status': status})

    def test_tenant_has_its_hosts_and_no_others(self):
        """Even when only the hosts of other tenants have room."""
        self.assertEqual(('own', 'free'),
                         (self.boot_as('listed'), self.boot_as('other')))
        self.enable('free', 'disabled')
        self.assertEqual(('own', None),
                         (self.boot_as('listed'), self.boot_as('other')))
        self.enable('free', 'enabled')
        self.enable('own', 'disabled')
        self.assertEqual((None, 'free'),
                         (self.boot_as('listed'), self.boot_as('other')))


class TestForcedHosts(testscenarios.WithScenarios, cloud.CloudTest):
    """Aggregates do not limit forced hosts, as in stock nova."""

    scenarios = [
        ('stock', {'host_filters': tuple(
            type(one).__name__ for one in oracle.FILTERS.values())}),
        ('ours', {'host_filters': (cloud.GUARD,),
                  'request_filters': tuple(oracle.FILTERS)})]
    hosts = ('fast', 'theirs', 'east')

    def setUp(self):
        super().setUp()
        self.aggregate('fast', ['fast'], ssd='true')
        self.aggregate('theirs', ['theirs'], filter_tenant_id='others',
                       instance_type='m1.other')
        self.aggregate('east', ['east'], availability_zone='east')
        self.wanted = self.flavor(**cloud.SSD)

    def assert_lands(self, host, zone):
        server = self.boot(flavor_id=self.wanted, az=zone)
        self.assertEqual(host, server['OS-EXT-SRV-ATTR:host'])

    def test_each_host_and_node(self):
        """A server boots on the requested host."""
        for host in self.hosts:
            self.assert_lands(host, '%s:%s:%s' % (self.zone(host), host, host))
            self.assert_lands(host, '%s:%s' % (self.zone(host), host))
            self.assert_lands(host, '%s::%s' % (self.zone(host), host))

    def zone(self, host):
        return 'east' if host == 'east' else 'nova'

    def test_nobody_names_a_host(self):
        """Aggregates limit all other requests."""
        self.assert_lands('fast', 'nova')
