# SPDX-License-Identifier: Apache-2.0
"""How a real placement answers narrowed queries, and their limits."""

import logging

import fixtures
import hypothesis
from nova.conf import CONF
from nova import exception as nova_exception
from nova.scheduler import utils
from nova.tests.functional import fixtures as nova_fixtures
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_aggregate_mirror.scheduler import request_filters
from tests.scheduling import oracle
from tests.scheduling import process
from tests.scheduling import worlds

VERSION = '1.36'
ENOUGH = 65536
CASES = 40
"""For each request filter, and for all of them together."""


class QueryTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.process = self.useFixture(process.SchedulerProcess())
        self.useFixture(fixtures.FakeLogger(level=logging.CRITICAL))
        self.placement = self.useFixture(nova_fixtures.PlacementFixture()).api
        # Nothing else changes placement.
        self.generations, self.aggregates = {}, {}

    def load(self, *names):
        self.process.configure(*names)
        self.filters = request_filters.load(CONF)[0]

    def call(self, method, path, body=None):
        arguments = (path,) if body is None else (path, body)
        answer = getattr(self.placement, method)(*arguments, version=VERSION)
        self.assertLess(answer.status, 300, answer.body)
        return answer.body

    def create(self, name, *traits, **inventory):
        uuid = getattr(uuids, name)
        self.generations[uuid] = self.call(
            'post', '/resource_providers', {'uuid': uuid, 'name': name}
        )['generation']
        self.put(uuid, 'inventories', {'inventories': {
            resource: {'total': total} for resource, total
            in inventory.items()}})
        self.put(uuid, 'traits', {'traits': list(traits)})

    def put(self, provider, what, body):
        generation = 'resource_provider_generation'
        self.generations[provider] = self.call(
            'put', '/resource_providers/%s/%s' % (provider, what),
            {**body, generation: self.generations[provider]})[generation]

    def set_aggregates(self, name, aggregates):
        wanted = sorted(aggregates)
        if self.aggregates.get(name, []) != wanted:
            self.put(getattr(uuids, name), 'aggregates',
                     {'aggregates': wanted})
            self.aggregates[name] = wanted

    def narrowed(self, world):
        spec = worlds.request_spec(**world.spec)
        request_filters.Narrowing(self.filters, world, ENOUGH)(None, spec)
        return spec

    def candidates(self, spec):
        """Return the compute nodes that placement offers."""
        query = utils.resources_from_request_spec(None, spec, None)
        answer = self.call(
            'get', '/allocation_candidates?' + query.to_querystring())
        return frozenset(
            host for host in worlds.HOSTS
            if getattr(uuids, host) in answer['provider_summaries'])


class TestSample(QueryTest):
    """The oracle of the equivalence test agrees with placement."""

    def setUp(self):
        super().setUp()
        for host in worlds.HOSTS:
            self.create(host, 'HW_CPU_X86_SSE',
                        VCPU=8, MEMORY_MB=1024, DISK_GB=10)

    def test_placement_is_the_oracle(self):
        """It agrees for a sample of the worlds of each request filter."""
        answers = []
        for name in oracle.FILTERS:
            answers += self.play(name)
        answers += self.play(*sorted(oracle.FILTERS))
        print('placement agreed on %d queries, with %d different answers'
              % (len(answers), len(set(answers))))
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


class TestLimits(QueryTest):
    """The documented limits of a query."""

    def setUp(self):
        super().setUp()
        self.load(*oracle.FILTERS)
        self.world = worlds.World(
            members={host: frozenset() for host in worlds.HOSTS},
            metadata={uuids.fast: {'ssd': 'true'}},
            spec={'extra_specs': {'ssd': 'true'}},
            namespace=None, separator='.')
        self.world.members['host0'] = frozenset({uuids.fast})

    def candidates_and_right(self):
        spec = self.narrowed(self.world)
        right, _broken = oracle.passing(set(oracle.FILTERS), self.world, spec)
        return self.candidates(spec), right

    def test_association_not_yet_mirrored(self):
        """A host that nova accepts is not offered until it is mirrored."""
        self.create('host0', VCPU=8, MEMORY_MB=1024, DISK_GB=10)
        self.assertEqual((frozenset(), {'host0'}), self.candidates_and_right())
        self.set_aggregates('host0', [uuids.fast])
        self.assertEqual(({'host0'}, {'host0'}), self.candidates_and_right())

    def test_resources_in_groups_with_a_suffix_only(self):
        """Placement would reject aggregates there, so the query has none."""
        self.create('host0', VCPU=8)
        self.world.metadata[uuids.theirs] = {'filter_tenant_id': 'tenant-b'}
        self.world.spec['extra_specs'] = {
            'resources:VCPU': '0', 'resources:MEMORY_MB': '0',
            'resources:DISK_GB': '0', 'resources1:VCPU': '1'}
        self.assertEqual(({'host0'}, frozenset(worlds.HOSTS)),
                         self.candidates_and_right())
