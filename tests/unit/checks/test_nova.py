# SPDX-License-Identifier: Apache-2.0
"""Findings about nova and about the user who runs the checks."""

from collections import abc
import os
import pathlib
import shutil
import stat
import types

import fixtures
from oslo_config import cfg
import testtools

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import journal
from nova_aggregate_mirror.checks import nova
from nova_aggregate_mirror.checks import runner
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal.db import migration
from tests import processes
from tests.unit import doubles

USER = 4711
Check = abc.Callable[[checks.Deployment], checks.Findings]


class TestHook(testtools.TestCase):

    def find(self) -> checks.Findings:
        return nova.hook(types.SimpleNamespace(conf=doubles.make_conf(self)))

    def test_unknown_nova(self):
        """The differences are listed; nova mirrors by itself."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova.compute.api.AggregateAPI.placement_client', None))
        one, = self.find()
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertIn('placement_client is not a property', one.text)
        self.assertEqual(
            ('pip install --upgrade WHEEL_OR_REPOSITORY',), one.commands)

    def test_nova_whose_scheduling_is_not_explained(self):
        """The mirror works, which the finding says."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.host_manager.HostManager._init_instance_info',
            fixtures.MonkeyPatch.delete))
        [finding] = self.find()
        self.assertEqual(checks.Code.WARNING, finding.code)
        self.assertIn('except for "scheduling explain": HostManager has no '
                      '_init_instance_info.', finding.text)

    def test_hook_that_refuses_to_start(self):
        """Another check reports missing credentials."""
        def load(conf):
            raise exceptions.MissingCredentials('no auth_type')
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.hooks.attach.load', load))
        one, = self.find()
        self.assertEqual(checks.Code.SUCCESS, one.code)


class TestGalera(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = doubles.make_conf(self)
        for section in 'api_database', 'database':
            self.conf.register_opt(
                cfg.IntOpt('mysql_wsrep_sync_wait'), section)

    def find(self, nodes, sync_wait=0):
        deployment = types.SimpleNamespace(
            conf=self.conf, source=types.SimpleNamespace(
                galera=lambda: (nodes, sync_wait)))
        return [(finding.code, finding.commands)
                for finding in nova.galera(deployment)]

    def test_database_without_other_nodes(self):
        """There is nothing to report, and nothing to wait for."""
        for nodes in 0, 1:
            (code, _commands), = self.find(nodes)
            self.assertIsNone(code)

    def test_nova_that_does_not_wait(self):
        """The lines to set are printed."""
        (code, commands), = self.find(3)
        self.assertEqual((checks.Code.WARNING, (
            '[api_database]', 'mysql_wsrep_sync_wait = 1',
            '[database]', 'mysql_wsrep_sync_wait = 1')), (code, commands))

    def test_server_that_lets_every_reader_wait(self):
        """Only the bit for reads counts."""
        for value, code in ((1, checks.Code.SUCCESS), (6, checks.Code.WARNING),
                            (7, checks.Code.SUCCESS)):
            (found, _commands), = self.find(3, value)
            self.assertEqual(code, found)

    def test_value_that_is_set_is_a_decision(self):
        """Also if it is 0."""
        for section in 'api_database', 'database':
            self.conf.set_override('mysql_wsrep_sync_wait', 0, section)
        (code, _commands), = self.find(3)
        self.assertEqual(checks.Code.SUCCESS, code)


class UserTest(testtools.TestCase):
    """A state_path that belongs to a user, and a command of another user."""

    def setUp(self) -> None:
        super().setUp()
        if os.geteuid():
            self.skipTest('only root can become another user')
        self.load_what_is_read()
        self.conf = doubles.make_conf(self)
        self.state = pathlib.Path(self.conf.state_path)
        self.file = self.state / 'aggregate_mirror' / 'journal.sqlite'

    def load_what_is_read(self) -> None:
        """Load what another user may not read below the home of root."""
        existing.migrate(doubles.make_conf(self))
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        # Alembic looks for its scripts each time.
        shutil.copytree(pathlib.Path(migration.__file__).parent / 'migrations',
                        folder / 'migrations')
        for path in folder, *folder.rglob('*'):
            path.chmod(0o755)
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.journal.db.migration.__file__',
            str(folder / 'migration.py')))

    def find(self, user: int = USER, check: Check = journal.tables
             ) -> checks.Finding:
        """Return the finding for a process of an unprivileged user."""
        def work(_number: int) -> checks.Findings:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            return runner.find(runner.Check('', check), checks.Deployment(
                self.conf, lambda: None))

        (one,), = processes.at_once(1, work)
        return one

    def own(self, *paths: pathlib.Path) -> None:
        for path in paths:
            os.chown(path, USER, USER)

    def test_journal_of_another_user(self):
        """The remedy names the user to run the command as."""
        self.own(self.state)
        engine.Database(self.conf).open()
        self.state.chmod(0o755)
        one = self.find(USER + 1)
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertEqual(
            'the journal cannot use %s: Permission denied: run this as its '
            'owner, user %d.' % (self.file.parent, USER), one.text)

    def test_own_state_path(self):
        """The journal could be created; the check does not create it."""
        self.own(self.state)
        one = self.find()
        self.assertIsNone(one.code, one)
        self.assertEqual([], list(self.state.iterdir()))

    def test_state_path_of_root(self):
        """Nova cannot write there, and must not run as root."""
        self.state.chmod(0o755)
        one = self.find()
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertEqual('install -d -m 700 -o %d %s' % (
            USER, self.state / 'aggregate_mirror'), one.commands[0])

    def test_own_file_that_is_write_protected(self):
        """The command that makes it writable is printed."""
        self.own(self.state)
        existing.migrate(self.conf)
        self.file.chmod(stat.S_IRUSR)
        one = self.find(check=journal.writes)
        self.assertEqual(
            'the journal cannot use %s: Permission denied: run "chmod u+rwX '
            '%s".' % (self.file, self.file), one.text)
