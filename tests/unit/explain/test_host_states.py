# SPDX-License-Identifier: Apache-2.0
"""The check of the nova internals that an explanation relies on."""

import fixtures
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import host_states


class TestCheck(testtools.TestCase):

    def test_installed_nova(self):
        """Every nova under test meets the requirements."""
        host_states.check_nova()

    def test_differences(self):
        """All of them are reported at once."""
        class RequestSpec:
            __slots__ = ()

        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.manager.SchedulerManager._consume_selected_host',
            fixtures.MonkeyPatch.delete))
        self.useFixture(fixtures.MonkeyPatch(
            'nova.objects.request_spec.RequestSpec', RequestSpec))
        error = self.assertRaises(
            exceptions.UnexpectedNova, host_states.check_nova)
        self.assertEqual(
            'SchedulerManager has no _consume_selected_host; RequestSpec '
            'keeps no attribute of a filter', str(error))
