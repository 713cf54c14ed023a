# SPDX-License-Identifier: Apache-2.0
"""Findings about nova, its filters and the user who runs the checks."""

from collections import abc
from importlib import metadata
import os
import pathlib
import shutil
import stat
import types
import uuid

import fixtures
from nova.conf import scheduler as nova_options
from nova.scheduler import filters
from oslo_config import cfg
from oslo_utils.fixture import uuidsentinel as uuids
from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import journal
from nova_aggregate_mirror.checks import nova
from nova_aggregate_mirror.checks import runner
from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.source import keyed_aggregates
from tests import neutron_service
from tests import placement_service
from tests import processes
from tests.unit import doubles
from tests.unit import servers

USER = 4711
Check = abc.Callable[[checks.Deployment], checks.Findings]
NOVAS = 'nova.scheduler.filters.all_filters'
OURS = 'nova_aggregate_mirror.scheduler.filters.all_filters'
GUARD = 'AggregateMembershipFilter'
COUNTING = 'SegmentAddressesFilter'
EXTRA_SPECS = 'AggregateInstanceExtraSpecsFilter'
NAMES = tuple(row.name for row in filter_table.FILTERS)
ROUTED = 'query_placement_for_routed_network_aggregates'
PROVIDER = uuidutils.generate_uuid()
AGGREGATE = uuidutils.generate_uuid()
OTHER = uuidutils.generate_uuid()


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

    def test_reads(self):
        """If they do not wait for other nodes, the lines are printed.

        Of a server that lets every reader wait, only the bit for reads counts.
        """
        success = checks.Code.SUCCESS, ()
        warning = checks.Code.WARNING, (
            '[api_database]', 'mysql_wsrep_sync_wait = 1',
            '[database]', 'mysql_wsrep_sync_wait = 1')
        for nodes, value, expected in (
                (0, 0, (None, ())), (1, 0, (None, ())), (3, 0, warning),
                (3, 1, success), (3, 6, warning), (3, 7, success)):
            self.assertEqual([expected], self.find(nodes, value))

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
        shutil.copytree(pathlib.Path(models.__file__).parent / 'migrations',
                        folder / 'migrations')
        for path in folder, *folder.rglob('*'):
            path.chmod(0o755)
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.journal.db.models.__file__',
            str(folder / 'models.py')))

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
        self.assertIn('let this process create and use that path', one.text)

    def test_own_file_that_is_write_protected(self):
        """The command that makes it writable is printed."""
        self.own(self.state)
        existing.migrate(self.conf)
        self.file.chmod(stat.S_IRUSR)
        one = self.find(check=journal.writes)
        self.assertEqual(
            'the journal cannot use %s: Permission denied: run "chmod u+rwX '
            '%s".' % (self.file, self.file), one.text)


def house_filters():
    """Return the filters that an operator wrote."""
    return [HouseFilter]


class HouseFilter(filters.BaseHostFilter):
    """A host filter of an operator."""


class TestFilters(testtools.TestCase):
    """Nova's own options, and the request filters that are installed."""

    def setUp(self) -> None:
        super().setUp()
        self.conf = doubles.make_conf(self)
        # Groups of the same names: nova's own are shared by every test.
        self.conf.register_opts(nova_options.scheduler_opts, 'scheduler')
        self.conf.register_opts(nova_options.filter_scheduler_opts,
                                'filter_scheduler')
        self.enabled = self.conf.filter_scheduler.enabled_filters

    def find(self, *names: str, available: tuple[str, ...] = (NOVAS, OURS),
             enabled: tuple[str, ...] = (GUARD,)) -> checks.Findings:
        self.conf.set_override('request_filters', list(names),
                               'aggregate_mirror')
        for option, value in (('available_filters', [*available]),
                              ('enabled_filters',
                               [*self.enabled, *enabled])):
            self.conf.set_override(option, value, 'filter_scheduler')
        return nova.filters(types.SimpleNamespace(conf=self.conf))

    def line(self, *names: str) -> str:
        """Return the option with these filters besides nova's."""
        return 'enabled_filters = ' + ','.join([*self.enabled, *names])

    def assert_failure(self, found: checks.Findings, text: str,
                       *commands: str) -> None:
        one, = found
        self.assertEqual((checks.Code.FAILURE, commands),
                         (one.code, one.commands))
        self.assertIn(text, one.text)

    def test_nothing_is_asked_for(self):
        """Stock nova, or our filter list already in use, is fine.

        Our list includes nova's filters.
        """
        for enabled in (), (EXTRA_SPECS,):
            self.assertEqual([], self.find(available=(NOVAS,),
                                           enabled=enabled))
        self.assertEqual([], self.find(enabled=()))
        for available in (NOVAS, OURS), (OURS,):
            self.assertEqual([], self.find(available=available))

    def test_all_of_them(self):
        """Each filter is known, loads, and is checked by the guard."""
        self.conf.set_override(ROUTED, True, 'scheduler')
        one, = self.find(*NAMES, enabled=(GUARD, COUNTING))
        self.assertEqual(checks.Code.SUCCESS, one.code)

    def test_segments_that_nova_does_not_use(self):
        """The filter can only narrow what nova requires."""
        one, = self.find('segment_addresses', enabled=(GUARD, COUNTING))
        self.assertEqual(
            (checks.Code.WARNING, ('[scheduler]', ROUTED + ' = true')),
            (one.code, one.commands))
        self.assertIn('segment_addresses has no effect', one.text)

    def test_servers_that_are_requested_together(self):
        """Only a host filter can count them."""
        self.conf.set_override(ROUTED, True, 'scheduler')
        one, = self.find('segment_addresses')
        self.assertEqual(
            (checks.Code.WARNING,
             ('[filter_scheduler]', self.line(GUARD, COUNTING))),
            (one.code, one.commands))

    def test_unknown_name(self):
        """Nova-scheduler would not start: the line without it is printed."""
        self.assert_failure(
            self.find(NAMES[0], 'flavour'),
            'is named "flavour". Nova-scheduler does not start. Available '
            'request filters: default_availability_zone,',
            '[aggregate_mirror]', 'request_filters = ' + NAMES[0])

    def test_name_that_cannot_be_loaded(self):
        """It is installed, but its module is missing."""
        broken = metadata.EntryPoint(
            'broken', 'no.such.module:Filter', nova.NAMESPACE)
        self.useFixture(fixtures.MonkeyPatch(
            'stevedore.extension.ExtensionManager.list_entry_points',
            lambda _manager: [broken]))
        self.useFixture(fixtures.MonkeyPatch(
            'importlib.metadata.entry_points',
            lambda group: metadata.EntryPoints([broken])))
        self.assert_failure(
            self.find('broken'), 'broken could not be loaded: No module named',
            '[aggregate_mirror]', 'request_filters = broken')

    def test_list_that_is_not_named(self):
        """Our line is printed in addition to the existing lines."""
        for names, enabled in ((('type_affinity',), (GUARD,)),
                               ((), (GUARD,)), ((), (COUNTING,))):
            self.assert_failure(
                self.find(*names, available=(NOVAS,), enabled=enabled),
                'neither the request filters nor', '[filter_scheduler]',
                'available_filters = ' + NOVAS, 'available_filters = ' + OURS)

    def test_lists_of_an_operator(self):
        """They are kept, and their filters are found."""
        mine = __name__ + '.house_filters'
        self.assertEqual([], self.find(
            available=(NOVAS, OURS, mine), enabled=(GUARD, 'HouseFilter')))
        self.assertEqual([], self.find(
            available=(NOVAS, __name__ + '.HouseFilter'),
            enabled=('HouseFilter',)))

    def test_nova_own_list_is_lost(self):
        """A line that was meant as an addition replaces the default."""
        mine = __name__ + '.house_filters'
        self.assert_failure(
            self.find(available=(mine,), enabled=()),
            'does not start: it does not find ', '[filter_scheduler]',
            'available_filters = ' + NOVAS, 'available_filters = ' + OURS,
            'available_filters = ' + mine)

    def test_filter_that_nobody_has(self):
        """Nova-scheduler would not start."""
        one, = self.find(enabled=('ComputFilter',))
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertIn('ComputFilter', one.text)

    def test_list_that_cannot_be_imported(self):
        """It is named, whatever it raises, without a traceback."""
        for path in 'no.such.filters', 'HouseFilter', 'json.load', 'os.path':
            found = self.find(available=(NOVAS, path, OURS))
            self.assert_failure(found, 'names %s, which' % path)
            self.assertNotIn('Traceback', found[0].text)

    def test_request_filter_that_nobody_judges(self):
        """The query may not suffice; a host filter is required."""
        self.conf.set_override(ROUTED, True, 'scheduler')
        for name in sorted({*NAMES} - {'segment_addresses'}):
            self.assert_failure(
                self.find(name, enabled=(COUNTING,)),
                'No host filter checks the hosts for %s: nova-scheduler does '
                'not start.' % name, '[filter_scheduler]',
                self.line(COUNTING, GUARD))

    def test_both_host_filters_are_missing(self):
        """Each finding prints the line with both."""
        self.conf.set_override(ROUTED, True, 'scheduler')
        found = self.find('segment_addresses', enabled=())
        self.assertEqual(
            [('[filter_scheduler]', self.line(GUARD, COUNTING))] * 2,
            [one.commands for one in found])

    def test_guard_is_missing(self):
        """Nova has host filters for all rules but zones."""
        one, = self.find('flavor_extra_specs', enabled=(EXTRA_SPECS,))
        self.assertEqual(checks.Code.WARNING, one.code)
        self.assertIn('only placement checks availability zones', one.text)
        self.assertEqual(self.line(EXTRA_SPECS, GUARD), one.commands[1])


class TestSharing(servers.LoopbackTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.placement = self.useFixture(placement_service.PlacementService())
        self.client = client.Client(servers.make_conf(
            auth_type='admin_token', endpoint=self.placement.url,
            token=placement_service.TOKEN))
        self.nova = doubles.Nova([])
        self.nova.hosts_of = {AGGREGATE: {'h1'}, OTHER: {'h2'}}
        for provider, name in (PROVIDER, 'store'), (
                uuidutils.generate_uuid(), 'node'):
            self.placement.create_provider(provider, name)

    def find(self) -> checks.Findings:
        return nova.sharing(types.SimpleNamespace(
            source=self.nova, client=self.client))

    def test_outside_of_an_aggregate(self):
        """The remedy is a command; in all aggregates it is no finding."""
        self.assertEqual([], self.find())
        self.placement.set_traits(PROVIDER, 'MISC_SHARES_VIA_AGGREGATE')
        self.placement.set_aggregates(PROVIDER, [AGGREGATE])
        one, = self.find()
        self.assertEqual(checks.Code.WARNING, one.code)
        self.assertIn(PROVIDER, one.text)
        command, = one.commands
        self.assertRegex(command, '^openstack --os-placement-api-version 1.29 '
                         'resource provider aggregate set .* %s$' % PROVIDER)
        self.placement.set_aggregates(PROVIDER, [AGGREGATE, OTHER])
        self.assertEqual([], self.find())

    def test_provider_that_is_deleted_meanwhile(self):
        """It is not in the way of any host."""
        self.placement.set_traits(PROVIDER, 'MISC_SHARES_VIA_AGGREGATE')
        get = client.Client.get

        def late(reader: client.Client, provider: str) -> client.Provider:
            self.placement.delete_provider(provider)
            return get(reader, provider)

        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.placement.client.Client.get', late))
        self.assertEqual([], self.find())

    def test_segment_of_neutron(self):
        """Neutron's segments are not to be added to more aggregates."""
        segment = uuidutils.generate_uuid()
        self.placement.create_provider(
            segment, 'Neutron segment id ' + segment)
        self.placement.set_traits(segment, 'MISC_SHARES_VIA_AGGREGATE')
        self.assertEqual([], self.find())


class TestSegments(servers.LoopbackTestCase):

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        self.conf([])
        conf.register_opts(self.conf)
        self.neutron = self.useFixture(neutron_service.NeutronService())
        self.neutron.configure(self.conf)
        self.names = {uuids.zone: 'zone-a'}

    def segment(self, shown=True):
        """Create a segment with an aggregate; return its UUID."""
        made = str(uuid.uuid4())
        self.names[str(uuid.uuid4())] = 'Neutron segment id %s' % made
        if shown:
            self.neutron.subnet(uuids.network, made, '10.0.0.0/24')
        return made

    def found(self):
        aggregates = keyed_aggregates.Aggregates(self.names, {}, {})
        return runner.find(
            runner.Check('', nova.segments), types.SimpleNamespace(
                conf=self.conf, aggregates=aggregates))

    def test_no_segments(self):
        """Neutron is not asked."""
        finding, = self.found()
        self.assertIsNone(finding.code)
        self.assertEqual([], self.neutron.requests)

    def test_all_are_shown(self):
        for _number in range(nova.BATCH + 1):
            self.segment()
        self.assertEqual([], self.found())
        self.assertEqual(2, len(self.neutron.requests))

    def test_one_is_not_shown(self):
        """The role that the user needs is suggested."""
        self.segment()
        hidden = self.segment(shown=False)
        warning, = self.found()
        self.assertEqual(checks.Code.WARNING, warning.code)
        self.assertIn('1 of the 2 segments', warning.text)
        self.assertIn(hidden, warning.text)
        self.assertEqual(
            ('openstack role add --project service --user neutron admin',),
            warning.commands)

    def test_neutron_that_refuses(self):
        self.segment()
        self.neutron.statuses['subnets'] = 403
        failure, = self.found()
        self.assertEqual(checks.Code.FAILURE, failure.code)
        self.assertIn(
            'answered 403 (reading subnets): run "openstack role add ',
            failure.text)
