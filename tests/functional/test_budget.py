# SPDX-License-Identifier: Apache-2.0
"""The time that a user's request has for databases and placement together."""

import time
import types
from typing import Any

import fixtures as base_fixtures
from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.source import database
from tests import fixtures


class TestBudget(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.MirroredNova())
        self.set(inline_timeout=5.0)
        self.ahead = 0.0
        """Seconds that have passed for the deadline only."""
        self.replace('limits.deadline.time', types.SimpleNamespace(
            monotonic=lambda: time.monotonic() + self.ahead))

    def set(self, **options: object) -> None:
        self.cloud.nova.conf.config(group='aggregate_mirror', **options)

    def replace(self, name: str, value: Any) -> None:
        self.useFixture(base_fixtures.MonkeyPatch(
            'nova_aggregate_mirror.' + name, value))

    def host_in(self, *names: str) -> fixtures.Host:
        """Create a host that is in these aggregates."""
        host = self.cloud.create_host('h1')
        for name in names:
            self.cloud.add_host(self.cloud.create_aggregate(name), host)
        return host

    def slow_close(self, seconds: float) -> list[float]:
        """Let each converge take some time; return what is left before."""
        close = reconciler.Reconciler.converge_and_close
        left: list[float] = []

        def slow(*args: Any) -> Any:
            left.append(deadline.remaining())
            self.ahead += seconds
            return close(*args)

        self.replace('reconcile.reconciler.Reconciler.converge_and_close',
                     slow)
        return left

    def test_operations_of_a_request_share_one(self) -> None:
        """A service is removed from each aggregate of its host."""
        self.set(inline_timeout=10.0)
        host = self.host_in('first', 'second', 'third')
        left = self.slow_close(2.0)
        self.assertEqual(204, self.cloud.delete_service(host))
        first, _second, third = left
        self.assertLessEqual(third, first - 4.0)

    def test_journal_is_written_after_it_is_spent(self) -> None:
        """The agent mirrors what the request had no time for."""
        def slow(*_args: Any) -> Any:
            self.ahead += 60.0
            raise exceptions.DeadlineExceeded('placement is slow')

        host = self.host_in('first', 'second', 'third')
        self.replace('reconcile.reconciler.Reconciler.converge_and_close',
                     slow)
        self.assertEqual(204, self.cloud.delete_service(host))
        rows = fixtures.Agent().journal.rows.all()
        self.assertEqual([(host.name, False, frozenset(host.nodes))] * 3, [
            (row.dirty.host, row.running, row.dirty.nodes) for row in rows])

    def test_nova_is_not_read_after_it_is_spent(self) -> None:
        """Its API database may be silent; the nodes are known already."""
        reads = []
        scope = database.DatabaseSource.scope

        def read(*args: Any) -> Any:
            reads.append(deadline.remaining())
            return scope(*args)

        host = self.host_in('first', 'second')
        self.slow_close(4.2)
        self.replace('source.database.DatabaseSource.scope', read)
        self.assertEqual(204, self.cloud.delete_service(host))
        # A statement may take two seconds.
        self.assertLessEqual(reads[-1] + 4.2, 5.0)

    def test_unmarked_deletion_has_the_floor(self) -> None:
        """No other attempt includes providers that are no hosts."""
        self.set(inline_timeout=60.0)
        left = []
        remove = reconciler.Reconciler.remove

        def silent(*_args: Any) -> Any:
            self.ahead += 61.0
            raise exceptions.JournalUnavailable('the journal is silent')

        def removed(*args: Any) -> Any:
            left.append(deadline.remaining())
            self.ahead = 0.0
            return remove(*args)

        segment = uuidutils.generate_uuid()
        aggregate = self.cloud.create_aggregate('aggregate')
        placement = self.cloud.placement
        placement.create_provider(segment, 'segment')
        placement.set_aggregates(segment, [aggregate.uuid])
        self.replace('journal.ledger.DatabaseLedger.mark', silent)
        self.replace('reconcile.reconciler.Reconciler.remove', removed)
        self.assertEqual(200, self.cloud.delete_aggregate(aggregate))
        self.assertTrue(0.0 < left[0] <= 3.25, left)
        self.assertEqual(frozenset(), placement.aggregates(segment))
