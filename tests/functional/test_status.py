# SPDX-License-Identifier: Apache-2.0
"""The status command with a real nova, placement and journal.

What each check finds is in the unit tests.
"""

import json
import pathlib
import subprocess

import fixtures as base_fixtures

from nova_aggregate_mirror.checks import runner
from tests import commands
from tests import fixtures
from tests import placed
from tests import placement_service
from tests.unit import servers

PASSWORD = 'not-to-be-shown'
WARNING, COULD_NOT_RUN = 1, 255
ZONES = 'Availability zones'
PROCESSES = 'Nova-api processes'


class TestStatus(servers.LoopbackTestCase):

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

    def details(self, *others: str) -> dict[str, str]:
        """Run every check, before nova-api is restarted.

        :param others: exactly the other checks that end in a warning
        """
        done = self.run_command('upgrade', 'check', '--json')
        self.assertEqual(('', WARNING), (done.stderr, done.returncode))
        rows = json.loads(done.stdout)['checks']
        self.assertEqual({PROCESSES, *others}, {
            row['check'] for row in rows if row['result']})
        return {row['check']: row['details'] or '' for row in rows}

    def member(self, aggregate: fixtures.Aggregate) -> fixtures.Host:
        """Add a host to an aggregate in nova and in placement."""
        host = self.cloud.create_host('h1')
        self.cloud.nova.add_member(aggregate.uuid, 'h1')
        self.cloud.placement.set_aggregates(host.nodes[0], {aggregate.uuid})
        return host

    def test_everything_is_good(self) -> None:
        """From keystone to the drift; nothing is created or written."""
        keystone = self.useFixture(servers.Cloud())
        keystone.token_id = placement_service.TOKEN
        keystone.grant(self.cloud.placement.url)
        self.write_conf(placement='\n'.join(
            map(' = '.join, keystone.account(password=PASSWORD).items())))
        self.assertIn('Drift: nova has no compute node yet',
                      self.details()['Not looked at'])
        host = self.member(self.cloud.create_aggregate('zone', 'az1'))
        before = self.cloud.placement.generation(host.nodes[0])
        details = self.details()
        skipped = [line.partition(':')[0] for line
                   in details.pop('Not looked at').splitlines()]
        self.assertEqual([check.name for check in runner.CHECKS
                          if check.name not in skipped], list(details))
        # What is not there yet, or switched off, is no success.
        self.assertEqual(
            ['Galera', 'Journal', 'Journal users', 'Journal of this nova',
             'Journal writes', 'Neutron credentials', 'Segments', 'Agent',
             'Modes', 'Backlog', 'Isolated aggregates', 'Sharing providers'],
            skipped)
        self.assertIn('1 host aggregate.', details['Drift'])
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
        # An option of oslo.log, which the help names, is accepted.
        done = self.run_command('--debug', 'upgrade', 'check')
        self.assertEqual((COULD_NOT_RUN, ''), (done.returncode, done.stdout))
        self.assertIn('--config-file', done.stderr)

    def test_metadata(self) -> None:
        """Each row is read from nova's database."""
        self.write_conf(
            '[scheduler]\nenable_isolated_aggregate_filtering = true\n')
        placed.create_flavor('fast', ssd='true')
        licensed = self.cloud.create_aggregate('licensed')
        self.member(licensed)
        self.cloud.create_aggregate('empty', 'az2')
        self.assertEqual(200, self.cloud.nova.request(
            'POST', '/os-aggregates/%d/action' % licensed.id, {
                'set_metadata': {'metadata': {
                    'cpu_allocation_ratio': '2.0', 'owner': 'us',
                    'filter_tenant_id': 'them', 'ssd': 'true',
                    'trait:CUSTOM_LICENSED': 'yes'}}}).status_int)
        lines = self.details(
            ZONES, 'Allocation ratios', 'Isolated aggregates',
            'Aggregate metadata')['Aggregate metadata'].splitlines()
        # Both keys are read once the printed lines are set.
        enabled = [line.strip() for line in lines if 'enabled_filters' in line]
        first, second = enabled
        self.write_conf('[filter_scheduler]\n%s,%s\n' % (
            first, second.rpartition(',')[2]))
        self.details(ZONES, 'Allocation ratios', 'Aggregate metadata')
