# SPDX-License-Identifier: Apache-2.0
"""Findings about drift."""

import types

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import drift
from nova_aggregate_mirror import exceptions
from tests.unit import doubles

USER = 4711


class TestDrift(doubles.TestCase):

    def find(self) -> checks.Findings:
        self.nova.zones = lambda: {}
        return drift.find(types.SimpleNamespace(
            conf=self.conf, journal=self.journal, source=self.nova,
            client=self.placement))

    def test_what_cannot_be_read(self):
        """The remedy depends on the unavailable service."""
        for error, cure in (
                (exceptions.DeadlineExceeded('slow'),
                 ('[aggregate_mirror]', 'request_timeout = 120')),
                (exceptions.ServiceFailed('500'),
                 ('systemctl restart placement-api',))):
            self.placement.broken = {('LIST', ''): error}
            one, = self.find()
            self.assertEqual((checks.Code.FAILURE, cure),
                             (one.code, one.cure))
        self.nova.broken = exceptions.NovaUnavailable('refused')
        one, = self.find()
        self.assertEqual('[api_database]', one.cure[0])

    def test_provider_that_cannot_be_read(self):
        """The other providers are still compared."""
        self.nova.hosts_of = {'a': {'h1', 'h2'}}
        self.nova.nodes = {'n1': 'h1', 'n2': 'h2'}
        for node in self.nova.nodes:
            self.placement.create(node)
        self.placement.broken = {
            ('GET', 'n1'): exceptions.MalformedAnswer('half of it.')}
        place, cure, unknown = self.find()
        self.assertIn('lacks host h2.', place.text)
        self.assertEqual(checks.Code.FAILURE, unknown.code)
        self.assertIn('n1: half of it.', unknown.text)
        self.assertEqual((checks.SYNC + ' --dry-run',), unknown.cure)

    def test_hosts_that_share_a_compute_node(self):
        """Each of them is named."""
        self.nova.hosts_of = {'a': {'h1', 'twin'}}
        self.nova.nodes = {'n1': 'h1'}
        self.nova.twins = {'n1': 'twin'}
        self.placement.create('n1')
        place, *_others = self.find()
        self.assertIn('lacks host h1, host twin.', place.text)

    def test_many_hosts(self):
        """Only a few are named; a host with many nodes counts once."""
        self.nova.hosts_of = {'a': {'h%d' % i for i in range(9)}}
        for number in range(18):
            node = 'n%02d' % number
            self.nova.nodes[node] = 'h%d' % (number % 9)
            self.placement.create(node)
        first, cure = self.find()
        self.assertEqual('In placement, aggregate name of a lacks host h0, '
                         'host h1, host h2, host h3, host h4 and 4 more.',
                         first.text)
        self.assertEqual((checks.SYNC,), cure.cure)
