# SPDX-License-Identifier: Apache-2.0
"""The metrics and health endpoints, over real HTTP."""

import asyncio
import contextlib
import errno
from http import client as http_client
import importlib.metadata
import io
import json
import os
import select
import socket
import struct
import threading
import time

import fixtures
from prometheus_client import parser
import testtools

from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror.agent import metrics_server
from nova_aggregate_mirror import exceptions
from tests import patience

DRIFT = {('az1', 'missing'): 3, ('az1', 'stale'): 1}
LIMITS = {'drain': 60, 'sync': 600}
PATIENCE = patience.seconds(60)
UNFINISHED = b'', b'G', b'GET /healthz HTTP/1.1\r\nHost: a\r\n'


def _descriptors():
    return len(os.listdir('/proc/self/fd'))


class TestMetrics(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.clock = 100.0
        self.metrics = metrics.Metrics(now=lambda: 1234.5,
                                       clock=lambda: self.clock)
        self.server = self.serve()
        # Prometheus sends a request every few seconds, for years.
        errors = self.useFixture(fixtures.MonkeyPatch(
            'sys.stderr', io.StringIO())).new_value
        self.addCleanup(lambda: self.assertEqual('', errors.getvalue()))

    def serve(self, limits=lambda: LIMITS, address='127.0.0.1',
              client_timeout=metrics_server.CLIENT_TIMEOUT):
        """Serve at any free port until the end of the test."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.agent.metrics_server.CLIENT_TIMEOUT',
            client_timeout))
        server = metrics_server.Server(self.metrics, address, 0, limits)
        self.addCleanup(server.close)
        return server

    def connect(self, server=None):
        """Return a client that has sent nothing."""
        client = socket.create_connection(
            ('127.0.0.1', (server or self.server).port), timeout=PATIENCE)
        self.addCleanup(client.close)
        return client

    def ask(self, path, host='127.0.0.1', server=None):
        """Return status and body of a response."""
        port = (server or self.server).port
        client = http_client.HTTPConnection(host, port, timeout=PATIENCE)
        client.request('GET', path)
        with client.getresponse() as answer:
            return answer.status, answer.read().decode()

    def figures(self):
        """Return every sample: its name and labels to its value."""
        status, text = self.ask('/metrics')
        self.assertEqual(200, status)
        figures = {}
        for family in parser.text_string_to_metric_families(text):
            for sample in family.samples:
                labels = {**sample.labels}
                labels.pop('region', None)
                name = sample.name.removeprefix(metrics.PREFIX)
                figures[name, *labels.values()] = sample.value
        return figures

    def test_journal(self):
        """Pending rows, the age of the oldest, and waiting rows.

        Without work the drain is successful, so that no alert fires.
        """
        self.metrics.set_backlog(3, 2, 17.5)
        figures = self.figures()
        self.assertEqual(3, figures['journal_pending_rows',])
        self.assertEqual(2, figures['journal_waiting_rows',])
        self.assertEqual(17.5, figures['journal_oldest_pending_seconds',])
        self.assertEqual(0, figures['last_success_timestamp_seconds', 'drain'])
        self.metrics.set_backlog(0, 2, 0.0)
        self.assertEqual(1234.5, self.figures()[
            'last_success_timestamp_seconds', 'drain'])

    def test_batches_and_syncs(self):
        """Durations by result, changes by loop, and the last success."""
        self.metrics.observe_drain('success', 0.2, 3, 1, 4)
        self.metrics.observe_drain('unavailable', 5.0, 0, 0)
        self.metrics.observe_sync('success', 2.0, 5, 2, drift=DRIFT,
                                  conflicts=6)
        expected = {
            ('converge_duration_seconds_count', 'success'): 1,
            ('converge_duration_seconds_sum', 'unavailable'): 5,
            ('sync_duration_seconds_sum', 'success'): 2,
            ('associations_added_total', 'drain'): 3,
            ('associations_removed_total', 'drain'): 1,
            ('placement_conflicts_total', 'drain'): 4,
            ('placement_conflicts_total', 'sync'): 6,
            ('associations_added_total', 'sync'): 5,
            ('associations_removed_total', 'sync'): 2,
            ('drift_associations', 'missing', 'az1'): 3,
            ('drift_associations', 'stale', 'az1'): 1,
            ('drift_associations', 'stale', ''): 0, ('brake_tripped',): 0,
            ('last_success_timestamp_seconds', 'drain'): 1234.5,
            ('last_success_timestamp_seconds', 'sync'): 1234.5}
        figures = self.figures()
        self.assertEqual(expected, {key: figures[key] for key in expected})

    def test_region_and_release(self):
        """Each sample has the region, and none is the time of its creation.

        A metric shows which release is running.
        """
        west = metrics.Metrics('west')
        west.expect_audits(['zone'])
        samples = [sample for family in west.registry.collect()
                   for sample in family.samples]
        self.assertEqual(
            {'west'}, {sample.labels['region'] for sample in samples})
        for path in '/metrics', '/metrics?name[]=%sleader' % metrics.PREFIX:
            _status, text = self.ask(path)
            self.assertIn('leader{region=""} ', text)
            self.assertNotIn('_created', text)
        self.assertEqual(1, self.figures()[
            'build_info', importlib.metadata.version('nova-aggregate-mirror')])

    def test_figures_of_the_last_comparison(self):
        """The next one replaces all of them; refused removals are no success.

        A sync that compared nothing changes none, and a zone that is gone does
        not keep its value.
        """
        self.metrics.observe_sync(
            'partial', 2.0, drift=DRIFT, refused=True, uncompared=3)
        for result, drift, shown, expected in (
                ('failure', None, {('missing', 'az1'): 3, ('stale', 'az1'): 1},
                 [1, 3, 0]),
                ('success', {('az2', 'stale'): 1}, {('stale', 'az2'): 1},
                 [0, 0, 1234.5])):
            self.metrics.observe_sync(result, 2.0, drift=drift)
            figures = self.figures()
            self.assertEqual(expected, [figures[key] for key in (
                ('brake_tripped',), ('uncompared_hosts',),
                ('last_success_timestamp_seconds', 'sync'))])
            self.assertEqual(
                {('missing', ''): 0, ('stale', ''): 0, **shown},
                {tuple(labels): value for (name, *labels), value
                 in figures.items() if name == 'drift_associations'})

    def test_failure_is_no_success(self):
        """Otherwise an alert on the last success would never fire."""
        self.metrics.observe_drain('failure', 0.2, 0, 0)
        self.metrics.observe_sync('partial', 0.2)
        figures = self.figures()
        self.assertEqual([0, 0], [
            figures['last_success_timestamp_seconds', loop]
            for loop in ('drain', 'sync')])

    def test_each_label_is_shown_from_the_start(self):
        """An alert can tell 0 from a metric that is missing."""
        before = self.figures().keys()
        for result in ('success', 'failure', 'unavailable'):
            self.metrics.observe_drain(result, 0.1, 1, 1)
        for result in ('success', 'partial', 'failure'):
            self.metrics.observe_sync(result, 0.1, 1, 1, {('', 'missing'): 1})
        self.assertEqual(before, self.figures().keys())

    def test_audits(self):
        """They are shown only if they are switched on, and by the leader."""
        self.assertNotIn('misplaced_servers',
                         [name for name, *_labels in self.figures()])
        self.metrics.expect_audits(['zone', 'segment'])
        self.assertEqual(0, self.figures()['misplaced_servers', 'segment'])
        self.metrics.set_leader(True)
        self.metrics.observe_audit('success', 3.0, 100, {'zone': 2})
        self.metrics.observe_audit('failure', 1.0)
        figures = self.figures()
        self.assertEqual([0, 1234.5, 3.0, 1.0], [
            figures[one] for one in (
                ('misplaced_servers', 'segment'),
                ('last_success_timestamp_seconds', 'audit'),
                ('audit_duration_seconds_sum', 'success'),
                ('audit_duration_seconds_sum', 'failure'))])
        # The next audit of an agent that leads again may be a day away.
        for leads in True, False, True:
            self.metrics.set_leader(leads)
            figures = self.figures()
            self.assertEqual(
                (2 * leads, 100 * leads), (
                    figures['misplaced_servers', 'zone'],
                    figures['audited_servers',]))

    def test_audits_that_a_reload_begins_or_ends(self):
        """An alert must not fire for what the last one found.

        Neither for a rule that is not enforced any more, after a reload.
        """
        limits = {'audit': 90.0}
        self.assertEqual([], self.metrics.late(limits))
        self.metrics.expect_audits(['zone', 'segment'])
        # No loop is stuck while nova is imported for it.
        self.assertEqual([], self.metrics.late(limits))
        self.assertNotEqual([], self.metrics.late({'audit': -1.0}))
        self.metrics.observe_audit('success', 3.0, 100, {'segment': 2})
        for rules in ['zone'], []:
            self.metrics.expect_audits(rules)
            self.assertEqual(
                [('misplaced_servers', rule) for rule in rules],
                [key for key in self.figures()
                 if key[0] == 'misplaced_servers'])
        self.metrics.expect_audits(['segment'])
        self.assertEqual(0, self.figures()['misplaced_servers', 'segment'])

    def test_figures_of_a_former_leader(self):
        """Only the new leader shows the backlog and the drift.

        A step may end before the lease, or after it.
        """
        self.metrics.set_leader(True)
        self.assertEqual(1, self.figures()['leader',])
        for _step in 'before', 'after':
            self.metrics.set_backlog(3, 2, 17.5)
            self.metrics.observe_sync(
                'partial', 2.0, drift=DRIFT, refused=True, uncompared=3)
            self.metrics.set_leader(False)
            figures = self.figures()
            self.assertEqual([0] * 6, [figures[name,] for name in (
                'leader', 'journal_pending_rows', 'journal_waiting_rows',
                'journal_oldest_pending_seconds', 'brake_tripped',
                'uncompared_hosts')])
            self.assertNotIn(('drift_associations', 'stale', 'az1'), figures)

    def test_health(self):
        """Each loop must report in within its limit; a silent one is named."""
        status, text = self.ask('/healthz')
        self.assertEqual(503, status)
        self.assertIn('drain loop has not started', text)
        self.metrics.beat('drain')
        self.metrics.beat('sync')
        status, text = self.ask('/healthz')
        self.assertEqual((200, {'status': 'ok', 'reasons': [],
                                'last_sync': None}),
                         (status, json.loads(text)))
        self.metrics.observe_sync('partial', 2.0)
        status, text = self.ask('/healthz')
        self.assertEqual((200, 'partial'),
                         (status, json.loads(text)['last_sync']))
        self.clock += 61
        status, text = self.ask('/healthz')
        self.assertEqual(503, status)
        self.assertEqual(['the drain loop last reported 61 s ago'],
                         json.loads(text)['reasons'])

    def test_methods_and_paths(self):
        """HEAD is a GET without a body: a load balancer may use it.

        Other paths list the valid ones; other methods are refused.
        """
        for path, expected, text in (
                ('/metrics', 200, b'\n# HELP '),
                ('/healthz', 503, b'Content-Type: application/json'),
                ('/', 404, b'{"error": "use /metrics or /healthz"}')):
            # The body of /metrics has process metrics, which change.
            head, got = (self.raw(method, path) for method in ('HEAD', 'GET'))
            self.assertIn(b' %d ' % expected, head)
            self.assertEqual((b'', True), (head.partition(b'\r\n\r\n')[2],
                                           b'Content-Length: 0' not in head))
            self.assertIn(text, got)
            body = got.partition(b'\r\n\r\n')[2]
            self.assertIn(b'Content-Length: %d\r\n' % len(body), got)
        for method in 'POST', 'OPTIONS', 'TRACE', 'UNKNOWN':
            refusal = self.raw(method, '/metrics')
            self.assertIn(b' 501 ', refusal)
            self.assertNotIn(metrics.PREFIX.encode(), refusal)

    def raw(self, method, path):
        """Return all bytes of a response."""
        client = self.connect()
        client.sendall(b'%s %s HTTP/1.0\r\n\r\n' % (
            method.encode(), path.encode()))
        return self.rest(client)

    def test_request_in_parts(self):
        """It is answered when it is complete, or its sender sends no more."""
        for parts, end in (
                ((b'GET /metr', b'ics HTTP/1.0\r\n', b'\r\n'), False),
                ((b'GET /metrics HTTP/1.0\n', b'\n'), False),
                ((b'GET /metrics HTTP/1.0\r\n',), True)):
            client = self.connect()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in parts:
                client.sendall(part)
            if end:
                client.shutdown(socket.SHUT_WR)
            self.assertIn(b' 200 OK', client.recv(4096))

    def test_no_descriptor_is_left(self):
        """Clients are answered meanwhile, and further ones afterwards."""
        steps, refused, sleep = [], threading.Event(), asyncio.sleep

        async def pause(seconds):
            steps.append('pause')
            await sleep(seconds)

        self.useFixture(fixtures.MonkeyPatch('asyncio.sleep', pause))

        def refuse(listener):
            steps.append('refuse')
            if steps.count('refuse') == 2:
                refused.set()
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

        early = self.connect()
        self.ask('/metrics')
        with fixtures.MonkeyPatch('socket.socket.accept', refuse):
            late = self.connect()
            early.sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
            self.assertIn(b' 200 OK', early.recv(4096))
            self.assertTrue(refused.wait(PATIENCE))
        late.sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
        self.assertIn(b' 200 OK', late.recv(4096))
        self.assertEqual(['refuse', 'pause', 'refuse'], steps[:3])

    def test_client_that_resets_its_connection(self):
        """Nothing is logged, be it before the answer or during it."""
        log = self.useFixture(fixtures.FakeLogger())
        server = self.serve_long_answers()
        client = self.connect(server)
        client.sendall(b'GET /')
        self.ask('/metrics', server=server)
        # With a linger time of 0, a close is a reset.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                          struct.pack('ii', 1, 0))
        for client in client, self.slow_client(server):
            client.close()
            self.assertEqual(200, self.ask('/metrics', server=server)[0])
        self.assertEqual('', log.output)

    def test_clients_that_are_let_go(self):
        """Time is counted from the start of a connection, not per byte.

        A client whose request is too long has its connection closed, or reset.
        """
        client = self.connect()
        with contextlib.suppress(ConnectionError):
            client.sendall(b'G' * 2 * metrics_server.LONGEST_REQUEST)
            self.assertEqual(b'', client.recv(1))
        server = self.serve(client_timeout=0.2)
        self.assertEqual(b'', self.connect(server).recv(1))
        client = self.connect(server)
        client.settimeout(0.01)
        for _ in range(100 * PATIENCE):
            try:
                client.sendall(b'G')
                if not client.recv(1):
                    return
            except TimeoutError:
                continue
            except OSError:
                return
        self.fail('The client was not disconnected')

    def serve_long_answers(self, **options):
        """Serve, with answers about the health of five megabytes."""
        loops = dict.fromkeys(
            ('%0100d' % number for number in range(50_000)), 1)
        return self.serve(lambda: loops, **options)

    def slow_client(self, server, pause=lambda: None):
        """Send a request, and read only the beginning of its answer."""
        client = socket.socket()
        self.addCleanup(client.close)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(PATIENCE)
        client.connect(('127.0.0.1', server.port))
        client.sendall(b'GET /healthz')
        pause()
        client.sendall(b' HTTP/1.0\r\n\r\n')
        self.assertEqual(b'H', client.recv(1))
        return client

    def rest(self, client):
        """Return what a client receives until the end."""
        return b''.join(iter(lambda: client.recv(2 ** 20), b''))

    def test_idle_clients_make_room_for_others(self):
        """They use up neither threads nor descriptors.

        A request that is being answered is not given up for them.
        """
        server = self.serve_long_answers(client_timeout=3600)
        client = self.slow_client(server)
        threads, descriptors = threading.active_count(), _descriptors()
        idle = []
        for number in range(5 * metrics_server.MOST_CLIENTS):
            idle.append(self.connect(server))
            idle[-1].sendall(UNFINISHED[number % len(UNFINISHED)])
        # The first had to make room for the last.
        self.assertEqual(b'', idle[0].recv(1))
        self.assertEqual(200, self.ask('/metrics', server=server)[0])
        self.assertEqual(threads, threading.active_count())
        self.assertLessEqual(
            _descriptors(),
            descriptors + len(idle) + 2 * metrics_server.MOST_CLIENTS)
        body = self.rest(client).partition(b'\r\n\r\n')[2]
        self.assertEqual(50_000, len(json.loads(body)['reasons']))

    def test_many_clients_that_read_no_answer(self):
        """The first of them makes room for a further client."""
        server = self.serve_long_answers(client_timeout=3600)
        clients = [self.slow_client(server)
                   for _ in range(metrics_server.MOST_CLIENTS)]
        self.assertEqual(200, self.ask('/metrics', server=server)[0])
        first, second = (len(self.rest(client)) for client in clients[:2])
        self.assertLess(first, second)

    def test_answer_that_is_not_read(self):
        """Its client has as long for it again as for its request."""
        self.useFixture(fixtures.MonkeyPatch(
            'asyncio.BaseEventLoop.time', lambda loop: self.clock))
        server = self.serve_long_answers(client_timeout=10)

        def let_pass(seconds):
            # Each answer shows that earlier clients were accepted, and that
            # overdue ones were looked for.
            self.ask('/metrics', server=server)
            self.clock += seconds
            self.ask('/metrics', server=server)

        for seconds, is_late in (9, False), (11, True):
            client = self.slow_client(server, lambda: let_pass(9))
            let_pass(seconds)
            head, _empty, body = self.rest(client).partition(b'\r\n\r\n')
            length = int(head.rpartition(b' ')[2])
            self.assertEqual(is_late, len(body) < length)

    def test_crowd_of_clients_is_let_in(self):
        """A client whose connection is refused retries a second later."""
        clients = []
        for _ in range(100):
            client = socket.socket()
            self.addCleanup(client.close)
            client.setblocking(False)
            client.connect_ex(('127.0.0.1', self.server.port))
            clients.append(client)
        waiting = set(clients)
        retried = time.monotonic() + 0.8
        is_late = False
        while waiting and not is_late:
            is_late = time.monotonic() > retried
            waiting -= set(select.select([], waiting, [], 0.1)[1])
        self.assertEqual(0, len(waiting))
        self.assertEqual(200, self.ask('/metrics')[0])

    def test_metrics_that_cannot_be_collected(self):
        """The log has the traceback."""
        log = self.useFixture(fixtures.FakeLogger())
        self.useFixture(fixtures.MockPatchObject(
            self.metrics.registry, 'collect', side_effect=ValueError('bad')))
        self.assertEqual(b'', self.raw('GET', '/metrics'))
        lines = log.output.splitlines()
        self.assertEqual(
            ['A request for metrics or health failed', 'ValueError: bad'],
            [lines[0], lines[-1]])

    def test_address_of_ipv6(self):
        """The option accepts an IPv6 address, and the server binds it."""
        try:
            with socket.create_server(('::1', 0), family=socket.AF_INET6):
                pass
        except OSError as exc:
            self.skipTest('no IPv6 here: %s' % exc)
        for address in '::1', '::':
            server = self.serve(address=address)
            self.assertEqual(200, self.ask('/metrics', host='::1',
                                           server=server)[0])

    def test_address_that_cannot_be_served(self):
        """The error names it once, and the options to change.

        The port of a closed server is free: the next agent starts immediately.
        """
        server = metrics_server.Server(self.metrics, '127.0.0.1', 0, dict)
        # Too long for a request to a name server.
        # As on a machine without IPv6.
        self.useFixture(fixtures.MonkeyPatch(
            'socket.has_dualstack_ipv6', lambda: False))
        error = self.assertRaises(
            exceptions.InvalidConfiguration, metrics_server.Server,
            self.metrics, '::1', 0, LIMITS)
        self.assertIn('ipv6', str(error))
        for host, port in ('127.0.0.1', server.port), ('a' * 64, 0):
            error = self.assertRaises(
                exceptions.InvalidConfiguration, metrics_server.Server,
                self.metrics, host, port, LIMITS)
            self.assertRegex(str(error), (
                'metrics cannot be served: [^(]+ \\(.*%r.*\\); change '
                '\\[aggregate_mirror\\] metrics_host or metrics_port' % host))
        server.close()
        again = metrics_server.Server(
            self.metrics, '127.0.0.1', server.port, dict)
        self.addCleanup(again.close)
        self.assertEqual(200, self.ask('/healthz', server=again)[0])
