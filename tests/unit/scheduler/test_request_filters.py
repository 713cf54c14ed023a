# SPDX-License-Identifier: Apache-2.0
"""The available request filters, and the options that they read."""

from nova.conf import CONF
from nova.conf import scheduler as scheduler_conf
from nova.scheduler.filters import extra_specs_ops
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import request_filters
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror.source import keyed_aggregates
from tests.scheduling import process
from tests.scheduling import worlds


class TestRequestFilters(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.process = self.useFixture(process.SchedulerProcess())

    def load(self, *names):
        self.process.configure(*names)
        return request_filters.load(CONF)[0]

    def keys(self, name, **asked):
        request_filter, = self.load(name)
        return request_filter.keys(request_spec.request(
            worlds.request_spec(**asked)))

    def test_order_of_the_option(self):
        """A name given twice counts once."""
        self.assertEqual(
            ['TypeAffinity', 'FlavorExtraSpecs'],
            [type(one).__name__ for one in self.load(
                'type_affinity', 'flavor_extra_specs', 'type_affinity')])

    def test_unknown_name(self):
        """An unknown name fails at load."""
        self.assertRaises(exceptions.InvalidConfiguration, self.load, 'zone')

    def test_another_default_zone(self):
        """The option is nova's."""
        self.process.config(default_availability_zone='somewhere')
        self.assertTrue(self.keys('default_availability_zone',
                                  zone='somewhere'))

    def test_nova_without_the_namespace(self):
        """A nova that has removed the two options compares all keys."""
        for option in scheduler_conf.filter_scheduler_opts:
            if option.dest.startswith('aggregate_image_properties_isolation_'):
                CONF.unregister_opt(option, 'filter_scheduler')
                self.addCleanup(CONF.register_opt, option, 'filter_scheduler')
        self.assertEqual(
            keyed_aggregates.Keys(frozenset({'hw_vif_model'})),
            self.keys('image_properties', image={'hw_vif_model': 'virtio'}))


class TestFlavorExtraSpecs(testtools.TestCase):

    def matching(self, wanted, metadata):
        """Return the matching aggregates of each extra spec."""
        return [rule.matching for rule in request_filters.FlavorExtraSpecs(
            CONF).rules(constraints.ServerRequest('p', 'f', wanted, {}, ''),
                        metadata)]

    def test_values_for_which_the_filter_of_nova_would_raise(self):
        """Text that is no number, or no operand, matches nothing."""
        for value, wanted, error, matching in (
                ('many', '>= 8', ValueError, {'16'}),
                ('8', '<or>', IndexError, set())):
            self.assertRaises(error, extra_specs_ops.match, value, wanted)
            self.assertEqual([matching], self.matching({'cpu': wanted}, {
                value: {'cpu': value}, '16': {'cpu': '16'}}))
