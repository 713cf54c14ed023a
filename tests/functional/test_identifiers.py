# SPDX-License-Identifier: Apache-2.0
"""Names of servers and server groups in nova's databases."""

import contextlib
import io

from nova import context as nova_context
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror import conf
from nova_aggregate_mirror.console import lookup
from nova_aggregate_mirror import exceptions
from tests import fixtures
from tests import placed


class TestIdentifiers(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.StockNova())
        self.flavor = placed.create_flavor()
        conf.register_opts(fixtures.CONF)
        self.identifiers = lookup.Identifiers(
            fixtures.CONF, program.servers())

    def server(self, name, cell='cell1'):
        return placed.create_server(
            self.cloud.nova, self.flavor, 'h1', cell, name=name)

    def group(self, name):
        group = objects.InstanceGroup(
            nova_context.get_admin_context(), name=name, user_id='user',
            project_id=placed.PROJECT)
        group.create()
        return group.uuid

    def assert_unknown(self, find, name, *texts):
        error = self.assertRaises(exceptions.UnknownName, find, name)
        for text in texts:
            self.assertIn(text, str(error))

    def test_server_in_any_cell(self):
        """A server in ERROR is in cell0."""
        for cell in 'cell0', 'cell1', 'cell2':
            self.assertEqual(self.server('web-' + cell, cell),
                             self.identifiers.server('web-' + cell))

    def test_name_of_no_server_or_several(self):
        """Names are compared exactly; the next step, or UUIDs, are shown."""
        servers = self.server('Web'), self.server('Web', 'cell2')
        self.assert_unknown(
            self.identifiers.server, 'web', 'nova has no server web; see '
            '"openstack server list --all-projects"')
        self.assert_unknown(
            self.identifiers.server, 'Web',
            'nova has 2 servers with the name Web', *servers)

    def test_cell_that_is_down(self):
        """A server with the name may be in it."""
        self.cloud.nova.break_cell('cell2')
        self.assert_unknown(self.identifiers.server, 'web', 'cell cell2 (',
                            'it may have the server')
        uuid = self.server('web')
        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            self.assertEqual(uuid, self.identifiers.server('web'))
        self.assertIn('cell cell2 (', stderr.getvalue())

    def test_hints(self):
        """Servers and the server group have names, other values have not."""
        self.assertEqual(
            {'different_host': [self.server('a'), uuids.b],
             'group': [self.group('spread')], 'query': ['spread']},
            self.identifiers.hints([
                ('different_host', 'a'), ('group', 'spread'),
                ('query', 'spread'), ('different_host', uuids.b)]))
        self.assert_unknown(
            self.identifiers.hints, [('group', 'none')],
            'nova has no server group none; see "openstack server group list')

    def test_identifier_that_cannot_be_looked_up(self):
        """It is used, and a line tells why; a name is an error."""
        self.cloud.placement.refuse()
        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            self.assertEqual(placed.PROJECT,
                             self.identifiers.project(placed.PROJECT))
        self.assertIn('%s is taken as the ID of a project: keystone '
                      % placed.PROJECT, stderr.getvalue())
        self.assert_unknown(self.identifiers.project, 'demo',
                            'looking up project demo', '; give the ID instead')
