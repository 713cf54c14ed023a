# SPDX-License-Identifier: Apache-2.0
"""The periodic audit: when it runs, what it logs and records."""

import logging
import types

import fixtures
import testtools

from nova_aggregate_mirror.agent import periodic_audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.reconcile import problems
from tests.unit.agent import case
from tests.unit import doubles


class TestPeriodicAudit(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.clock, self.stopping = 0.0, False
        self.figures = case.Recorder()
        self.pages, self.broken, self.unbuilt = [], None, None
        self.audit = periodic_audit.PeriodicAudit(
            self.build, 60.0, self.figures, lambda: self.clock)
        self.log = self.useFixture(fixtures.FakeLogger(
            'nova_aggregate_mirror', level=logging.INFO))

    def build(self):
        """Return an audit whose pages have these totals and troubles."""
        if self.unbuilt:
            raise self.unbuilt
        totals, troubles = auditor.Totals(), []

        def run():
            for page, found in self.pages:
                vars(totals).update(vars(page))
                troubles[:] = found
                yield []
            if self.broken:
                raise self.broken

        return types.SimpleNamespace(
            totals=totals, run=run,
            source=types.SimpleNamespace(problems=lambda: troubles))

    def page(self, servers, misplaced, *problems):
        return auditor.Totals(
            servers, misplaced, by_rule={'zone': misplaced}), problems

    def again(self, *pages):
        self.pages, self.clock = pages, self.clock + 60
        self.audit.step(lambda: self.stopping)

    def audited(self):
        return [call[1:] for call in self.figures.calls
                if call[0] == 'observe_audit']

    def test_it_runs_when_it_is_due(self):
        """Immediately, and then at every interval; each page is a beat."""
        self.pages = [self.page(500, 0), self.page(700, 0)]
        for at in (0.0, 59.9, 60.0):
            self.clock = at
            self.audit.step(lambda: self.stopping)
        self.assertEqual([('success', 0.0, 700, {'zone': 0})] * 2,
                         self.audited())
        self.assertEqual(4, self.figures.calls.count(('beat', 'audit')))
        self.assertEqual('', self.log.output)

    def test_more_servers_are_misplaced(self):
        """A warning at each increase, with the command for the list."""
        for misplaced in (1, 1, 2, 0):
            self.again(self.page(9, misplaced))
        self.assertEqual(
            ['Audit: 1 server is on a host that contradicts the request',
             'Audit: 2 servers are on a host that contradicts the request'],
            [line.rpartition(':')[0] for line in self.log.output.splitlines()])

    def test_incomplete_audit(self):
        """It records no figures, and is logged once.

        An audit that compares nothing finds nothing, but is no success.
        """
        silent, = problems.of_cells({'cell9': doubles.SILENT}, 'it waits')
        self.again(self.page(9, 1, silent))
        self.again(self.page(9, 1, silent))
        self.broken = exceptions.NovaUnavailable('refused')
        self.again()
        self.broken, self.unbuilt = None, self.broken
        self.again()
        self.unbuilt = None
        self.again(self.page(9, 0))
        self.again((auditor.Totals(
            unknown=3, error='IncompatibleObjectVersion: 1.99'), ()))
        *lines, unread = self.log.output.splitlines()
        self.assertEqual([
            'The audit of the servers is incomplete: %s' % silent,
            'The audit of the servers is incomplete: refused',
            'The audit of the servers is complete again',
        ], lines)
        self.assertIn('1.99', unread)
        self.assertEqual([('failure', 0.0)] * 4 + [
            ('success', 0.0, 9, {'zone': 0}), ('failure', 0.0)],
            self.audited())

    def test_agent_that_stops(self):
        """It ends the audit after a page, and begins again if it leads."""
        self.stopping = True
        self.again(self.page(9, 1), self.page(9, 1))
        self.assertEqual([('beat', 'audit')], self.figures.calls)
        self.stopping = False
        self.audit.step(lambda: self.stopping)
        self.assertEqual(1, len(self.audited()))
