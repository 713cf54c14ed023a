# SPDX-License-Identifier: Apache-2.0
"""Servers that an administrator forces to a host."""

import testscenarios

from tests.scheduling import cloud
from tests.scheduling import oracle

load_tests = testscenarios.load_tests_apply_scenarios

HOSTS = ('fast', 'theirs', 'east')


class TestForcedHosts(testscenarios.WithScenarios, cloud.CloudTest):
    """Aggregates do not limit forced hosts, as in stock nova."""

    scenarios = [
        ('stock', {'host_filters': tuple(
            type(one).__name__ for one in oracle.FILTERS.values())}),
        ('ours', {'host_filters': (cloud.GUARD,),
                  'request_filters': tuple(oracle.FILTERS)})]
    hosts = HOSTS

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
        for host in HOSTS:
            self.assert_lands(host, '%s:%s:%s' % (self.zone(host), host, host))
            self.assert_lands(host, '%s:%s' % (self.zone(host), host))
            self.assert_lands(host, '%s::%s' % (self.zone(host), host))

    def zone(self, host):
        return 'east' if host == 'east' else 'nova'

    def test_nobody_names_a_host(self):
        """Aggregates limit all other requests."""
        self.assert_lands('fast', 'nova')
