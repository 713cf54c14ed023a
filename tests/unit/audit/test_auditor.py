# SPDX-License-Identifier: Apache-2.0
"""Verdicts on servers while the aggregates change."""

import testtools

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.source import keyed_aggregates


class TestAuditor(testtools.TestCase):
    """Hosts h1 and h2; servers must be on a host of aggregate ``a``."""

    def setUp(self):
        super().setUp()
        self.checked = 0
        self.auditor = auditor.Auditor(
            [rules.AuditRule('zone', '', bool, self.conditions)],
            self.aggregates(h1={'a': None}))

    def aggregates(self, **members):
        return keyed_aggregates.Aggregates(
            {'a': 'east'}, {'a': {'availability_zone': 'az-1'}}, members)

    def conditions(self, facts):
        self.checked += 1
        matching = frozenset(
            uuid for uuid, values in facts.metadata.items()
            if values['availability_zone'] == facts.request.zone)
        return [constraints.Rule(facts.request.zone, matching, required=True)]

    def suspects(self):
        """Return the hosts that appear to have a misplaced server."""
        return sorted(self.auditor.suspects([
            auditor.AuditedServer(
                audit.PlacedServer('u', 'n', host, 'p', 'active'),
                constraints.ServerRequest('p', 'f', {}, {}, 'az-1'))
            for host in ('h1', 'h2')]))

    def test_members_are_read_again(self):
        """Those of other hosts are kept, and so are the rules."""
        self.assertEqual(['h2'], self.suspects())
        self.auditor.refresh(self.aggregates(h2={'a': None}), ['h2'])
        self.assertEqual([], self.suspects())
        self.auditor.refresh(self.aggregates(), ['h1'])
        self.assertEqual(['h1'], self.suspects())
        self.assertEqual(1, self.checked)

    def test_metadata_has_changed(self):
        """The rules are made again."""
        self.auditor.refresh(keyed_aggregates.Aggregates(
            {'a': 'east'}, {'a': {'availability_zone': 'az-2'}},
            {'h2': {'a': None}}), ['h2'])
        self.assertEqual(['h1', 'h2'], self.suspects())
