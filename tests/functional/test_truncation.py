# SPDX-License-Identifier: Apache-2.0
"""Servers with one suitable host of three, when placement offers one.

Stock nova filters the host that placement happens to offer. What each request
filter adds to the query is in ``tests.unit.scheduler.test_equivalence``.
"""

from tests.scheduling import cloud
from tests.scheduling import oracle

NAME = 'flavor_extra_specs'
HOSTS = tuple('host%02d' % number for number in range(3))
OFFERED = 1


class TruncationTest(cloud.CloudTest):
    """The suitable host is at each position in turn."""

    hosts = HOSTS

    def setUp(self):
        super().setUp()
        self.flags(max_placement_results=OFFERED, group='scheduler')
        self.wanted = {'flavor_id': self.flavor(**cloud.SSD)}

    def found(self):
        """Return the positions at which a server lands on the valid host."""
        aggregate = self.aggregate('fast', ssd='true')
        found = []
        for host in HOSTS:
            self.add(aggregate, host)
            server = self.boot(**self.wanted)
            landed = server['OS-EXT-SRV-ATTR:host']
            self.assertIn(landed, (None, host))
            if landed:
                found.append(landed)
                self._delete_server(server)
            self.remove(aggregate, host)
        return found


class TestStock(TruncationTest):
    """With the host filter only."""

    host_filters = (type(oracle.FILTERS[NAME]).__name__,)

    def test_found_only_if_offered(self):
        """One position of three."""
        self.assertEqual(OFFERED, len(self.found()))


class TestNarrowed(TruncationTest):
    """With the request filter and the guard, and no other host filter."""

    request_filters = (NAME,)
    host_filters = (cloud.GUARD,)

    def test_found_at_every_position(self):
        """All three positions."""
        self.assertEqual(list(HOSTS), self.found())
