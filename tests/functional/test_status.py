# SPDX-License-Identifier: Apache-2.0
"""The status command with a real nova, placement and journal.

What each check finds is in the unit tests.
"""

import dataclasses
import json
import pathlib
import subprocess

import fixtures as base_fixtures
from placement import microversion

from nova_aggregate_mirror.checks import runner
from nova_aggregate_mirror.placement import client
from tests import commands
from tests import fixtures
from tests import placed
from tests import placement_service
from tests.unit import servers

PASSWORD = 'not-to-be-shown'
SUCCESS, WARNING, FAILURE, COULD_NOT_RUN = 0, 1, 2, 255
ZONES = 'Availability zones'
PROCESSES = 'Nova-api processes'


@dataclasses.dataclass(frozen=True)
class Row:
    """The result of a check."""

    result: int
    details: str


class StatusTest(servers.LoopbackTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.StockNova())
        self.conf = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path, 'nova.conf')
        self.write_conf()

    def write_conf(self, more: str = '', placement: str | None = None) -> None:
        self.conf.write_text(self.cloud.nova_conf(more, placement))

    def run_command(self, *argv: str) -> subprocess.CompletedProcess[str]:
        done = commands.run(
            commands.STATUS, ['--config-file', str(self.conf), *argv])
        self.assertNotIn('Traceback', done.stdout + done.stderr)
        self.assertNotIn(PASSWORD, done.stdout + done.stderr)
        return done

    def rows(self, status: int, *others: str) -> dict[str, Row]:
        """Run every check, before nova-api is restarted.

        :param status: the expected exit status
        :param others: exactly the other checks that do not succeed
        """
        done = self.run_command('upgrade', 'check', '--json')
        self.assertEqual('', done.stderr)
        rows = {row['check']: Row(row['result'], row['details'] or '')
                for row in json.loads(done.stdout)['checks']}
        self.assertEqual(status, done.returncode, rows)
        self.assertEqual({PROCESSES, *others}, {
            name for name, row in rows.items() if row.result != SUCCESS}, rows)
        return rows

    def member(self, aggregate: fixtures.Aggregate, name: str,
               mirrored: bool = True) -> fixtures.Host:
        """Add a host to an aggregate in nova, and optionally in placement."""
        host = self.cloud.create_host(name)
        self.cloud.nova.add_member(aggregate.uuid, name)
        if mirrored:
            self.cloud.placement.set_aggregates(
                host.nodes[0], {aggregate.uuid})
        return host


class TestStatus(StatusTest):

    def test_everything_is_good(self) -> None:
        """From keystone to the drift; nothing is created or written."""
        keystone = self.useFixture(servers.Cloud())
        keystone.token_id = placement_service.TOKEN
        keystone.grant(self.cloud.placement.url)
        self.write_conf(placement='\n'.join(
            map(' = '.join, keystone.account(password=PASSWORD).items())))
        self.assertIn('Drift: nova has no compute node yet',
                      self.rows(WARNING)['Not looked at'].details)
        host = self.member(self.cloud.create_aggregate('zone', 'az1'), 'h1')
        before = self.cloud.placement.generation(host.nodes[0])
        rows = self.rows(WARNING)
        skipped = [line.partition(':')[0] for line
                   in rows.pop('Not looked at').details.splitlines()]
        self.assertEqual([check.name for check in runner.CHECKS
                          if check.name not in skipped], list(rows))
        # What is not there yet, or switched off, is no success.
        self.assertEqual(
            ['Galera', 'Journal', 'Journal users', 'Journal of this nova',
             'Journal writes', 'Neutron credentials', 'Segments', 'Agent',
             'Modes', 'Backlog', 'Isolated aggregates', 'Sharing providers'],
            skipped)
        for name, text in (
                ('Options', str(self.conf)),
                ('Placement endpoint', self.cloud.placement.url),
                ('Placement endpoint', '1.36 is used'),
                ('Drift', '1 host aggregate.')):
            self.assertIn(text, rows[name].details)
        self.assertEqual(before,
                         self.cloud.placement.generation(host.nodes[0]))
        self.assertFalse(pathlib.Path(
            fixtures.CONF.state_path, 'aggregate_mirror').exists())

    def test_what_could_not_run(self) -> None:
        """It exits with 255, since 2 is a failed check."""
        for argv in ((), ('upgrade',), ('upgrade', 'check', '--jason')):
            done = self.run_command(*argv)
            self.assertEqual(COULD_NOT_RUN, done.returncode)
            self.assertIn('usage:', done.stderr)
        self.conf.write_text('')
        for text in '--config-file', 'nova.conf':
            # An option of oslo.log, which the help names, is accepted.
            done = self.run_command('--debug', 'upgrade', 'check')
            self.assertEqual((COULD_NOT_RUN, ''),
                             (done.returncode, done.stdout))
            self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)
            self.assertIn(text, done.stderr)
            self.conf.unlink(missing_ok=True)

    def test_metadata(self) -> None:
        """Each row is read from nova's database."""
        self.write_conf(
            '[scheduler]\nenable_isolated_aggregate_filtering = true\n')
        placed.create_flavor('fast', ssd='true')
        licensed = self.cloud.create_aggregate('licensed')
        self.member(licensed, 'h1')
        self.cloud.create_aggregate('empty', 'az2')
        self.assertEqual(200, self.cloud.nova.request(
            'POST', '/os-aggregates/%d/action' % licensed.id, {
                'set_metadata': {'metadata': {
                    'cpu_allocation_ratio': '2.0', 'owner': 'us',
                    'filter_tenant_id': 'them', 'ssd': 'true',
                    'trait:CUSTOM_LICENSED': 'yes'}}}).status_int)
        expected = {
            ZONES: '  openstack aggregate unset --property availability_zone '
                   'empty',
            'Allocation ratios': '--resource VCPU:allocation_ratio=2.0',
            'Isolated aggregates': '  openstack aggregate set --property '
                                   'trait:CUSTOM_LICENSED=required licensed',
            'Aggregate metadata': 'filter_tenant_id of aggregate licensed'}
        rows = self.rows(WARNING, *expected)
        for name, text in expected.items():
            self.assertEqual(WARNING, rows[name].result, rows[name])
            self.assertIn(text, rows[name].details)
        # Both keys are read once the printed lines are set.
        lines = rows['Aggregate metadata'].details.splitlines()
        enabled = [line.strip() for line in lines if 'enabled_filters' in line]
        self.assertEqual(2, len(enabled))
        self.write_conf('[filter_scheduler]\n%s,%s\n' % (
            enabled[0], enabled[1].rpartition(',')[2]))
        self.rows(WARNING, ZONES, 'Allocation ratios', 'Aggregate metadata')


class TestOldestPlacement(StatusTest):
    """A placement of the oldest release, as during a rolling upgrade."""

    def setUp(self) -> None:
        self.useFixture(base_fixtures.MonkeyPatch(
            'placement.microversion.VERSIONS', microversion.VERSIONS[
                :microversion.VERSIONS.index(client.MICROVERSION) + 1]))
        super().setUp()

    def test_just_right(self) -> None:
        """The oldest microversion that nova 29 accepts is sufficient."""
        self.rows(WARNING)
