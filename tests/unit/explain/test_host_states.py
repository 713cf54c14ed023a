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
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.manager.SchedulerManager._consume_selected_host',
            fixtures.MonkeyPatch.delete))
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.host_manager.HostManager._get_instance_info',
            fixtures.MonkeyPatch.delete))
        error = self.assertRaises(
            exceptions.UnexpectedNova, host_states.check_nova)
        self.assertEqual(
            'HostManager has no _get_instance_info; SchedulerManager has no '
            '_consume_selected_host', str(error))
