# SPDX-License-Identifier: Apache-2.0
"""How a real placement answers narrowed queries."""

import logging

import fixtures
import hypothesis
from nova.conf import CONF
from nova import exception as nova_exception
from nova.scheduler import utils
from oslo_utils.fixture import uuidsentinel as uuids
import requests
import testtools

from nova_aggregate_mirror.scheduler import request_filters
from tests import placement_service
from tests.scheduling import oracle
from tests.scheduling import process
from tests.scheduling import worlds

ENOUGH = 65536
CASES = 40
"""For each request filter, and for all of them together."""


class TestQueries(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.process = self.useFixture(process.SchedulerProcess())
        self.useFixture(fixtures.FakeLogger(level=logging.CRITICAL))
        self.placement = self.useFixture(placement_service.PlacementService())
        self.aggregates = {}
        for host in worlds.HOSTS:
            provider = getattr(uuids, host)
            self.placement.create_provider(provider, host)
            self.placement.set_inventories(
                provider, VCPU=8, MEMORY_MB=1024, DISK_GB=10)
            self.placement.set_traits(provider, 'HW_CPU_X86_SSE')

    def load(self, *names):
        self.process.configure(*names)
        self.filters = request_filters.load(CONF)[0]

    def set_aggregates(self, name, aggregates):
        # Nothing else changes placement.
        if self.aggregates.get(name, frozenset()) != aggregates:
            self.placement.set_aggregates(getattr(uuids, name), aggregates)
            self.aggregates[name] = frozenset(aggregates)

    def narrowed(self, world):
        spec = worlds.request_spec(**world.spec)
        request_filters.Narrowing(self.filters, world, ENOUGH)(None, spec)
        return spec

    def candidates(self, spec):
        """Return the compute nodes that placement offers."""
        query = utils.resources_from_request_spec(None, spec, None)
        answer = requests.get(
            '%s/allocation_candidates?%s' % (
                self.placement.url, query.to_querystring()),
            headers={'X-Auth-Token': placement_service.TOKEN,
                     'OpenStack-API-Version': placement_service.MICROVERSION})
        self.assertEqual(200, answer.status_code, answer.text)
        providers = answer.json()['provider_summaries']
        return frozenset(host for host in worlds.HOSTS
                         if getattr(uuids, host) in providers)

    def test_placement_is_the_oracle(self):
        """The oracle agrees, for a sample of the worlds of each filter."""
        answers = []
        for name in oracle.FILTERS:
            answers += self.play(name)
        answers += self.play(*sorted(oracle.FILTERS))
        self.assertGreater(len(set(answers)), len(worlds.HOSTS))

    def play(self, *names):
        self.load(*names)
        answers = []

        @hypothesis.settings(
            max_examples=CASES, deadline=None, derandomize=True,
            database=None, suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(world=worlds.worlds(names))
        def play(world):
            try:
                spec = self.narrowed(world)
            except nova_exception.RequestFilterFailed:
                return
            for host in worlds.HOSTS:
                self.set_aggregates(host, world.members[host])
            answers.append(self.candidates(spec))
            self.assertEqual(world.offered(spec), answers[-1])

        play()
        return answers

    def test_resources_in_groups_with_a_suffix_only(self):
        """Placement would reject aggregates there, so the query has none."""
        self.load(*oracle.FILTERS)
        world = worlds.World(
            members={host: frozenset() for host in worlds.HOSTS},
            metadata={uuids.theirs: {'filter_tenant_id': 'tenant-b'}},
            spec={'extra_specs': {
                'resources:VCPU': '0', 'resources:MEMORY_MB': '0',
                'resources:DISK_GB': '0', 'resources1:VCPU': '1'}},
            namespace=None, separator='.')
        self.assertEqual(frozenset(worlds.HOSTS),
                         self.candidates(self.narrowed(world)))
