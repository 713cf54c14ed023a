# SPDX-License-Identifier: Apache-2.0
"""A nova that mirrors by itself, observed; the switch, and the way back."""

import logging
import socket
import types

import fixtures as base_fixtures

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import journal as checks_of_journal
from nova_aggregate_mirror import commands
from nova_aggregate_mirror.html_report import collect
from nova_aggregate_mirror.reconcile import modes
from nova_aggregate_mirror.source import database
from tests import fixtures
from tests.functional import test_sync_command

CONF = fixtures.CONF
SUCCESS, WARNING, FAILURE = (
    checks.Code.SUCCESS, checks.Code.WARNING, checks.Code.FAILURE)
RESTART, RELOAD, SYNC = modes.RESTART, modes.RELOAD, commands.SYNC
HOST = socket.gethostname()
NOVA = 'Nova-api on %s had mode ' % HOST


class TestModes(test_sync_command.SyncTest):
    """Nova-api and an agent, each with the mode of its last start."""

    def setUp(self) -> None:
        super().setUp()
        self.hosts = [self.cloud.create_host('h%d' % number)
                      for number in range(6)]
        self.messages = self.useFixture(base_fixtures.FakeLogger(
            'nova_aggregate_mirror', level=logging.INFO))
        self.gone = self.cloud.create_aggregate('gone')
        self.addCleanup(CONF.clear_override, 'mode', 'aggregate_mirror')

    def start_nova(self, mode: str) -> None:
        CONF.set_override('mode', mode, 'aggregate_mirror')
        self.useFixture(fixtures.MirroredNova())

    def start_agent(self, mode: str) -> None:
        CONF.set_override('mode', mode, 'aggregate_mirror')
        self.agent = fixtures.Agent()

    def add_in_vain(self) -> None:
        """Add the next host to the zone while placement is down."""
        self.placement.refuse()
        outcome = self.cloud.add_host(self.zone, self.hosts.pop())
        self.assertEqual((True, False), (outcome.member, outcome.mirrored))
        self.placement.recover()

    def observe(self) -> None:
        """Let users do what nova itself does not mirror; observe it."""
        self.start_nova('observe')
        self.start_agent('observe')
        self.cloud.add_host(self.gone, self.hosts[0])
        self.agent.sync()
        self.cloud.remove_host(self.gone, self.hosts[0])
        self.placement.set_aggregates(self.hosts[0].nodes[0], [self.gone.uuid])
        self.assertEqual(200, self.cloud.delete_aggregate(self.gone))
        self.add_in_vain()
        self.assert_observed(2)
        self.assertFalse(self.journal.ledger.entries()[self.gone.uuid].deleted)

    def assert_observed(self, differences: int) -> None:
        """Assert that the agent finds all differences and changes nothing."""
        del self.placement.requests[:]
        self.agent.drain()
        self.assertEqual(differences, len(self.agent.sync().drift))
        self.assertEqual({'GET'}, {
            request.method for request in self.placement.requests})
        self.assertEqual(differences, len(self.cloud.drift()))

    def assert_mirrored(self) -> None:
        self.agent.drain()
        self.agent.sync()
        self.assertEqual(([], []), (
            self.cloud.drift(), self.journal.rows.all()))

    def assert_disagreement(self, *expected: tuple[str, str, str],
                            log: tuple[str, ...] = ()) -> None:
        """Assert what check, report and agent say of the modes.

        :param expected: code, text and command of each finding
        :param log: texts in the last line of the agent
        """
        findings = [finding for finding in checks_of_journal.agreement(
            types.SimpleNamespace(conf=CONF, journal=self.journal))
            if finding.code is not SUCCESS]
        page = collect.read_journal(CONF, database.DatabaseSource())
        self.assertEqual([finding.problem for finding in findings],
                         [*page.disagreements])
        for (code, text, command), finding in zip(
                expected, findings, strict=True):
            self.assertEqual(code, finding.code)
            self.assertIn(text, finding.problem.text)
            self.assertIn('"%s"' % command, finding.problem.step)
        for text in log:
            self.assertIn(text, [
                line for line in self.messages.output.splitlines()
                if 'The modes do not agree' in line][-1])

    def test_nova_api_that_mirrors_first(self) -> None:
        """What it cannot mirror waits for the agent, until it mirrors too."""
        self.observe()
        self.start_nova('mirror')
        self.add_in_vain()
        self.assert_observed(3)
        self.assertEqual(1, len(self.journal.rows.all()))
        self.assert_disagreement(
            (WARNING, 'The agent on %s had mode observe in its last sync, on '
             % HOST, RELOAD),
            (FAILURE, 'Operations wait in the journal', RELOAD),
            log=(NOVA + 'mirror', 'and this agent has mode observe: ',
                 '"%s" for mode mirror' % RELOAD, ': run "%s"' % SYNC))
        self.start_agent('mirror')
        self.assert_mirrored()
        self.assert_disagreement()
        # The way back: a row waits, and a sync by hand mirrors it.
        self.add_in_vain()
        self.start_agent('observe')
        self.assert_observed(1)
        self.start_nova('observe')
        self.assert_observed(1)
        self.assertEqual(1, len(self.journal.rows.all()))
        self.assert_disagreement(
            # It has had no operation since it was restarted.
            (WARNING, ', instead of observe', RESTART),
            (FAILURE, 'Operations wait in the journal', SYNC),
            log=(NOVA + 'mirror', '"%s" there for mode observe' % RESTART,
                 ': run "%s"' % SYNC))
        self.assertEqual(0, self.sync().returncode)
        self.assertEqual(([], []), (
            self.cloud.drift(), self.journal.rows.all()))

    def test_agent_that_mirrors_first(self) -> None:
        """It repairs what nova does not mirror."""
        self.observe()
        self.assert_disagreement()
        self.start_agent('mirror')
        self.assert_mirrored()
        self.add_in_vain()
        self.assert_mirrored()
        self.assert_disagreement(
            (WARNING, NOVA + 'observe', RESTART),
            log=(NOVA + 'observe', '"%s" there for mode mirror' % RESTART))
        self.start_nova('mirror')
        self.add_in_vain()
        self.assert_mirrored()
        self.assert_disagreement()
