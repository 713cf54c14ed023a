# SPDX-License-Identifier: Apache-2.0
"""Base of the status command tests: the real command on a private cloud."""

import dataclasses
import json
import pathlib
import subprocess
from typing import Any

import fixtures as base_fixtures
from nova import context as nova_context
from nova.db.api import api as api_db
from nova import objects
import testtools

from nova_aggregate_mirror import conf
from nova_aggregate_mirror.journal import store
from tests import commands
from tests import fixtures
from tests import placement_service
from tests.unit import servers

PASSWORD = 'not-to-be-shown'
CONF = """
[DEFAULT]
state_path = %(state)s
[api_database]
connection = %(api)s
%(credentials)s
%(more)s
"""
TOKEN = """
[placement]
auth_type = admin_token
endpoint = %(url)s
token = %(token)s
"""
ACCOUNT = """
[%(section)s]
auth_type = password
auth_url = %(keystone)s/v3
username = mirror
password = %(password)s
project_name = service
user_domain_name = Default
project_domain_name = Default
"""
WAY = ('Placement credentials', 'Placement authentication',
       'Placement endpoint', 'Placement microversions', 'Placement rights')
"""Each check needs the previous check."""
SUCCESS, WARNING, FAILURE, COULD_NOT_RUN = 0, 1, 2, 255


@dataclasses.dataclass(frozen=True)
class Row:
    """The result of a check."""

    result: int
    details: str


class StatusTest(testtools.TestCase):
    """The real command, with a real placement and real databases."""

    def setUp(self) -> None:
        super().setUp()
        # Ignore the proxy settings of the machine that runs the tests.
        self.useFixture(base_fixtures.EnvironmentVariable(
            'no_proxy', '127.0.0.1'))
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.StockNova())
        self.conf = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path, 'nova.conf')
        self.write_conf()

    def write_conf(self, credentials: str | None = None, more: str = '',
                   api: Any = None) -> None:
        """Write nova.conf, by default with a token for placement."""
        if credentials is None:
            credentials = TOKEN % {'url': self.cloud.placement.url,
                                   'token': placement_service.TOKEN}
        self.conf.write_text(CONF % {
            'state': fixtures.CONF.state_path, 'credentials': credentials,
            'api': api or api_db.get_engine().url, 'more': more})

    def keystone(self, *placements: str) -> servers.Cloud:
        """Start a keystone with these placement endpoints; write nova.conf."""
        keystone = self.useFixture(servers.Cloud())
        keystone.token_id = placement_service.TOKEN
        keystone.answers['/v3/auth/tokens'] = (
            201, keystone.token(*placements))
        self.write_conf(self.account(keystone, 'placement'))
        return keystone

    def account(self, keystone: servers.Cloud, section: str) -> str:
        return ACCOUNT % {'section': section, 'keystone': keystone.url,
                          'password': PASSWORD}

    def run_command(self, *argv: str) -> subprocess.CompletedProcess[str]:
        done = commands.run(
            commands.STATUS, ['--config-file', str(self.conf), *argv])
        self.assertNotIn('Traceback', done.stdout + done.stderr)
        self.assertNotIn(PASSWORD, done.stdout + done.stderr)
        return done

    def rows(self, status: int) -> dict[str, Row]:
        """Run every check and assert the exit status."""
        done = self.run_command('upgrade', 'check', '--json')
        self.assertEqual('', done.stderr)
        rows = {row['check']: Row(row['result'], row['details'] or '')
                for row in json.loads(done.stdout)['checks']}
        self.assertEqual(status, done.returncode, rows)
        return rows

    def assert_row(self, result: int, row: Row, *texts: str) -> None:
        """Assert the result of a check and texts in its details."""
        self.assertEqual(result, row.result, row)
        for text in texts:
            self.assertIn(text, row.details)

    def assert_others_good(self, rows: dict[str, Row], *names: str) -> None:
        """Assert that every check except these succeeded."""
        self.assertEqual(set(names), {name for name, row in rows.items()
                                      if row.result != SUCCESS}, rows)

    def assert_ends_at(self, name: str, result: int,
                       *texts: str) -> dict[str, Row]:
        """Assert that a check of ``WAY`` fails and later ones are skipped."""
        rows = self.rows(result)
        self.assert_row(result, rows[name], *texts)
        rest = [*WAY[WAY.index(name) + 1:], 'Drift']
        for after in rest:
            self.assert_row(WARNING, rows[after], 'resolve "%s" first' % name)
        self.assert_others_good(rows, name, *rest)
        return rows

    def member(self, aggregate: fixtures.Aggregate, name: str,
               mirrored: bool = True, **kwargs: Any) -> fixtures.Host:
        """Add a host to an aggregate in nova, and optionally in placement."""
        host = self.cloud.create_host(name, **kwargs)
        objects.Aggregate.get_by_uuid(
            nova_context.get_admin_context(), aggregate.uuid).add_host(name)
        if mirrored:
            for node in host.nodes:
                self.cloud.placement.set_aggregates(node, {aggregate.uuid})
        return host

    def journal(self, **kwargs: Any) -> store.Journal:
        """Open the journal that the command uses."""
        conf.register_opts(fixtures.CONF)
        return store.Journal(fixtures.CONF, **kwargs)
