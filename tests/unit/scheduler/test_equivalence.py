# SPDX-License-Identifier: Apache-2.0
"""The request filters against nova's host filters, in thousands of clouds.

The output has how often the query alone was exact.
"""

import collections
import dataclasses
from importlib import metadata
import logging
import os

import fixtures
import hypothesis
from nova.conf import CONF
from nova import exception as nova_exception
import testtools

from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.scheduler import filters
from nova_aggregate_mirror.scheduler import request_filters
from tests.scheduling import oracle
from tests.scheduling import process
from tests.scheduling import worlds

CASES = int(os.environ.get('AGGREGATE_MIRROR_REQUESTS', 1000))
UNBOUNDED = 65536
ISOLATION = 'aggregate_image_properties_isolation_'


class TestEquivalence(testtools.TestCase):
    """With a converged mirror, both kinds of filters select the same hosts."""

    def setUp(self):
        super().setUp()
        self.process = self.useFixture(process.SchedulerProcess())
        # Nova's filters log a line for each host and key.
        self.useFixture(fixtures.FakeLogger(level=logging.CRITICAL))
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.source.metadata.MetadataSource',
            lambda: self))
        self.counts = collections.Counter()

    def known(self, uuids):
        """Return the known UUIDs of the current world."""
        return self.world.known(uuids)

    def load(self, *names):
        """Load these request filters and the guard, as nova-scheduler does."""
        self.names = frozenset(names)
        self.process.configure(*names)
        self.filters = request_filters.load(CONF)[0]
        self.guard = filters.AggregateMembershipFilter()

    def worlds(self, play):
        """Run for thousands of worlds, the same in every run."""
        @hypothesis.settings(
            max_examples=CASES, deadline=None, derandomize=True,
            database=None, suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(world=worlds.worlds(sorted(self.names)))
        def one(world):
            self.world = world
            self.process.config(group='filter_scheduler', **{
                ISOLATION + 'namespace': world.namespace,
                ISOLATION + 'separator': world.separator})
            play()

        one()

    def narrowed(self, budget=UNBOUNDED):
        """Return the narrowed request of the world, and the offered hosts."""
        spec = worlds.request_spec(**self.world.spec)
        narrow = request_filters.Narrowing(self.filters, self.world, budget)
        try:
            narrow(None, spec)
        except nova_exception.RequestFilterFailed:
            return spec, frozenset()
        return spec, self.world.offered(spec)

    def guarded(self, spec, offered):
        """Return the offered hosts that pass the guard."""
        states = [state for state in self.world.host_states()
                  if state.host in offered]
        return frozenset(
            state.host for state in self.guard.filter_all(states, spec))

    def compare(self, *names):
        self.load(*names)
        self.worlds(self.compare_once)
        exact, of = self.counts['exact'], self.counts['decided']
        share = 100 * exact / of
        print('%s: exact without host filters in %d of %d requests that '
              'cannot have every host (%.1f%%)' % (
                  ', '.join(names), exact, of, share))
        # Worlds in which every host passes would prove nothing.
        self.assertGreater(of, CASES / 20)

    def compare_once(self):
        spec, offered = self.narrowed()
        stock, broken = oracle.passing(self.names, self.world, spec)
        self.assertEqual(frozenset(), stock - offered, 'left out')
        self.assertEqual(stock, self.guarded(spec, offered) - broken)
        everywhere = frozenset(worlds.HOSTS)
        self.assertEqual(stock, self.guarded(
            worlds.request_spec(**self.world.spec), everywhere) - broken)
        if not self.mixed():
            self.assertEqual(stock, offered - broken, 'more could be said')
        if stock != everywhere:
            self.counts['decided'] += 1
            self.counts['exact'] += offered - broken == stock

    def mixed(self):
        """Return whether a host passes despite a restricting aggregate."""
        apart = dataclasses.replace(self.world, members={
            uuid: frozenset({uuid}) for uuid in worlds.AGGREGATES})
        asked = self.world.spec
        for name in self.names - {'flavor_extra_specs'}:
            for image in ([{key: value} for key, value in
                           (asked['image'] or {}).items()] or [None]):
                spec = worlds.request_spec(**{**asked, 'image': image})
                passed, _broken = oracle.passing({name}, self.world, spec)
                alone, _broken = oracle.passing({name}, apart, spec)
                if any(self.world.members[host] - alone for host in passed):
                    return True
        return False

    def test_flavor_extra_specs(self):
        """AggregateInstanceExtraSpecsFilter; the query is always exact."""
        self.compare('flavor_extra_specs')

    def test_tenant_isolation(self):
        """AggregateMultiTenancyIsolation."""
        self.compare('tenant_isolation')

    def test_image_properties(self):
        """AggregateImagePropertiesIsolation, with its namespace option."""
        self.compare('image_properties')

    def test_type_affinity(self):
        """AggregateTypeAffinityFilter."""
        self.compare('type_affinity')

    def test_default_availability_zone(self):
        """AvailabilityZoneFilter, for requests that name the default zone."""
        self.compare('default_availability_zone')

    def test_all_together(self):
        """All rules are combined in a single query."""
        self.compare(*sorted(oracle.FILTERS))

    def test_every_filter_is_compared(self):
        """It has keys here, a filter of nova or the oracle, and an audit."""
        plugins = {entry.name: entry.load() for entry in metadata.entry_points(
            group=filter_table.NAMESPACE)}
        names = {name for name, plugin in plugins.items()
                 if hasattr(plugin, 'rules')}
        self.assertEqual(names, worlds.KEYS.keys())
        self.assertEqual(names, oracle.FILTERS.keys())
        # The zone of a server is audited whatever its filters are.
        self.assertEqual(
            set(), names - {filter_table.DEFAULT_ZONE, *rules.NAMES})

    def test_budget_only_widens(self):
        """Aggregates beyond the budget exclude no host."""
        self.load(*sorted(oracle.FILTERS))
        fewer = collections.Counter()

        def play():
            for budget in (0, 100, 200):
                spec, offered = self.narrowed(budget)
                stock, broken = oracle.passing(self.names, self.world, spec)
                self.assertEqual(frozenset(), stock - offered)
                self.assertEqual(stock, self.guarded(spec, offered) - broken)
                fewer[budget] += len(offered)

        self.worlds(play)
        # Which of two aggregates fits depends on the order of their UUIDs.
        self.assertGreater(fewer[0], max(fewer[100], fewer[200]))
