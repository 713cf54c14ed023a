# SPDX-License-Identifier: Apache-2.0
"""What an agent shows, over real HTTP."""

import json
import socket
import urllib.error
import urllib.request

from prometheus_client import parser
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import metrics

LIMITS = {'drain': 60, 'sync': 600}


class TestMetrics(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.clock = 100.0
        self.metrics = metrics.Metrics(now=lambda: 1234.5,
                                       beating=lambda: self.clock)
        self.server = metrics.Server(self.metrics, '127.0.0.1', 0, LIMITS)
        self.addCleanup(self.server.close)

    def ask(self, path, method='GET'):
        """Status and body of an answer."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(
            'http://127.0.0.1:%d%s' % (self.server.port, path), method=method)
        try:
            with opener.open(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, exc.read().decode()

    def figures(self):
        """Every sample: its name, with its labels, to its value."""
        status, text = self.ask('/metrics')
        self.assertEqual(200, status)
        return {(sample.name.removeprefix(metrics.PREFIX),
                 *sample.labels.values()): sample.value
                for family in parser.text_string_to_metric_families(text)
                for sample in family.samples}

    def test_journal(self):
        """How much is pending, and for how long."""
        self.metrics.journal(3, 17.5)
        figures = self.figures()
        self.assertEqual(3, figures['journal_pending_rows',])
        self.assertEqual(17.5, figures['journal_oldest_pending_seconds',])

    def test_batches_and_syncs(self):
        """Durations by result, changes by loop, and the last success."""
        self.metrics.drained('success', 0.2, 3, 1)
        self.metrics.drained('unavailable', 5.0, 0, 0)
        self.metrics.synced('success', 2.0, 1, 2, drift=4, refused=True)
        figures = self.figures()
        self.assertEqual(1, figures['converge_duration_seconds_count',
                                    'success'])
        self.assertEqual(5, figures['converge_duration_seconds_sum',
                                    'unavailable'])
        self.assertEqual(2, figures['sync_duration_seconds_sum', 'success'])
        self.assertEqual(3, figures['associations_added_total', 'drain'])
        self.assertEqual(2, figures['associations_removed_total', 'sync'])
        self.assertEqual(4, figures['drift_associations',])
        self.assertEqual(1, figures['brake_tripped',])
        self.assertEqual(1234.5, figures['last_success_timestamp_seconds',
                                         'drain'])

    def test_failed_sync_leaves_what_the_last_comparison_found(self):
        """It has compared nothing, and it is no success."""
        self.metrics.synced('success', 1.0, drift=4, refused=True)
        self.metrics.synced('failure', 1.0)
        self.assertEqual(4, self.figures()['drift_associations',])
        self.assertEqual(1, self.figures()['brake_tripped',])

    def test_failure_is_no_success(self):
        """An alert on the last success would else never fire."""
        self.metrics.drained('failure', 0.2, 0, 0)
        self.metrics.synced('failure', 0.2)
        self.assertNotIn('last_success_timestamp_seconds',
                         [name for name, *_ in self.figures()])

    def test_leader(self):
        """Of several agents one shows 1."""
        self.metrics.leading(True)
        self.assertEqual(1, self.figures()['leader',])

    def test_health(self):
        """Every loop has to beat; who does not is named."""
        status, text = self.ask('/healthz')
        self.assertEqual(503, status)
        self.assertIn('drain loop has not begun', text)
        self.metrics.beat('drain')
        self.metrics.beat('sync')
        status, text = self.ask('/healthz')
        self.assertEqual((200, {'status': 'ok', 'reasons': []}),
                         (status, json.loads(text)))
        self.clock += 61
        status, text = self.ask('/healthz')
        self.assertEqual(503, status)
        self.assertEqual(['the drain loop was last heard of 61 seconds ago'],
                         json.loads(text)['reasons'])

    def test_other_paths_and_methods(self):
        """Each gets a clear answer."""
        self.assertEqual(404, self.ask('/')[0])
        self.assertEqual(405, self.ask('/metrics', 'POST')[0])
        self.assertEqual(405, self.ask('/healthz', 'DELETE')[0])

    def test_silent_client_keeps_nobody_waiting(self):
        """Each has a thread of its own."""
        with socket.create_connection(('127.0.0.1', self.server.port)):
            self.assertEqual(200, self.ask('/metrics')[0])

    def test_port_that_is_taken_is_a_clear_error(self):
        """It names the option to change."""
        error = self.assertRaises(
            exceptions.InvalidConfiguration, metrics.Server, self.metrics,
            '127.0.0.1', self.server.port, LIMITS)
        self.assertIn('port %d' % self.server.port, str(error))
        self.assertIn('metrics_port', str(error))
