# SPDX-License-Identifier: Apache-2.0
"""The check of nova's internals, and its messages about differences."""

import fixtures
from nova.compute import api as compute_api
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.hooks import requirements

API = 'nova.compute.api.AggregateAPI.'


class TestCheck(testtools.TestCase):

    def patch(self, name, value):
        self.useFixture(fixtures.MonkeyPatch(name, value))

    def remove(self, name):
        self.patch(name, fixtures.MonkeyPatch.delete)

    def replace_method(self, method):
        # MonkeyPatch would keep the signature of the replaced method.
        self.patch('nova.compute.api.AggregateAPI', type(
            'AggregateAPI', (compute_api.AggregateAPI,),
            {method.__name__: method}))

    def differences(self):
        error = self.assertRaises(exceptions.UnexpectedNova,
                                  requirements.check)
        return str(error).split('; ')

    def test_installed_nova_is_known(self):
        """Every nova under test meets the requirements."""
        requirements.check()

    def test_parameter_renamed(self):
        """Arguments passed by position or name must mean the same."""
        def delete_aggregate(self, context, aggregate):
            pass
        self.replace_method(delete_aggregate)
        self.assertEqual(
            ['AggregateAPI.delete_aggregate takes (self, context, aggregate) '
             'instead of (self, context, aggregate_id)'], self.differences())

    def test_property_gone(self):
        """Without the property there is nothing to mute."""
        self.remove(API + 'placement_client')
        self.assertEqual(['AggregateAPI.placement_client is not a property'],
                         self.differences())

    def test_mirroring_goes_another_way(self):
        """Mirroring that bypasses the muted client must be noticed."""
        def add_host_to_aggregate(self, context, aggregate_id, host_name):
            self.placement_client.aggregate_add_hosts(context, [host_name])
        self.replace_method(add_host_to_aggregate)
        self.assertEqual(['AggregateAPI.add_host_to_aggregate does not call '
                          'placement_client.aggregate_add_host'],
                         self.differences())

    def test_column_gone(self):
        """Our queries use these columns."""
        self.patch('nova_aggregate_mirror.hooks.requirements.COLUMNS',
                   {compute_api.AggregateAPI: ('delete_aggregate', 'uuid')})
        self.assertEqual(['AggregateAPI has no column uuid'],
                         self.differences())

    def test_everything_is_said_at_once(self):
        """All differences are reported at once."""
        self.remove(API + 'delete_aggregate')
        self.patch(API + 'placement_client', None)
        self.assertEqual(['AggregateAPI has no delete_aggregate',
                          'AggregateAPI.placement_client is not a property'],
                         self.differences())
