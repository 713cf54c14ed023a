# SPDX-License-Identifier: Apache-2.0
"""Servers with one suitable host of three, when placement offers one.

Stock nova filters the host that placement happens to offer.
"""

import testscenarios

from tests.scheduling import cloud
from tests.scheduling import oracle

load_tests = testscenarios.load_tests_apply_scenarios

HOSTS = tuple('host%02d' % number for number in range(3))
OFFERED = 1


class TruncationTest(testscenarios.WithScenarios, cloud.CloudTest):
    """The suitable host is at each position in turn."""

    scenarios = [(name, {'name': name}) for name in oracle.FILTERS]
    hosts = HOSTS

    def setUp(self):
        super().setUp()
        self.flags(max_placement_results=OFFERED, group='scheduler')
        extra_specs = {}
        if self.name == 'flavor_extra_specs':
            extra_specs = cloud.SSD
        self.wanted = {'flavor_id': self.flavor(**extra_specs)}
        if self.name == 'default_availability_zone':
            self.wanted['az'] = 'nova'
        if self.name == 'image_properties':
            self.wanted['image_uuid'] = self._create_image(
                {'hw_machine_type': 'pc'})['id']

    def found(self):
        """Return the positions at which a server lands on the valid host."""
        if self.name == 'flavor_extra_specs':
            aggregate = self.aggregate('fast', ssd='true')
            begin, end = self.add, self.remove
        else:
            key, value = {
                'tenant_isolation': ('filter_tenant_id', 'others'),
                'image_properties': ('hw_machine_type', 'q35'),
                'type_affinity': ('instance_type', 'm1.other'),
                'default_availability_zone': ('availability_zone', 'east'),
            }[self.name]
            aggregate = self.aggregate('others', HOSTS, **{key: value})
            begin, end = self.remove, self.add
        found = []
        for host in HOSTS:
            begin(aggregate, host)
            server = self.boot(**self.wanted)
            landed = server['OS-EXT-SRV-ATTR:host']
            self.assertIn(landed, (None, host))
            if landed:
                found.append(landed)
                # Nova does not move a host with servers to another zone.
                self._delete_server(server)
            end(aggregate, host)
        return found


class TestStock(TruncationTest):
    """With the host filters only."""

    def setUp(self):
        self.host_filters = (type(oracle.FILTERS[self.name]).__name__,)
        super().setUp()

    def test_found_only_if_offered(self):
        """One position of three."""
        self.assertEqual(OFFERED, len(self.found()))


class TestNarrowed(TruncationTest):
    """With the request filter and the guard, and no other host filter."""

    host_filters = (cloud.GUARD,)

    def setUp(self):
        self.request_filters = (self.name,)
        super().setUp()

    def test_found_at_every_position(self):
        """All three positions."""
        self.assertEqual(list(HOSTS), self.found())
