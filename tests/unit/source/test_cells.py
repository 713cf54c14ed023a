# SPDX-License-Identifier: Apache-2.0
"""Templates of database URLs, beside nova's own function."""

import itertools
import types

import fixtures
from nova.conf import CONF
from nova.objects import cell_mapping
from oslo_config import fixture as config_fixture
import testtools

from nova_aggregate_mirror.source import cells

TEMPLATES = (
    'mysql+pymysql://nova:secret@db/nova_cell1?charset=utf8',
    '{scheme}://{username}:{password}@{hostname}:{port}/{path}?{query}',
    '{scheme}://{username}:{password}@{hostname}:{port}/nova_cell2?{query}'
    '#{fragment}',
    '{scheme}://{username}:{password}@cell2-db/{path}',
    '{scheme}://{username1}:{password1}@{hostname1},{hostname2}/{path}',
    # What format() does beyond names.
    '{scheme!r}', '{hostname:>40}', '{port:d}', '{port:05}', '{query[0]}',
    'mysql://u:{{p}}@h/d', 'mysql://u:p}}@h/d',
    # What it refuses.
    'mysql://u:p{w@h/d', 'mysql://u:p}w@h/d', '{unknown}', '{hostname3}', '{}',
    '{0}', '{scheme', '{scheme.nothing}', '{scheme!x}', '{scheme:d}',
    '{a:{b:{c}}}', '{fragment[0]}', '{port[0]}', '')
CONNECTIONS = (
    None, '', 'nonsense', 'sqlite:////var/lib/nova/nova.sqlite', 'sqlite://',
    'mysql+pymysql://nova:secret@db:3306/nova?charset=utf8&ssl_ca=/ca#top',
    'mysql+pymysql://nova@db/nova', 'mysql+pymysql://:@db:/nova',
    'mysql+pymysql://nova:p%40ss%7Bw@DB.example.org/nova_cell0',
    'mysql+pymysql://nova:p@ss:w@db/nova', 'mysql://u:p{w}@h/d',
    'postgresql://nova:secret@[2001:db8::1]:5432/nova', 'mysql://[::1]/d',
    'mysql://h//deep//path/;p=1?a=b?c', 'mysql:///d?host=a,b',
    # Neither port nor host is valid.
    'mysql://u:p@h:port/d', 'mysql://u:p@h:65536/d', 'mysql://u:p@[::1/d',
    'mysql://u:p@\u2100/d',
    # Several servers.
    'mysql://u:p@a:1,v:q@b:2/d?x', 'mysql://u@a:1,b:2/d', 'mysql://a,b/d',
    'mysql://u:p:q@a:1,b@c:2/d', 'mysql://u:p@[::1]:1,v:q@b:2/d',
    'mysql://u:p@a:1,b/d', 'mysql://u:p@a:port,b:2/d')
# Nova 29 reads the port of an IPv6 address in a list with its colon.
PORTS = '{port1}:{port2}:{hostname2}:{username2}:{password2}'


def fill_in(template):
    return cells.cell_of(types.SimpleNamespace(
        id=1, uuid='u', name='c', database_connection=template)).connection


class TestTemplates(testtools.TestCase):

    def setUp(self):
        super().setUp()
        # Nova logs each one that it cannot fill in.
        self.useFixture(fixtures.FakeLogger())
        self.config = self.useFixture(config_fixture.Config(CONF))

    def test_each_is_filled_in_as_by_nova(self):
        """A template, or a connection, that is malformed changes nothing."""
        pairs = list(itertools.product(TEMPLATES, CONNECTIONS))
        pairs += [(PORTS, connection) for connection in CONNECTIONS
                  if '[' not in str(connection)]
        for template, connection in pairs:
            self.config.config(group='database', connection=connection)
            self.assertEqual(
                cell_mapping.CellMapping.format_db_url(template),
                fill_in(template), (template, connection))
