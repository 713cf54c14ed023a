# SPDX-License-Identifier: Apache-2.0
"""Verdicts on servers, also as text and as JSON."""

import dataclasses

import testtools

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror import printable
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

    def aggregates(self, zone='az-1', **members):
        return keyed_aggregates.Aggregates(
            {'a': 'east'}, {'a': {'availability_zone': zone}}, members)

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

    def test_members_and_metadata_are_read_again(self):
        """Other hosts are kept; the rules are made again for new metadata."""
        self.assertEqual(['h2'], self.suspects())
        for read, zone, members, suspects, checked in (
                ('h2', 'az-1', {'h2': {'a': None}}, [], 1),
                ('h1', 'az-1', {}, ['h1'], 1),
                ('h2', 'az-2', {'h2': {'a': None}}, ['h1', 'h2'], 2)):
            self.auditor.refresh(self.aggregates(zone, **members), [read])
            self.assertEqual(suspects, self.suspects())
            self.assertEqual(checked, self.checked)


class TestPlaced(testtools.TestCase):

    def test_migration_that_brought_a_server(self):
        """Nova saves that of a resize before the time of the launch.

        A server that was unshelved later was not moved to its host.
        """
        server = audit.PlacedServer('u', 'n', 'h1', 'p', 'resized', 1000.0)
        for at, moved in (999.0, 'resize'), (900.0, ''):
            self.assertEqual(
                dataclasses.replace(server, moved=moved),
                audit.with_move(server, 'resize', at))


def found(state='active', since=100.0, rule='zone', **pinning):
    return audit.Misplacement(
        audit.PlacedServer(
            'the-uuid', 'web-1', 'cmp-3', 'p1', state, 50.0),
        rule, 'zone az-1', 'zone az-2',
        audit.Event(audit.FORCED, 'forced to the host when created', since),
        **pinning)


class TestRender(testtools.TestCase):

    def test_document(self):
        """Its misplacements have times that programs can read."""
        answer = auditor.document(
            [found()], auditor.Totals(3, 2, 1, {'zone': 2}), {})
        [misplacement] = answer.pop('misplacements')
        self.assertEqual(
            {'servers': 3, 'misplaced': 2, 'without_request': 1,
             'rules': {'zone': 2}, 'cells_down': []}, answer)
        self.assertEqual(
            ('1970-01-01T00:01:40Z', 'forced', 'the-uuid', 'cmp-3'),
            tuple(misplacement[name] for name in (
                'since', 'cause', 'server', 'host')))

    def test_command_by_state(self):
        """Nova moves a server in some states only."""
        for state, expected in (
                ('active', 'openstack server migrate --live-migration '
                 'the-uuid'),
                ('stopped', 'openstack server migrate --wait the-uuid && '
                 'openstack server migration confirm the-uuid'),
                ('shelved', 'run "openstack server unshelve --wait '
                 'the-uuid", then audit again'),
                ('error', 'no command moves a server in state error')):
            self.assertEqual(expected, found(state).step)

    def test_command_that_pins_the_server_to_its_host(self):
        """If the compute API has it, and only for a zone."""
        unset = ('openstack --os-compute-api-version 2.104 server unset '
                 '--pinned-availability-zone the-uuid')
        for misplacement, expected in (
                (found(), ''), (found(can_unpin=True), unset),
                (found(rule='tenant_isolation', can_unpin=True), ''),
                (found(can_unpin=True, zone='my az'), unset + ' && ' + (
                    unset.replace('unset', 'set').replace(
                        'the-uuid', "'my az' the-uuid")))):
            self.assertEqual(expected, misplacement.keep_step)
        self.assertIn('\nTo keep web-1 there:\n  openstack', auditor.table(
            [found(can_unpin=True)]))

    def test_command_that_unpins_a_server(self):
        """Before nova 34 only by way of a server without a host."""
        offload = ('openstack server shelve --offload --wait the-uuid && '
                   'openstack --os-compute-api-version 2.91 server unshelve '
                   '--no-availability-zone --wait the-uuid')
        for state, unpins, expected in (
                ('active', False, offload), ('suspended', False, offload),
                ('error', False, 'no command unpins a server in state error'),
                ('error', True, found(can_unpin=True).keep_step)):
            self.assertEqual(expected, found(
                state, rule='default_zone', can_unpin=unpins).step)
        self.assertIn('\nTo unpin web-1:\n  openstack', auditor.table(
            [found(rule='default_zone')]))

    def test_table(self):
        """A time that is not known is left out.

        A tenant chooses the name of a server and the image's properties: they
        do not control the terminal.
        """
        self.assertIn('Since: 1970-01-01T00:01:40Z', auditor.table([found()]))
        self.assertNotIn('Since', auditor.table([found(since=None)]))
        evil = 'a\x1b[2J\nb\u202e'
        text = auditor.table([audit.Misplacement(
            audit.PlacedServer(
                'the-uuid', evil, evil, evil, 'active', 50.0),
            'zone', evil, evil, audit.Event(audit.FORCED, evil, 1.0))])
        self.assertEqual(printable.lines(text), text)
        self.assertEqual(7, text.count('a\\x1b[2J\\nb\\u202e'))

    def test_summary(self):
        subject = 'on a host that contradicts the request'
        for totals, text in (
                ((1, 1, 0, {'zone': 1, 'segment': 0}),
                 '1 of 1 server is %s: 1 zone'),
                ((2,), '0 of 2 servers are %s'),
                ((2, 1, 0, {'default_zone': 1}), '1 of 2 servers are %s, or '
                 'pinned to the default zone: 1 default_zone')):
            self.assertEqual(text % subject, auditor.summary(
                auditor.Totals(*totals)))
