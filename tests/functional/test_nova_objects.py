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
OPTION = '[api_database] or [database] connection'


class TestConnections(testtools.TestCase):
    """Printed is one line, and no traceback."""

    def test_refusals(self) -> None:
        """Each has the step of its cause, for the options of both."""
        url = sa.engine.make_url(databases.create(self, 'mysql'))
        wrong = url.set(username='nobody', password=PASSWORD)
        for address, text in (
                (wrong, 'refused the user or the password: correct user and '
                 'password in %s; if they are right, let that user connect '
                 'from this host' % OPTION),
                (url, 'lacks the table %s.cell_mappings: correct the name of '
                 'the database in %s; if it is right, run "nova-manage '
                 'api_db sync" and "nova-manage db sync"' % (
                     url.database, OPTION))):
            process = subprocess.run(
                [sys.executable, '-c', SCRIPT,
                 address.render_as_string(hide_password=False)],
                capture_output=True, text=True, check=False)
            self.assertEqual(
                (255, 'explain: a database of nova %s\n' % text),
                (process.returncode, process.stderr))
