# SPDX-License-Identifier: Apache-2.0
"""A real nova-scheduler process and its log messages at start."""

import pathlib
import re
import sys

import fixtures as base_fixtures
import testtools

from tests import fixtures
from tests import nova_service
from tests import patience
from tests import processes

PROGRAM = pathlib.Path(sys.prefix, 'bin', 'nova-scheduler')
MORE = """
[DEFAULT]
transport_url = fake:/
use_stderr = true
[database]
connection = %s
[scheduler]
workers = 1
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_aggregate_mirror.scheduler.filters.all_filters
enabled_filters = ComputeFilter,AggregateMembershipFilter
[aggregate_mirror]
%s
"""
PATIENCE = patience.seconds(300)
STARTED = 'Starting scheduler node'
OURS = re.compile(r' nova_aggregate_mirror\S* \[.*?\] ([^\x1b\n]*)')


class TestNovaScheduler(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.path = pathlib.Path(
            self.useFixture(base_fixtures.TempDir()).path, 'nova.conf')

    def start(self, ours):
        """Start it with lines of [aggregate_mirror]; return its log.

        It exits if it refuses to start; if it runs, the test kills it.
        """
        self.path.write_text(self.cloud.nova_conf(
            MORE % (nova_service.CONF.database.connection, ours)))
        scheduler, log = processes.begin(
            self, [sys.executable, PROGRAM, '--config-file', self.path],
            STARTED, PATIENCE)
        if STARTED not in ''.join(log[-1:]):
            self.assertEqual(1, scheduler.wait())
        self.addDetail('nova-scheduler', testtools.content.text_content(
            ''.join(log)))
        return log

    def said(self, log):
        """Return this package's messages, without time and process."""
        return [found[1] for found in map(OURS.search, log) if found]

    def test_request_filters(self):
        """They are installed once, and nova-scheduler runs."""
        log = self.start('request_filters = tenant_isolation,type_affinity')
        self.assertIn(STARTED, log[-1])
        self.assertEqual(
            ['Requests are narrowed to host aggregates by '
             'nova-aggregate-mirror, request filters: tenant_isolation, '
             'type_affinity'], self.said(log))

    def test_unknown_request_filter(self):
        """A single line has the reason; no other error is logged."""
        log = self.start('request_filters = tenants')
        self.assertEqual(
            ['nova-scheduler does not start: [aggregate_mirror] '
             'request_filters: no entry point in '
             'nova_aggregate_mirror.request_filters is named "tenants"'],
            self.said(log))
        self.assertNotIn('Traceback', ''.join(log))
        [_critical] = [line for line in log
                       if ' CRITICAL ' in line or ' ERROR ' in line]
