# SPDX-License-Identifier: Apache-2.0
"""A real nova-api starts and serves aggregates, even if the package fails."""

import dataclasses
import functools
import json
import pathlib
import sys
from typing import Any

import fixtures as base_fixtures
import testtools

from nova_aggregate_mirror import conf
from nova_aggregate_mirror.journal import store
from tests.cloud import forks
from tests import fixtures
from tests import nova_service
from tests import patience

PROGRAM = pathlib.Path(__file__).with_name('nova_api.py')
PASTE = pathlib.Path(sys.prefix, 'etc', 'nova', 'api-paste.ini')
# What nova-api imports before this package, which each fork imports itself:
# nova.api.openstack.compute loads the plugins.
PRELOADED = ('nova.api.openstack.wsgi_app', 'nova.compute.api',
             'keystonemiddleware.auth_token', 'nova.scheduler.client.report',
             'openstack.connection', 'openstack.placement.v1._proxy')
FILTER = """
[filter:aggregate_mirror]
paste.filter_factory = nova_aggregate_mirror.nova_plugin:filter_factory
"""
MORE = """
[DEFAULT]
state_path = %s
transport_url = fake:/
use_stderr = true
[database]
connection = %s
[aggregate_mirror]
%s
"""
# However busy the machine is.
PATIENT = 'inline_timeout = %d\n' % patience.LONGEST_CALL
ACTIVE = 'Attached to nova\'s aggregate operations, hooks: mirror'
INACTIVE = 'nova-aggregate-mirror is not active'
# The first aggregate of an empty database has ID 1.
STORY = [
    ('POST', '/os-aggregates', {'aggregate': {'name': 'one'}}),
    ('POST', '/os-aggregates', {'aggregate': {'name': 'two'}}),
    ('GET', '/os-aggregates', None),
    ('POST', '/os-aggregates/1/action', {'add_host': {'host': 'ironic'}}),
    ('POST', '/os-aggregates/2/action', {'add_host': {'host': 'ironic'}}),
    ('POST', '/os-aggregates/2/action', {'remove_host': {'host': 'ironic'}}),
    ('DELETE', '/os-aggregates/2', None),
]


@functools.cache
def _forker(*modules: str) -> forks.Forker:
    """Start the process that forks nova-apis, for all tests of this process.

    It ends with this process.

    :param modules: it imports them before it forks
    """
    return forks.Forker([sys.executable, str(PROGRAM), *modules],
                        patience.seconds(300))


@dataclasses.dataclass(frozen=True)
class Ended:
    """The result of a nova-api process."""

    started: bool
    statuses: list[int]
    log: str

    def lines(self, level: str) -> list[str]:
        """Return the lines of this package's loggers at a level."""
        return [line for line in self.log.splitlines()
                if ' %s nova_aggregate_mirror' % level in line]


class NovaApiTest(testtools.TestCase):
    """Nova-api, and a host with two compute nodes.

    Stock nova mirrors only the first node, which shows what mirrored.
    """

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.host = self.cloud.create_host('ironic', nodes=2)
        self.path = pathlib.Path(self.useFixture(base_fixtures.TempDir()).path)
        self.state = nova_service.CONF.state_path
        self.paste = PASTE.read_text().replace(' authtoken ', ' ')

    def serve(self, *faults: tuple[str, ...], ours: str = '',
              placement: str | None = None,
              preloaded: tuple[str, ...] = PRELOADED) -> Ended:
        """Start nova-api, send it the requests of the story, and stop it.

        :param faults: functions of the program, with their arguments
        :param ours: lines for [aggregate_mirror]
        :param placement: lines for [placement]; by default complete
        :param preloaded: modules that are imported already
        """
        self.configure(ours, placement)
        paths = [self.path / 'statuses', self.path / 'log']
        for path in paths:
            path.unlink(missing_ok=True)
        status = _forker(*preloaded).ask(
            faults, STORY, {
                'OS_NOVA_CONFIG_DIR': str(self.path),
                'OS_NOVA_CONFIG_FILES': 'api-paste.ini;nova.conf'},
            [str(path) for path in paths])
        statuses, log = [path.read_text() for path in paths]
        self.addDetail('nova-api', testtools.content.text_content(log))
        return Ended(int(status) == 0, json.loads(statuses or '[]'), log)

    def configure(self, ours: str = '', placement: str | None = None) -> None:
        """Write the two files that nova-api reads."""
        if 'inline_timeout' not in ours:
            ours = PATIENT + ours
        (self.path / 'nova.conf').write_text(self.cloud.nova_conf(MORE % (
            self.state, nova_service.CONF.database.connection, ours),
            placement))
        (self.path / 'api-paste.ini').write_text(self.paste)

    def mirrored_nodes(self) -> int:
        """Count the nodes of the host that placement has in the aggregate."""
        expected = self.cloud.nova.aggregates_of('ironic')
        self.assertEqual(1, len(expected))
        return [self.cloud.placement.aggregates(node)
                for node in self.host.nodes].count(expected)

    def rows(self) -> list[Any]:
        conf.register_opts(nova_service.CONF)
        return store.Journal(nova_service.CONF).rows.all()

    def assert_served(self, ended: Ended) -> None:
        self.assertTrue(ended.started, ended.log)
        self.assertEqual([200] * len(STORY), ended.statuses)

    def assert_ours(self, ended: Ended) -> None:
        """Assert that the package mirrored without ERROR or WARNING."""
        self.assert_served(ended)
        self.assertEqual(1, ended.log.count(ACTIVE))
        self.assertEqual([], ended.lines('ERROR') + ended.lines('WARNING'))
        self.assertEqual((2, []), (self.mirrored_nodes(), self.rows()))

    def assert_stock(self, ended: Ended, *reasons: str) -> None:
        """Assert that nova mirrored by itself, and an ERROR has the reason."""
        self.assert_served(ended)
        self.assertNotIn(ACTIVE, ended.log)
        self.assertEqual(1, ended.log.count(INACTIVE))
        for reason in INACTIVE, *reasons:
            self.assertIn(reason, '\n'.join(ended.lines('ERROR')))
        self.assertEqual((1, []), (self.mirrored_nodes(), self.rows()))


class InstallationTest(NovaApiTest):

    def test_installed(self) -> None:
        """With credentials, installing the package is sufficient.

        This nova-api imports all of its modules itself.
        """
        self.assert_ours(self.serve(
            ours='missing_credentials = fail', preloaded=()))

    def test_loaded_before_the_configuration(self) -> None:
        """The configuration is read before the hooks are installed."""
        self.assert_ours(self.serve(('plugins_first',)))

    def test_paste_filter(self) -> None:
        """A filter in api-paste.ini also installs the hooks."""
        last = ' osapi_compute_app_v21'
        self.paste = FILTER + self.paste.replace(
            last, ' aggregate_mirror' + last)
        self.assert_ours(self.serve(('hidden_entry_point',)))

    def test_dependency_missing(self) -> None:
        """Without a library that only the journal needs, nova is mirrored."""
        ended = self.serve(('broken_import', 'alembic', 'ImportError'))
        self.assert_served(ended)
        self.assertEqual(2, self.mirrored_nodes())
        # Two hosts added, one host removed, one aggregate deleted.
        self.assertEqual(4, len(ended.lines('ERROR')))
        for line in ended.lines('ERROR'):
            self.assertIn(': the journal ', line)

    def test_package_broken(self) -> None:
        """A broken module that loads the hooks leaves nova unchanged."""
        self.assert_stock(
            self.serve(('broken_import', 'nova_aggregate_mirror.hooks.attach',
                        'SyntaxError')),
            'nova_aggregate_mirror.hooks.attach is broken')

    def test_changed_nova(self) -> None:
        """The differences of an unknown nova are logged."""
        self.assert_stock(
            self.serve(('renamed_parameter',), ('cached_client',)),
            'AggregateAPI.add_host_to_aggregate takes (self, context, '
            'aggregate_id, host) instead of (self, context, aggregate_id, '
            'host_name)',
            'AggregateAPI.placement_client is not a property')

    def test_journal_that_does_not_take_the_mode(self) -> None:
        """One WARNING, not one for each operation."""
        (self.path / 'file').touch()
        self.state = str(self.path / 'file' / 'state')
        ended = self.serve(ours='mode = observe')
        self.assert_served(ended)
        line, = ended.lines('WARNING') + ended.lines('ERROR')
        self.assertIn('The mode of this nova-api is missing in the journal',
                      line)

    def test_refusal_to_start(self) -> None:
        """One sentence with the step, and no traceback."""
        for faults in [], [('plugins_first',)]:
            ended = self.serve(*faults, placement='',
                               ours='missing_credentials = fail')
            self.assertFalse(ended.started)
            line, = ended.lines('CRITICAL')
            self.assertThat(line, testtools.matchers.EndsWith(
                'nova-api does not start: [placement] has no auth_type: '
                'complete this section of nova.conf'))
            self.assertNotIn('Traceback', ended.log)

    def test_no_credentials(self) -> None:
        """Operations are mirrored once credentials have been added.

        At the start the hook claims only that it is attached.
        """
        ended = self.serve(placement='')
        self.assert_served(ended)
        self.assertIn(ACTIVE, ended.log)
        self.assertNotIn('are mirrored', ended.log)
        self.assertEqual(5, len(ended.lines('WARNING')))
        for line in ended.lines('WARNING'):
            self.assertIn(': [placement] has no auth_type: complete this '
                          'section of nova.conf', line)
        self.assertEqual([], ended.lines('ERROR'))
        self.assertEqual(0, self.mirrored_nodes())
        self.assertIn('ironic', {row.dirty.host for row in self.rows()})
        self.cloud.sync()
        self.assertEqual((2, []), (self.mirrored_nodes(), self.rows()))
