# SPDX-License-Identifier: Apache-2.0
"""Findings about releases of placement that do not exist yet."""

import types

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import discovery
from nova_aggregate_mirror.checks import placement
from tests.unit import servers


class TestMicroversions(servers.LoopbackTestCase):

    def find(self, url: str) -> checks.Finding:
        finding, = placement.microversions(types.SimpleNamespace(
            placement=discovery.Discovery(servers.make_conf(
                auth_type='none', endpoint=url), 'placement')))
        return finding

    def test_numbers_are_compared_as_numbers(self) -> None:
        """1.4 is before 1.36, and 1.100 and 2.0 are after it."""
        cloud = self.useFixture(servers.Cloud())
        for oldest, newest, code in (
                ('1.0', '1.4', checks.Code.FAILURE),
                ('1.0', '1.100', checks.Code.SUCCESS),
                ('1.4', '2.0', checks.Code.SUCCESS),
                ('1.100', '1.101', checks.Code.FAILURE),
                ('2.0', '2.1', checks.Code.FAILURE)):
            cloud.answers['/'] = (200, {'versions': [
                {'min_version': oldest, 'max_version': newest}]})
            self.assertEqual(code, self.find(cloud.url).code,
                             (oldest, newest))

    def test_no_answer(self) -> None:
        """Placement responded to an earlier check, but not to this check."""
        self.assertEqual(checks.Code.FAILURE,
                         self.find('http://127.0.0.1:1').code)
