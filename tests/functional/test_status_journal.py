# SPDX-License-Identifier: Apache-2.0
"""The status command's checks of the journal."""

import os
import pathlib
import time
import types

from nova import context as nova_context
from nova import objects
from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror import checks
import nova_aggregate_mirror.checks.journal
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal.db import migration
from nova_aggregate_mirror.journal import lease
from nova_aggregate_mirror.source import database
from tests import commands
from tests import databases
from tests import fixtures
from tests.functional import status_command
from tests.functional.status_command import FAILURE
from tests.functional.status_command import SUCCESS
from tests.functional.status_command import WARNING

HOST = journal.Dirty(host='h1', request_id='req-1')
JOURNAL = ('Journal', 'Journal users', 'Journal of this nova', 'Backlog',
           'Drift')
CONNECTION = '[aggregate_mirror_database]\nconnection = %s\n'


class JournalTest(status_command.StatusTest):

    @property
    def file(self) -> pathlib.Path:
        return pathlib.Path(fixtures.CONF.state_path, 'aggregate_mirror',
                            'journal.sqlite')

    def operation(self, age: float = 0.0) -> journal.Row:
        """Record an operation that began this many seconds ago."""
        kept = self.journal(now=lambda: time.time() - age).rows
        row = kept.make(HOST)
        kept.record(row)
        return row

    def left_over(self, age: float = 0.0) -> None:
        """Record an operation that did not reach placement."""
        self.journal().rows.hand_over(
            self.operation(age), 'placement refused')

    def lead(self) -> None:
        """Take the lease, as a leading agent does."""
        self.assertTrue(lease.Lease(self.journal().database, 10).step())


class TestTables(JournalTest):

    def test_journal_that_is_up_to_date(self):
        """The version of its tables is printed."""
        self.journal().rows.all()
        rows = self.rows(SUCCESS)
        self.assert_others_good(rows)
        self.assertIn(migration.HEAD, rows['Journal'].details)
        self.assertIn('No operation is pending', rows['Backlog'].details)

    def test_journal_that_is_no_database(self):
        """It prints how to replace it, and skips the checks that need it."""
        self.file.parent.mkdir()
        self.file.write_bytes(b'no database any more' * 999)
        rows = self.rows(FAILURE)
        self.assert_row(
            FAILURE, rows['Journal'],
            '  mkdir %s/broken\n  mv %s* %s/broken\n'
            % (self.file.parent, self.file, self.file.parent))
        for name in JOURNAL[1:]:
            self.assert_row(WARNING, rows[name], 'resolve "Journal" first')
        self.assert_others_good(rows, *JOURNAL)

    def test_journal_that_cannot_be_created(self):
        """It prints how to create the missing directory."""
        self.write_conf(more=CONNECTION % (
            'sqlite:////proc/sys/kernel/mirror/journal.sqlite'))
        rows = self.rows(FAILURE)
        self.assert_row(FAILURE, rows['Journal'], '  install -d -m 700 -o ')
        self.assert_others_good(rows, *JOURNAL)

    def check_server(self, kind: str) -> None:
        self.write_conf(more=CONNECTION % databases.create(self, kind))
        rows = self.rows(FAILURE)
        self.assert_row(FAILURE, rows['Journal'],
                        '  nova-aggregate-mirror-manage db sync')
        self.assert_others_good(rows, *JOURNAL)
        commands.run(commands.MANAGE, [
            '--config-file', str(self.conf), 'db', 'sync']).check_returncode()
        self.assert_others_good(self.rows(SUCCESS))

    def test_mysql(self):
        """Without tables it prints the command that creates them."""
        self.check_server('mysql')

    def test_postgresql(self):
        """Without tables it prints the command that creates them."""
        self.check_server('postgresql')

    def test_server_that_is_unavailable(self):
        """The option to correct is printed, without the password."""
        self.write_conf(more=CONNECTION % (
            'mysql+pymysql://mirror:%s@127.0.0.1:1/mirror'
            % status_command.PASSWORD))
        rows = self.rows(FAILURE)
        self.assert_row(FAILURE, rows['Journal'], 'refused',
                        '  [aggregate_mirror_database]\n')
        self.assert_others_good(rows, *JOURNAL)


class TestUsers(JournalTest):

    @testtools.skipIf(os.geteuid(), 'only root can give files away')
    def test_agent_of_another_user(self):
        """Both must run as the owner of the directory."""
        kept = self.journal()
        # Its write-ahead log exists while it is open.
        self.addCleanup(kept.rows.all)
        kept.rows.all()
        os.chown(self.file, 4711, -1)
        os.chown(self.file.parent, 4711, -1)
        # When root opens the journal, SQLite changes the log's owner.
        found, = nova_aggregate_mirror.checks.journal.users(
            types.SimpleNamespace(conf=fixtures.CONF))
        self.assertEqual(checks.Code.FAILURE, found.code)
        self.assertIn('users 4711 and root', found.text)
        self.assertEqual('chown -R 4711: %s' % self.file.parent,
                         found.cure[0])


class TestBinding(JournalTest):

    def setUp(self):
        super().setUp()
        binding.Binding(self.journal().database,
                        database.DatabaseSource()).bind()

    def replace_cell(self, name: str) -> None:
        """Recreate a cell with a new UUID in its mapping."""
        mapping = self.cloud.nova.cell(name)
        connection = mapping.database_connection
        mapping.destroy()
        objects.CellMapping(
            nova_context.get_admin_context(), name=name,
            uuid=uuidutils.generate_uuid(), transport_url='fake:/',
            database_connection=connection).create()

    def test_cell_that_is_recreated(self):
        """The journal still belongs to a nova with one of its other cells."""
        self.replace_cell('cell1')
        self.assert_others_good(self.rows(SUCCESS))

    def test_journal_of_another_nova(self):
        """Both lists of cells and the option to change are printed."""
        ours = [self.cloud.nova.cell(name).uuid for name in ('cell1', 'cell2')]
        for name in ('cell1', 'cell2'):
            self.replace_cell(name)
        theirs = [self.cloud.nova.cell(name).uuid
                  for name in ('cell1', 'cell2')]
        rows = self.rows(FAILURE)
        self.assert_row(
            FAILURE, rows['Journal of this nova'],
            'the journal belongs to another nova', *ours, *theirs,
            '  [aggregate_mirror_database]\n  connection = ',
            '  nova-aggregate-mirror-manage db sync')
        self.assert_others_good(rows, 'Journal of this nova', 'Drift')


class TestBacklog(JournalTest):

    def test_young_operations(self):
        """Recent operations that await the agent are no fault."""
        self.left_over(age=5)
        rows = self.rows(SUCCESS)
        self.assertIn('1 operation is pending', rows['Backlog'].details)

    def test_old_operations_without_an_agent(self):
        """The command that starts the agent is printed."""
        self.left_over(age=600)
        rows = self.rows(WARNING)
        self.assert_row(
            WARNING, rows['Backlog'], 'no agent runs', 'the oldest for 6',
            '  systemctl enable --now nova-aggregate-mirror-agent')
        self.assert_others_good(rows, 'Backlog')

    def test_old_operations_that_an_agent_cannot_mirror(self):
        """The reason and the command that lists them are printed."""
        self.left_over(age=600)
        self.lead()
        rows = self.rows(WARNING)
        self.assert_row(WARNING, rows['Backlog'], 'placement refused',
                        '  nova-aggregate-mirror-manage journal list')
        self.assert_others_good(rows, 'Backlog')
