# SPDX-License-Identifier: Apache-2.0
"""The check of the nova internals that an explanation relies on."""

import fixtures
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import nova_internals


class TestCheck(testtools.TestCase):

    def test_installed_nova(self):
        """Every nova under test meets the requirements."""
        nova_internals.check()

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
            exceptions.UnexpectedNova, nova_internals.check)
        self.assertEqual(
            'SchedulerManager has no _consume_selected_host; RequestSpec '
            'keeps no attribute of a filter', str(error))
