# SPDX-License-Identifier: Apache-2.0
"""A server that refuses the connections of nova's own objects."""

import subprocess
import sys

import sqlalchemy as sa
import testtools

from tests import databases

PASSWORD = 'hunter2'
SCRIPT = """
import sys
from nova.conf import CONF
from nova_aggregate_mirror import conf
from nova_aggregate_mirror.cmd import nova_objects
from nova_aggregate_mirror.cmd import program
conf.register_opts(CONF)
CONF([], default_config_files=[], project='nova')
CONF.set_override('connection', sys.argv[1], 'api_database')
context = nova_objects.prepare(CONF)
nova_objects.bound(CONF)
def command():
    from nova_aggregate_mirror.explain import host_states
    with nova_objects.translated():
        host_states.HostManager()
sys.exit(program.run('explain', command))
"""


class TestConnections(testtools.TestCase):

    def setUp(self) -> None:
        super().setUp()
        url = databases.create(self, 'mysql')
        self.url = sa.engine.make_url(url).set(
            username='nova', password=PASSWORD)
        self.user = "'nova_%s'@'127.0.0.1'" % self.url.database[-8:]
        self.admin = databases.find('mysql')
        self.url = self.url.set(username='nova_' + self.url.database[-8:])
        self.execute(
            "CREATE USER %s IDENTIFIED BY '%s'" % (self.user, PASSWORD),
            'GRANT ALL ON %s.* TO %s' % (self.url.database, self.user))
        self.addCleanup(self.execute, 'DROP USER ' + self.user)

    def execute(self, *statements: str) -> None:
        databases.execute(self.admin, *statements)

    def assert_printed(self, text: str, url: sa.engine.URL) -> None:
        """Assert what a command prints: one line, and no traceback."""
        process = subprocess.run(
            [sys.executable, '-c', SCRIPT,
             url.render_as_string(hide_password=False)],
            capture_output=True, text=True, check=False)
        self.assertEqual(
            (255, 'explain: a database of nova %s\n' % text),
            (process.returncode, process.stderr))

    def test_refusals(self) -> None:
        """Each has its step, which is followed, and then the next one."""
        option = '[api_database] or [database] connection'
        self.assert_printed('refused the user or the password: correct user '
                            'and password in %s; if they are right, let '
                            'that user connect from this host' % option,
                            self.url.set(password='x' + PASSWORD))
        limit = 'ALTER USER %s WITH MAX_USER_CONNECTIONS %d'
        self.execute(limit % (self.user, 1))
        self.addCleanup(sa.create_engine(self.url).connect().close)
        self.assert_printed('refused the user, whose max_user_connections is '
                            'used up: on the database server, raise that '
                            'limit of the user in ' + option, self.url)
        self.execute(limit % (self.user, 2))
        self.assert_printed(
            'lacks the table %s.cell_mappings: correct the name of the '
            'database in %s; if it is right, run "nova-manage api_db sync" '
            'and "nova-manage db sync"' % (self.url.database, option),
            self.url)
