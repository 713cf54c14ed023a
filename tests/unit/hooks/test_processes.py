# SPDX-License-Identifier: Apache-2.0
"""What a nova-api process uses, and what it logs of placement."""

import logging

import fixtures
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.hooks import processes
from tests import placement_service
from tests.unit import servers

PROVIDER = 'c5a5b2b7-1c5f-4b0e-8a52-0f7a3a9b2f10'


class TestAccess(servers.LoopbackTestCase):

    def test_first_answer_of_placement(self) -> None:
        """One line for the process; an operation that fails has its own."""
        placement = self.useFixture(placement_service.PlacementService())
        placement.create_provider(PROVIDER, 'node')
        log = self.useFixture(fixtures.FakeLogger(
            'nova_aggregate_mirror', level=logging.INFO))
        process = processes.Process(servers.make_conf(
            auth_type='admin_token', endpoint=placement.url,
            token=placement_service.TOKEN))
        placement.refuse()
        self.assertRaises(exceptions.ServiceUnreachable,
                          process.placement.get, PROVIDER)
        self.assertEqual('', log.output)
        placement.recover()
        for _time in range(2):
            process.placement.get(PROVIDER)
        line, = log.output.splitlines()
        self.assertThat(line, testtools.matchers.MatchesRegex(
            'Placement answers: .*endpoint %s$' % placement.url))
