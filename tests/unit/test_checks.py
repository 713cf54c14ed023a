# SPDX-License-Identifier: Apache-2.0
"""Findings about nova, about the journal and its users, and about drift."""

import os
import pathlib
import stat

import fixtures
import testtools

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import drift
from nova_aggregate_mirror.checks import journal
from nova_aggregate_mirror.checks import nova
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal.db import engine
from tests import processes
from tests.unit import ends

USER = 4711


class TestHook(testtools.TestCase):

    def find(self) -> checks.Findings:
        return nova.hook(ends.make_conf(self))

    def test_package_that_is_not_installed(self):
        """Files without their entry points are no installation."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.checks.nova.metadata.entry_points',
            lambda group: []))
        one, = self.find()
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertIn('pip install', one.cure[0])

    def test_unknown_nova(self):
        """What differs, and that nova goes on by itself."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova.compute.api.AggregateAPI.placement_client', None))
        one, = self.find()
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertIn('placement_client is no property', one.text)
        self.assertEqual(
            ('pip install --upgrade nova-aggregate-mirror',), one.cure)

    def test_hook_that_refuses_to_start(self):
        """Missing credentials are said by a check of their own."""
        def load(conf):
            raise exceptions.MissingCredentials('no auth_type')
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.hooks.load', load))
        one, = self.find()
        self.assertEqual(checks.Code.SUCCESS, one.code)


class UserTest(testtools.TestCase):
    """A state_path that belongs to one user, and a command of another."""

    def setUp(self) -> None:
        super().setUp()
        if os.geteuid():
            self.skipTest('only root can become another user')
        self.conf = ends.make_conf(self)
        self.state = pathlib.Path(self.conf.state_path)
        self.file = self.state / 'aggregate_mirror' / 'journal.sqlite'

    def find(self, user: int = USER) -> checks.Finding:
        """The one finding of a process of a user without any rights."""
        def work(_number: int) -> checks.Findings:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            return journal.tables(self.conf)

        (one,), = processes.at_once(1, work)
        return one

    def own(self, *paths: pathlib.Path) -> None:
        for path in paths:
            os.chown(path, USER, USER)

    def test_journal_of_another_user(self):
        """The cure names the user to run the command as."""
        self.own(self.state)
        engine.Database(self.conf)
        self.state.chmod(0o755)
        one = self.find(USER + 1)
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertEqual(
            ('sudo -u %d nova-aggregate-mirror-status upgrade check' % USER,),
            one.cure)

    def test_state_path_of_another_user(self):
        """Nothing can be seen in it, nor made."""
        self.own(self.state)
        self.state.chmod(0o700)
        one = self.find(USER + 1)
        self.assertIn('sudo -u %d ' % USER, one.cure[0])

    def test_own_state_path(self):
        """The journal can be made; it is not."""
        self.own(self.state)
        one = self.find()
        self.assertEqual(checks.Code.SUCCESS, one.code, one)
        self.assertEqual([], list(self.state.iterdir()))

    def test_state_path_of_root(self):
        """Nova cannot write there, and root is not to run it."""
        self.state.chmod(0o755)
        one = self.find()
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertEqual('install -d -m 700 -o %d %s' % (
            USER, self.state / 'aggregate_mirror'), one.cure[0])

    def test_own_journal(self):
        """It is read as it is."""
        self.own(self.state)
        engine.Database(self.conf).migrate()
        one = self.find()
        self.assertEqual(checks.Code.SUCCESS, one.code, one)

    def test_own_file_that_is_write_protected(self):
        """How to open it."""
        self.own(self.state)
        engine.Database(self.conf).migrate()
        self.file.chmod(stat.S_IRUSR)
        one = self.find()
        self.assertEqual(('chmod u+rwX %s' % self.file,), one.cure)


class TestJournal(ends.TestCase):

    def test_tables_of_an_older_release(self):
        """The check reports them and changes nothing; nova-api does."""
        self.assertEqual([], self.journal.rows.all())
        database = engine.Database(self.conf)
        with database.transaction() as connection:
            connection.exec_driver_sql(
                'UPDATE alembic_version SET version_num = \'0000\'')
        one, = journal.tables(self.conf)
        self.assertEqual(checks.Code.SUCCESS, one.code)
        self.assertIn('0000', one.text)
        self.assertIsNone(journal.read(self.conf))
        self.assertEqual('0000', database.version())

    def test_journal_that_was_never_used(self):
        """Nothing is created, and nothing is left to be mirrored."""
        self.assertIsNone(journal.read(self.conf))
        self.assertEqual([], journal.users(self.conf))
        self.assertEqual([], journal.belonging(None, self.nova))
        one, = journal.backlog(None)
        self.assertEqual(checks.Code.SUCCESS, one.code)
        self.assertIsNone(journal.read(self.conf))

    def test_journal_of_another_nova(self):
        """The finding names the cells of both, and the option."""
        other = ends.Nova([])
        other.mapped = {'other': 'cell1 (other)'}
        binding.Binding(self.journal.database, other).bind()
        kept = journal.read(self.conf)
        self.assertEqual([], journal.belonging(kept, other))
        one, = journal.belonging(kept, self.nova)
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertIn('with the cells other; this nova has the cells '
                      'cell1 (%s)' % ends.CELL, one.text)
        self.assertEqual(journal.SERVER, one.cure[:2])

    def test_operations_that_are_mirrored(self):
        """A row that only waits for its age is no backlog."""
        row = self.record('h1')
        self.journal.rows.mirrored([row.id])
        one, = journal.backlog(journal.read(self.conf))
        self.assertEqual((checks.Code.SUCCESS,
                          'Nothing is left to be mirrored.'),
                         (one.code, one.text))

    def test_no_url(self):
        """The line to have, without what was there."""
        self.conf.set_override('connection', 'geheim@nowhere',
                               'aggregate_mirror_database')
        one, = journal.tables(self.conf)
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertEqual(journal.SERVER, one.cure)
        self.assertNotIn('geheim', one.text)

    def test_journal_that_another_process_locks(self):
        """It is not broken; the command shows which process has it."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.journal.db.engine.BUSY_TIMEOUT', 0.01))
        self.journal.rows.all()
        with engine.Database(self.conf).transaction():
            one, = journal.tables(self.conf)
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertIn('fuser', one.cure[0])


class TestDrift(ends.TestCase):

    def find(self) -> checks.Findings:
        self.nova.zones = lambda: {}
        return drift.find(self.conf, self.journal, self.nova, self.placement)

    def test_what_cannot_be_read(self):
        """What helps depends on who did not answer."""
        for error, cure in (
                (exceptions.DeadlineExceeded('slow'),
                 ('[aggregate_mirror]', 'request_timeout = 120')),
                (exceptions.PlacementFailed('500'),
                 ('systemctl restart placement-api',))):
            self.placement.broken = {('LIST', ''): error}
            one, = self.find()
            self.assertEqual((checks.Code.FAILURE, cure),
                             (one.code, one.cure))
        self.nova.broken = exceptions.NovaUnavailable('refused')
        one, = self.find()
        self.assertEqual('[api_database]', one.cure[0])

    def test_provider_that_cannot_be_read(self):
        """The others are compared all the same."""
        self.nova.hosts_of = {'a': {'h1', 'h2'}}
        self.nova.nodes = {'n1': 'h1', 'n2': 'h2'}
        for node in self.nova.nodes:
            self.placement.create(node)
        self.placement.broken = {
            ('GET', 'n1'): exceptions.MalformedAnswer('half of it.')}
        place, cure, unknown = self.find()
        self.assertIn('lacks host h2.', place.text)
        self.assertEqual(checks.Code.FAILURE, unknown.code)
        self.assertIn('n1: half of it.', unknown.text)
        self.assertEqual((checks.SYNC + ' --dry-run',), unknown.cure)

    def test_many_hosts(self):
        """A few are named; one host with many nodes is one."""
        self.nova.hosts_of = {'a': {'h%d' % i for i in range(9)}}
        for number in range(18):
            node = 'n%02d' % number
            self.nova.nodes[node] = 'h%d' % (number % 9)
            self.placement.create(node)
        first, cure = self.find()
        self.assertEqual('In placement, aggregate name of a lacks host h0, '
                         'host h1, host h2, host h3, host h4 and 4 more.',
                         first.text)
        self.assertEqual((checks.SYNC,), cure.cure)
