# SPDX-License-Identifier: Apache-2.0
"""What ``openstack aggregate mirror servers`` prints."""

import io
import types
from unittest import mock

import fixtures
import testtools

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.osc import servers
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.source import api


class TestTable(testtools.TestCase):

    def test_sorted_by_host(self):
        """Each server's lines follow the order of the rows."""
        clients = mock.Mock(spec=['nova', 'servers', 'project'])
        clients.nova.all_aggregates.return_value = [
            api.ListedAggregate(
                zone, number, 'aggregate %d' % number, frozenset(hosts), zone)
            for number, zone, hosts in (
                (1, 'az1', ['h3']), (2, 'az2', ['h1', 'h2']))]
        clients.nova.services.return_value = []
        clients.servers.zones.return_value = {'nova'}
        clients.servers.with_move.side_effect = lambda server: server
        clients.servers.read.return_value = [auditor.AuditedServer(
            audit.PlacedServer(
                uuid, uuid, host, 'p1', 'active', 50.0),
            constraints.ServerRequest('p1', '', {}, {}, 'az1'))
            for uuid, host in (('first', 'h2'), ('second', 'h1'))]
        errors = io.StringIO()
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', errors))
        out = io.StringIO()
        lister = servers.ListServers(types.SimpleNamespace(
            stdout=out, client_manager=types.SimpleNamespace(
                aggregate_mirror=clients)), None)
        lister.run(lister.get_parser('').parse_args(['--sort-column', 'host']))
        table = out.getvalue()
        self.assertIn('first', table)
        self.assertLess(table.index('second'), table.index('first'))
        self.assertIn('To move first:\n  openstack server migrate '
                      '--live-migration first\n', table)
        self.assertIn('Only availability zones were checked. Not checked: '
                      'default_zone, tenant_isolation, ', errors.getvalue())
