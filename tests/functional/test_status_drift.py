# SPDX-License-Identifier: Apache-2.0
"""The status command on differences between nova and placement."""

from collections.abc import Sequence
import pathlib

from oslo_utils import uuidutils

from tests import commands
from tests import fixtures
from tests.functional import status_command
from tests.functional.status_command import FAILURE
from tests.functional.status_command import SUCCESS
from tests.functional.status_command import WARNING

ZONES = 'Availability zones'
SYNC = 'nova-aggregate-mirror-manage placement sync_aggregates'


class DriftTest(status_command.StatusTest):

    def setUp(self) -> None:
        super().setUp()
        self.zone = self.cloud.create_aggregate('zone', 'az1')
        self.rack = self.cloud.create_aggregate('rack')

    def assert_drift(self, result: int, *texts: str,
                     others: Sequence[str] = ()) -> None:
        """Check the row.

        :param others: checks that do not succeed either
        """
        rows = self.rows(result)
        self.assert_row(result, rows['Drift'], *texts)
        self.assert_others_good(rows, 'Drift', *others)

    def type(self, command: str) -> None:
        """Run a printed command, with the configuration of the test."""
        program, *argv = command.split()
        module, = (module for module, name in commands.PROGRAMS.items()
                   if name == program)
        commands.run(
            module, ['--config-file', str(self.conf), *argv]
        ).check_returncode()


class TestZones(DriftTest):

    def test_missing_association(self):
        """The zone, the host, and the command that repairs it are printed."""
        self.member(self.zone, 'h1', mirrored=False)
        self.member(self.rack, 'h2', mirrored=False)
        command = SYNC
        self.assert_drift(
            WARNING, 'In placement, availability zone az1 lacks host h1.\n',
            'In placement, aggregate rack lacks host h2.\n', '  ' + command)
        self.type(command)
        self.assert_others_good(self.rows(SUCCESS))

    def test_stale_association(self):
        """The printed command prunes."""
        host = self.cloud.create_host('h1')
        self.member(self.zone, 'h2')
        self.cloud.placement.set_aggregates(host.nodes[0], {self.zone.uuid})
        command = SYNC + ' --prune'
        self.assert_drift(
            WARNING,
            'In placement, availability zone az1 still has host h1.\n',
            '  ' + command)
        self.type(command)
        self.assert_others_good(self.rows(SUCCESS))

    def test_more_than_the_brake_allows(self):
        """A failure: it may be caused by a damaged database."""
        host = self.cloud.create_host('h1')
        self.cloud.placement.set_aggregates(host.nodes[0], {self.zone.uuid})
        self.assert_drift(FAILURE, 'no host in any aggregate',
                          'availability zone az1 still has host h1.\n',
                          '  %s --prune --dry-run\n  %s --prune --force'
                          % (SYNC, SYNC), others=[ZONES])

    def test_deleted_aggregate(self):
        """It is owned, because it is in the ledger."""
        host = self.member(self.zone, 'h1')
        gone = self.cloud.create_aggregate('gone', 'az2')
        self.journal().ledger.remember([gone.uuid])
        self.assertEqual(200, self.cloud.delete_aggregate(gone))
        self.cloud.placement.set_aggregates(
            host.nodes[0], {self.zone.uuid, gone.uuid})
        self.assert_drift(WARNING, 'deleted aggregate %s still has host h1'
                          % gone.uuid)

    def test_aggregate_that_a_user_deleted(self):
        """Providers that are no compute nodes are named by their UUID."""
        self.member(self.zone, 'h1')
        gone, segment = [uuidutils.generate_uuid() for _ in range(2)]
        self.journal().ledger.mark(gone)
        self.cloud.placement.create_provider(segment, 'segment')
        self.cloud.placement.set_aggregates(segment, {gone})
        self.assert_drift(WARNING, 'deleted aggregate %s still has' % gone,
                          segment)

    def test_aggregates_of_others(self):
        """Foreign aggregates are not compared."""
        host = self.member(self.zone, 'h1')
        self.cloud.placement.set_aggregates(host.nodes[0], {
            self.zone.uuid, '11111111-2222-3333-4444-555555555555'})
        self.assert_others_good(self.rows(SUCCESS))


class TestHosts(DriftTest):

    def test_provider_that_is_not_there_yet(self):
        """Nova-compute has not reported to placement yet."""
        self.member(self.zone, 'h1')
        self.member(self.zone, 'h2', providers=False, mirrored=False)
        self.assert_drift(WARNING, 'No resource provider yet for h2.',
                          '  systemctl restart nova-compute')

    def test_no_provider_at_all(self):
        """Placement is new, or it is the wrong placement."""
        self.member(self.zone, 'h1', providers=False, mirrored=False)
        self.assert_drift(WARNING, 'nova has 1 compute node, with no UUID in',
                          '  systemctl restart nova-compute')

    def test_host_that_is_not_mapped(self):
        """It is mirrored, but nova does not schedule to it."""
        self.member(self.zone, 'h1', mapped=False)
        self.assert_drift(WARNING, 'No host mapping for h1.',
                          '  nova-manage cell_v2 discover_hosts')

    def test_host_without_compute_node(self):
        """Nova-compute never reported a compute node."""
        self.member(self.zone, 'h1', nodes=0)
        self.assert_drift(WARNING, 'No compute node for h1.',
                          '  systemctl restart nova-compute',
                          others=[ZONES])

    def test_cell_that_is_down(self):
        """Its hosts are not compared; hosts of other cells are."""
        self.member(self.zone, 'near', mirrored=False)
        self.member(self.zone, 'far', cell='cell2', mirrored=False)
        pathlib.Path(fixtures.CONF.state_path, 'cell2.sqlite').write_bytes(
            b'no database any more' * 999)
        self.assert_drift(
            WARNING, 'Cell cell2 (', 'lacks host near.\n',
            '  nova-manage cell_v2 list_cells --verbose')
