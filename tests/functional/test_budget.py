# SPDX-License-Identifier: Apache-2.0
"""The time that a user's request has for databases and placement together."""

from collections import abc
import contextlib
import re
import socket
import threading
import time
import types
from typing import Any

import fixtures as base_fixtures
from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios
import testtools
from testtools import matchers

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.hooks import processes
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror.source import host_database
from tests import databases
from tests import fixtures
from tests import functional
from tests.unit import servers

load_tests = testscenarios.load_tests_apply_scenarios

MORE_TIME = causes.NOT_ASKED.in_call().step


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
        close = processes.Process.converge_and_close
        left: list[float] = []

        def slow(*args: Any) -> Any:
            left.append(deadline.remaining())
            self.ahead += seconds
            return close(*args)

        self.replace('hooks.processes.Process.converge_and_close', slow)
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
        self.replace('hooks.processes.Process.converge_and_close', slow)
        self.assertEqual(204, self.cloud.delete_service(host))
        rows = fixtures.Agent().journal.rows.all()
        expected = host.name, False, frozenset(host.nodes)
        self.assertEqual([expected] * 3, [
            (row.dirty.host, row.running, row.dirty.nodes) for row in rows])

    def test_nova_is_not_read_after_it_is_spent(self) -> None:
        """Its API database may be silent; the nodes are known already."""
        reads = []
        scope = host_database.HostSource.scope

        def read(*args: Any) -> Any:
            reads.append(deadline.remaining())
            return scope(*args)

        host = self.host_in('first', 'second')
        self.slow_close(4.2)
        self.replace('source.host_database.HostSource.scope', read)
        self.assertEqual(204, self.cloud.delete_service(host))
        # A statement may take two seconds.
        self.assertLessEqual(reads[-1] + 4.2, 5.0)

    def test_unmarked_deletion_has_the_floor(self) -> None:
        """No other attempt includes providers that are no hosts."""
        self.set(inline_timeout=60.0)
        left = []
        remove = provider_writes.remove

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
        self.replace('reconcile.provider_writes.remove', removed)
        self.assertEqual(200, self.cloud.delete_aggregate(aggregate))
        self.assertTrue(0.0 < left[0] <= 3.25, left)
        self.assertEqual(frozenset(), placement.aggregates(segment))


class TestSlowJournal(testscenarios.WithScenarios, testtools.TestCase):
    """The journal's database answers everything, but slowly.

    The clock is that of its answers: no other time passes.
    """

    scenarios = [*databases.SCENARIOS[1:], databases.PSYCOPG]
    driver = ''

    def setUp(self) -> None:
        super().setUp()
        if functional.GREEN and self.kind == 'postgresql':
            self.skipTest('libpq would block the relay of this process')
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.MirroredNova())
        url = sa.engine.make_url(
            databases.create(self, self.kind, self.driver))
        self.cloud.nova.conf.config(
            group='aggregate_mirror', inline_timeout=5.0, inline_backoff=30.0)
        self.use(url)
        existing.migrate(self.cloud.nova.conf.conf)
        self.now, self.answer_time, self._port = 1000.0, 0.25, url.port
        relay = self.useFixture(servers.Server(self.relay))
        self.use(url.set(port=sa.engine.make_url(relay.url).port))
        for module in 'limits.deadline', 'limits.engines':
            self.useFixture(base_fixtures.MonkeyPatch(
                'nova_aggregate_mirror.%s.time' % module,
                types.SimpleNamespace(monotonic=lambda: self.now)))
        self.log = self.useFixture(base_fixtures.FakeLogger())

    def use(self, url: sa.engine.URL) -> None:
        self.cloud.nova.conf.config(
            group='aggregate_mirror_database',
            connection=url.render_as_string(hide_password=False))

    def relay(self, _server: servers.Server, client: socket.socket) -> None:
        """Relay a connection; the clock advances with each answer."""
        with socket.create_connection(('127.0.0.1', self._port)) as database:
            waiting = threading.Event()
            # MySQL speaks first.
            waiting.set()
            threading.Thread(target=self.answer, daemon=True, args=(
                database, client, waiting)).start()
            for request in received(client):
                waiting.set()
                database.sendall(request)

    def answer(self, database: socket.socket, client: socket.socket,
               waiting: threading.Event) -> None:
        with contextlib.suppress(OSError):
            for piece in received(database):
                # An answer may be received in several pieces.
                self.now += self.answer_time * waiting.is_set()
                waiting.clear()
                client.sendall(piece)

    def add_host(self, number: int) -> str:
        """Add a host to an aggregate, which is mirrored; return the log."""
        host = self.cloud.create_host('h%d' % number)
        aggregate = self.cloud.create_aggregate('a%d' % number)
        logged = len(self.log.output)
        self.assertEqual(200, self.cloud.add_host(aggregate, host).status)
        self.assertEqual(
            frozenset({aggregate.uuid}),
            self.cloud.placement.aggregates(host.nodes[0]))
        log = self.log.output[logged:]
        for text in ('not tried again', 'silent', 'not mirrored', 'closed',
                     'cannot', 'failed'):
            self.assertNotIn(text, log)
        return log

    def test_each_call_continues_to_open_it(self) -> None:
        """No back-off begins, and the third operation is recorded."""
        began = self.now
        self.assertIn(
            'the journal was not asked further: no time is left for the rest '
            'of the transaction: ' + MORE_TIME, self.add_host(0))
        self.assertLessEqual(self.now - began, 6.0)
        self.add_host(1)
        for number in 2, 3:
            self.assertNotIn('without the journal', self.add_host(number))

    def test_record_takes_longer_than_a_request_has(self) -> None:
        """Each call says so, with the option to raise."""
        for number in range(3):
            self.add_host(number)
        self.answer_time = 1.0
        for number in range(3, 6):
            self.assertThat(self.add_host(number), matchers.MatchesRegex(
                '.*the journal was not asked.*: no time is left.*: '
                + re.escape(MORE_TIME), re.DOTALL))


def received(peer: socket.socket) -> abc.Iterator[bytes]:
    """Yield what a socket receives until its peer closes it."""
    while data := peer.recv(65536):
        yield data
