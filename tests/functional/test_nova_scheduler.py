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
STARTED = 'Starting scheduler node'
OURS = re.compile(r' nova_aggregate_mirror\S* \[.*?\] ([^\x1b\n]*)')


class TestNovaScheduler(testtools.TestCase):

    def start(self, cloud, ours):
        """Start it with lines of [aggregate_mirror]; return its log.

        It exits if it refuses to start; if it runs, the test kills it.
        """
        path = pathlib.Path(
            self.useFixture(base_fixtures.TempDir()).path, 'nova.conf')
        path.write_text(cloud.nova_conf(
            MORE % (nova_service.CONF.database.connection, ours)))
        scheduler, log = processes.begin(
            self, [sys.executable, PROGRAM, '--config-file', path],
            STARTED, patience.seconds(300))
        if STARTED not in ''.join(log[-1:]):
            self.assertEqual(1, scheduler.wait())
        self.addDetail('nova-scheduler', testtools.content.text_content(
            ''.join(log)))
        return log

    def test_request_filters(self):
        """They are installed once, and nova-scheduler runs.

        With an unknown one a single line has the reason, and no other error
        is logged.
        """
        cloud = self.useFixture(fixtures.NovaAndPlacement())
        for names, running, text in (
                ('tenant_isolation,type_affinity', True,
                 'Requests are narrowed to host aggregates by nova-aggregate-'
                 'mirror, request filters: tenant_isolation, type_affinity'),
                ('tenants', False, 'nova-scheduler does not start: '
                 '[aggregate_mirror] request_filters: no entry point in '
                 'nova_aggregate_mirror.request_filters is named "tenants"')):
            log = self.start(cloud, 'request_filters = ' + names)
            self.assertIs(running, STARTED in log[-1])
            # Without time and process.
            self.assertEqual([text], [
                found[1] for found in map(OURS.search, log) if found])
            self.assertNotIn('Traceback', ''.join(log))
            errors = [line for line in log
                      if ' CRITICAL ' in line or ' ERROR ' in line]
            self.assertEqual(int(not running), len(errors))
