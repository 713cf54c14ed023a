# SPDX-License-Identifier: Apache-2.0
"""Findings about releases of placement that do not exist yet."""

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import discovery
from nova_aggregate_mirror.checks import placement
from tests.unit import servers


class TestMicroversions(servers.LoopbackTestCase):

    def find(self, oldest: str, newest: str) -> checks.Finding:
        cloud = self.useFixture(servers.Cloud())
        cloud.answers['/'] = (200, {'versions': [
            {'min_version': oldest, 'max_version': newest}]})
        one, = placement.microversions(discovery.Discovery(
            servers.make_conf(auth_type='none', endpoint=cloud.url),
            'placement'))
        return one

    def test_numbers_are_compared_as_numbers(self) -> None:
        """1.4 is before 1.36, and 1.100 and 2.0 are after it."""
        for oldest, newest, code in (
                ('1.0', '1.4', checks.Code.FAILURE),
                ('1.0', '1.100', checks.Code.SUCCESS),
                ('1.4', '2.0', checks.Code.SUCCESS),
                ('1.100', '1.101', checks.Code.FAILURE),
                ('2.0', '2.1', checks.Code.FAILURE)):
            self.assertEqual(code, self.find(oldest, newest).code,
                             (oldest, newest))

    def test_no_answer(self) -> None:
        """Placement responded to an earlier check, but not to this check."""
        found, = placement.microversions(discovery.Discovery(
            servers.make_conf(auth_type='none', endpoint='http://127.0.0.1:1'),
            'placement'))
        self.assertEqual(checks.Code.FAILURE, found.code)
