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

    def replaced(self, method):
        # MonkeyPatch would keep the signature of the replaced method.
        return fixtures.MonkeyPatch('nova.compute.api.AggregateAPI', type(
            'AggregateAPI', (compute_api.AggregateAPI,),
            {method.__name__: method}))

    def differences(self):
        error = self.assertRaises(exceptions.UnexpectedNova,
                                  requirements.check)
        return str(error).split('; ')

    def test_installed_nova_is_known(self):
        """Every nova under test meets the requirements."""
        requirements.check()

    def test_methods_that_differ(self):
        """Arguments by position and name mean another thing.

        Or mirroring bypasses the muted client.
        """
        def delete_aggregate(self, context, aggregate):
            pass

        def add_host_to_aggregate(self, context, aggregate_id, host_name):
            self.placement_client.aggregate_add_hosts(context, [host_name])

        for method, text in (
                (delete_aggregate, 'takes (self, context, aggregate) instead '
                 'of (self, context, aggregate_id)'),
                (add_host_to_aggregate, 'does not call '
                 'placement_client.aggregate_add_host')):
            with self.replaced(method):
                self.assertEqual(['AggregateAPI.%s %s' % (
                    method.__name__, text)], self.differences())

    def test_column_gone(self):
        """Our queries use these columns."""
        self.patch('nova_aggregate_mirror.hooks.requirements.COLUMNS',
                   {compute_api.AggregateAPI: ('delete_aggregate', 'uuid')})
        self.assertEqual(['AggregateAPI has no column uuid'],
                         self.differences())

    def test_everything_is_said_at_once(self):
        """All differences are reported at once."""
        self.patch(API + 'delete_aggregate', fixtures.MonkeyPatch.delete)
        self.patch(API + 'placement_client', None)
        self.assertEqual(['AggregateAPI has no delete_aggregate',
                          'AggregateAPI.placement_client is not a property'],
                         self.differences())
