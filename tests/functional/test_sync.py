# SPDX-License-Identifier: Apache-2.0
"""A full sync: nova's command compared with this package's."""

import contextlib
import io

from keystoneauth1 import exceptions as ks_exceptions
from nova.cmd import manage
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.reconcile import outcome
from tests import fixtures


class SyncTest(testtools.TestCase):
    """Three hosts in an aggregate, missing in placement."""

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.StockNova())
        self.aggregate = self.cloud.create_aggregate('aggregate', 'east')
        # The order in which nova processes them.
        self.first = self.cloud.create_host('host1')
        self.ironic = self.cloud.create_host('host2', nodes=2)
        self.last = self.cloud.create_host('host3')
        for host in self.first, self.ironic, self.last:
            self.cloud.add_host(self.aggregate, host)
        self._forget()

    def _forget(self) -> None:
        for node in self.cloud.nova.nodes():
            self.cloud.placement.set_aggregates(node, [])

    def _missing(self) -> set[str]:
        return {node for node in self.cloud.nova.nodes()
                if not self.cloud.placement.aggregates(node)}

    def _nova_manage(self) -> tuple[int, str]:
        """Run "nova-manage placement sync_aggregates"; return its result."""
        self.cloud.nova.restart()
        with contextlib.redirect_stdout(io.StringIO()) as output:
            code = manage.PlacementCommands().sync_aggregates(verbose=True)
        return code, output.getvalue()

    def test_stock_stops_at_a_host_with_two_nodes(self) -> None:
        """The command exits with 1, and later hosts are not mirrored."""
        code, output = self._nova_manage()
        self.assertEqual(1, code)
        self.assertIn('Unexpected number of compute node records (2)', output)
        self.assertEqual({*self.ironic.nodes, *self.last.nodes},
                         self._missing())

    def test_mirrored_takes_every_node_of_a_host(self) -> None:
        """All nodes of a host are mirrored."""
        self.cloud.sync()
        self.assertEqual([], self.cloud.drift())

    def test_stock_stops_at_the_first_failure(self) -> None:
        """After a single 503 it exits with 2 and mirrors no other host."""
        self.cloud.placement.fail_with(503, provider=self.first.nodes[0])
        code, _ = self._nova_manage()
        self.assertEqual(2, code)
        self.assertEqual(set(self.cloud.nova.nodes()), self._missing())

    def test_stock_stops_at_the_first_failed_write(self) -> None:
        """After a single 503 to a PUT it exits with 3."""
        self.cloud.placement.fail_with(503, ('PUT',))
        self.assertEqual(3, self._nova_manage()[0])
        self.assertEqual(set(self.cloud.nova.nodes()), self._missing())

    def test_mirrored_goes_on_past_failures(self) -> None:
        """Only the failed provider is left, and it is reported."""
        [broken] = self.first.nodes
        for methods in ('GET', 'PUT'), ('PUT',):
            self._forget()
            self.cloud.placement.fail_with(503, methods, provider=broken)
            failed = self.cloud.sync().outcome.failed
            self.assertEqual({broken}, self._missing())
            self.assertEqual({outcome.Provider(broken)}, set(failed))
            self.cloud.placement.recover()
        self.cloud.sync()
        self.assertEqual([], self.cloud.drift())

    def test_stock_raises_when_placement_is_down(self) -> None:
        """The command fails with a traceback."""
        self.cloud.placement.refuse()
        self.assertRaises(ks_exceptions.ClientException, self._nova_manage)

    def test_mirrored_is_one_error_when_placement_is_down(self) -> None:
        """The command gets a single error to print."""
        self.cloud.placement.refuse()
        self.assertIsInstance(self.cloud.sync().not_compared,
                              exceptions.ServiceUnreachable)

    def test_stock_claims_success_for_a_write_that_was_lost(self) -> None:
        """The command exits with 0 and has mirrored nothing."""
        self.cloud.remove_host(self.aggregate, self.ironic)
        self.cloud.placement.drop_connection()
        code, output = self._nova_manage()
        self.assertEqual(0, code)
        self.assertEqual(2, output.count('Successfully added'))
        self.assertEqual(2, len(self.cloud.drift()))

    def test_mirrored_reports_a_write_that_was_lost(self) -> None:
        """A write that is not known to be done is a failure."""
        self.cloud.placement.drop_connection()
        sync = self.cloud.sync()
        self.assertEqual([], sync.outcome.changes)
        self.assertTrue(sync.outcome.failed)
        self.cloud.placement.recover()
        self.cloud.sync()
        self.assertEqual([], self.cloud.drift())

    def test_stock_claims_to_add_what_was_there(self) -> None:
        """"Successfully added" is printed although nothing was added."""
        self.cloud.remove_host(self.aggregate, self.ironic)
        self._nova_manage()
        self.assertEqual([], self.cloud.drift())
        code, output = self._nova_manage()
        self.assertEqual(0, code)
        self.assertEqual(2, output.count('Successfully added'))

    def test_mirrored_reports_only_what_it_changed(self) -> None:
        """A second sync finds nothing to do."""
        changes = self.cloud.sync().outcome.changes
        self.assertEqual(sorted(self.cloud.nova.nodes()),
                         sorted(change.provider for change in changes))
        self.assertEqual([], self.cloud.sync().outcome.changes)

    def test_stock_never_removes(self) -> None:
        """A host that nova has removed stays in the zone permanently."""
        self._remove_from_nova_only()
        self.assertEqual(0, self._nova_manage()[0])
        self.assertEqual(1, len(self.cloud.drift()))

    def _remove_from_nova_only(self) -> None:
        for host in self.ironic, self.first:
            self.cloud.remove_host(self.aggregate, host)
        self.cloud.placement.set_aggregates(
            self.last.nodes[0], [self.aggregate.uuid])
        self.cloud.placement.drop_connection()
        self.cloud.remove_host(self.aggregate, self.last)
        self.cloud.placement.recover()

    def test_mirrored_removes_what_the_journal_has(self) -> None:
        """With the hooks, the next sync repairs the same outage."""
        self.useFixture(fixtures.MirroredNova())
        self._remove_from_nova_only()
        self.assertEqual(1, len(self.cloud.drift()))
        self.cloud.sync()
        self.assertEqual([], self.cloud.drift())

    def test_mirrored_reports_what_it_does_not_remove(self) -> None:
        """A stale association without a journal row is reported and kept."""
        self._remove_from_nova_only()
        self.assertEqual(
            [(self.last.nodes[0], self.aggregate.uuid)],
            [association.pair for association in self.cloud.sync().associations
             if association.state == 'stale_kept'])
        self.assertEqual(1, len(self.cloud.drift()))
