# SPDX-License-Identifier: Apache-2.0
"""The table of what a party can do, and its one next step."""

import testtools

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import checks
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.source import connections
from tests.unit import servers

CAUSES = {name: value for name, value in vars(causes).items()
          if isinstance(value, causes.Cause)}
STEPLESS = {'NO_PROVIDER', 'CHANGED', 'OUT_OF_TIME', 'NOT_ASKED',
            'NOT_ASKED_FURTHER', 'FILE_FAILED'}
"""What heals alone, and what nothing is known of."""


def parties() -> list[causes.Party]:
    """Return a party of each kind."""
    accounts = [auth.Account(servers.make_conf(
        auth_type=kind, username='{odd} %s'), 'placement')
        for kind in ('password', 'v3applicationcredential')]
    services = [*(account.party for account in accounts),
                causes.client('placement')]
    return [*services, *map(causes.keystone, services), engine.PARTY,
            connections.PARTY, causes.cell('one', 'mysql://cell'),
            causes.cell('two', '{scheme}://{hostname}/two')]


class TestCauses(testtools.TestCase):

    def test_each_row_has_one_step(self) -> None:
        self.assertEqual(STEPLESS, {
            name for name, cause in CAUSES.items() if not cause.step})

    def test_step_names_the_options_of_the_party(self) -> None:
        """Whatever a person has written there."""
        user = parties()[0]
        self.assertEqual(
            'correct username ({odd} %s) and password of [placement] in '
            'nova.conf', causes.LOGIN.step_for(user))
        for name, cause in CAUSES.items():
            for party in parties():
                self.assertNotIn('{a', cause.step_for(party), name)
        template = parties()[-1]
        self.assertEqual(
            'correct user and password in [database] connection, which fills '
            'in the URL of the cell mapping',
            causes.PASSWORD.step_for(template))

    def test_refused_login_changes_no_account(self) -> None:
        """Keystone does not tell a wrong password from an unknown user."""
        for cause in causes.LOGIN, causes.PASSWORD:
            for party in parties():
                self.assertTrue(cause.step_for(party).startswith('correct '))

    def test_values_are_the_same_wherever_they_are_listed(self) -> None:
        """Kind, party and step; and the sentence, which is made of them."""
        for cause in CAUSES.values():
            for party in parties():
                error = exceptions.ServiceFailed.of(cause, party, 'GET /')
                self.assertEqual(
                    (cause.kind, party.name, cause.step_for(party)),
                    (error.failure.kind, error.failure.party,
                     error.failure.step))
                self.assertEqual(
                    error.failure, problems.Problem.of(error).failure)
                self.assertEqual('%s.' % error, checks.failed(error).text)
                self.assertEqual(
                    error.failure.step,
                    exceptions.NotTried.because_of(error).failure.step)

    def test_commands_are_those_of_the_kind(self) -> None:
        """A check adds lines to copy, and no sentence of its own."""
        error = exceptions.ServiceFailed.of(
            causes.NO_ENDPOINT.with_detail(''), causes.client('placement'))
        self.assertEqual(
            ('line',), checks.failed(error, {
                causes.NO_ENDPOINT.kind: ('line',),
                causes.LOGIN.kind: ('other',)}).commands)
