# SPDX-License-Identifier: Apache-2.0
"""The status command with a placement of another release than nova's."""

from typing import Any

import fixtures
from placement import microversion

from nova_aggregate_mirror.placement import client
from tests.functional import status_command
from tests.functional.status_command import FAILURE
from tests.functional.status_command import SUCCESS


class OtherPlacementTest(status_command.StatusTest):
    """A placement of another release, as during a rolling upgrade."""

    versions: Any = microversion.VERSIONS

    def setUp(self) -> None:
        self.useFixture(fixtures.MonkeyPatch(
            'placement.microversion.VERSIONS', self.versions))
        super().setUp()


class TestOlderPlacement(OtherPlacementTest):

    versions = microversion.VERSIONS[:microversion.VERSIONS.index('1.30') + 1]

    def test_too_old(self):
        """The oldest supported release is printed."""
        self.assert_ends_at(
            'Placement microversions', FAILURE, '1.0 to 1.30',
            '2.0.0 (Train)', '  pip install --upgrade openstack-placement\n'
            '  placement-manage db sync\n')


class TestOldestPlacement(OtherPlacementTest):

    versions = microversion.VERSIONS[
        :microversion.VERSIONS.index(client.MICROVERSION) + 1]

    def test_just_right(self):
        """The oldest microversion that nova 29 accepts is sufficient."""
        self.assert_others_good(self.rows(SUCCESS))


class TestNewerPlacement(OtherPlacementTest):

    versions = microversion.VERSIONS[microversion.VERSIONS.index('1.37'):]

    def test_too_new(self):
        """Without our microversion, this package must be upgraded."""
        self.assert_ends_at(
            'Placement microversions', FAILURE, '1.36 is no longer supported',
            '  pip install --upgrade nova-aggregate-mirror')
