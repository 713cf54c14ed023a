# SPDX-License-Identifier: Apache-2.0
"""The status command on the journal: its tables, its users, its backlog."""

import os
import pathlib
import subprocess
import sys
import time

import testtools

from nova_aggregate_mirror import agent
from nova_aggregate_mirror.db import migration
from nova_aggregate_mirror import journal
from nova_aggregate_mirror import owner
from tests import databases
from tests import fixtures
from tests.functional import status_command
from tests.functional.status_command import FAILURE
from tests.functional.status_command import SUCCESS
from tests.functional.status_command import WARNING

MANAGE = str(pathlib.Path(sys.executable).with_name(
    'nova-aggregate-mirror-manage'))
HOST = journal.Dirty(host='h1', request_id='req-1')
JOURNAL = ('Journal', 'Journal sharing', 'Backlog', 'Drift')
CONNECTION = '[aggregate_mirror_database]\nconnection = %s\n'


class JournalTest(status_command.StatusTest):

    @property
    def file(self) -> pathlib.Path:
        return pathlib.Path(fixtures.CONF.state_path, 'aggregate_mirror',
                            'journal.sqlite')

    def left_over(self, age: float = 0.0, **kwargs) -> None:
        """An operation that ended so many seconds ago and is not mirrored."""
        kept = self.journal(now=lambda: time.time() - age, **kwargs)
        row = kept.record(HOST)
        kept.hand_over(row.id, 'placement refused')


class TestTables(JournalTest):

    def test_journal_that_is_up_to_date(self):
        """The version is told."""
        self.journal().rows()
        rows = self.rows(SUCCESS)
        self.assert_others_good(rows)
        self.assertIn(migration.HEAD, rows['Journal'].details)
        self.assertIn('Nothing is left', rows['Backlog'].details)

    def test_journal_that_is_no_database(self):
        """How to put it aside; nothing that needs it is tried."""
        self.file.parent.mkdir()
        self.file.write_bytes(b'no database any more' * 999)
        rows = self.rows(FAILURE)
        self.assert_row(
            FAILURE, rows['Journal'],
            '  mkdir %s/broken\n  mv %s* %s/broken\n'
            % (self.file.parent, self.file, self.file.parent))
        for name in JOURNAL[1:]:
            self.assert_row(WARNING, rows[name], 'see to "Journal" first')
        self.assert_others_good(rows, *JOURNAL)

    def test_journal_that_cannot_be_made(self):
        """Nor can anything else where it is to be."""
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
        subprocess.run([MANAGE, '--config-file', str(self.conf), 'db', 'sync'],
                       check=True, capture_output=True, timeout=120)
        self.assert_others_good(self.rows(SUCCESS))

    def test_mysql(self):
        """Without tables it says what makes them, and then is content."""
        self.check_server('mysql')

    def test_postgresql(self):
        """Without tables it says what makes them, and then is content."""
        self.check_server('postgresql')

    def test_server_that_is_away(self):
        """The line to correct, without the password."""
        self.write_conf(more=CONNECTION % (
            'mysql+pymysql://mirror:%s@127.0.0.1:1/mirror'
            % status_command.PASSWORD))
        rows = self.rows(FAILURE)
        self.assert_row(FAILURE, rows['Journal'], 'refused',
                        '  [aggregate_mirror_database]\n')
        self.assert_others_good(rows, *JOURNAL)


class TestSharing(JournalTest):

    def test_agent_of_the_same_host(self):
        """One host name and one state_path: both can tell of each other."""
        self.left_over()
        self.assertTrue(self.journal().take_lease(agent.LEASE, None, 15.0))
        self.assert_others_good(self.rows(SUCCESS))

    def test_agent_in_another_container(self):
        """It has the file, and a directory for locks that is its own."""
        self.left_over()
        other = owner.Owner(self.conf.parent / 'owners')
        self.journal(owner=other).take_lease(agent.LEASE, None, 15.0)
        rows = self.rows(FAILURE)
        self.assert_row(FAILURE, rows['Journal sharing'],
                        'the same host name and state_path',
                        '  [aggregate_mirror_database]\n',
                        '  nova-aggregate-mirror-manage db sync')
        self.assert_others_good(rows, 'Journal sharing')

    @testtools.skipIf(os.geteuid(), 'only root can give files away')
    def test_agent_of_another_user(self):
        """Whoever made the journal is to run both."""
        self.left_over()
        os.chown(self.file, 4711, -1)
        os.chown(self.file.parent, 4711, -1)
        rows = self.rows(FAILURE)
        self.assert_row(FAILURE, rows['Journal sharing'],
                        'users 4711 and root',
                        '  chown -R 4711: %s' % self.file.parent)
        self.assert_others_good(rows, 'Journal sharing')


class TestBacklog(JournalTest):

    def test_young_operations(self):
        """What an agent is about to mirror is no fault."""
        self.left_over(age=5)
        rows = self.rows(SUCCESS)
        self.assertIn('1 operations are left', rows['Backlog'].details)

    def test_old_operations_without_an_agent(self):
        """Nobody works on them: start somebody."""
        self.left_over(age=600)
        rows = self.rows(WARNING)
        self.assert_row(
            WARNING, rows['Backlog'], 'no agent runs', 'the oldest for 6',
            '  systemctl enable --now nova-aggregate-mirror-agent')
        self.assert_others_good(rows, 'Backlog')

    def test_old_operations_that_an_agent_cannot_mirror(self):
        """Why not, and how to see all of them."""
        self.left_over(age=600)
        kept = self.journal()
        self.assertTrue(kept.take_lease(agent.LEASE, None, 15.0))
        rows = self.rows(WARNING)
        self.assert_row(WARNING, rows['Backlog'], 'placement refused',
                        '  nova-aggregate-mirror-manage journal list')
        self.assert_others_good(rows, 'Backlog')
