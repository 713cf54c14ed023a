# SPDX-License-Identifier: Apache-2.0
"""What an explanation says of a request, and what nova does with it."""

import collections
import functools
import json
import operator
import pathlib
import threading

import fixtures
from nova.cmd import manage
from nova.compute import instance_actions
from nova import context as nova_context
from nova.db.api import api as api_db
from nova import exception
from nova import objects
from nova.scheduler import filters
from nova.scheduler import request_filter
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api import client
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_utils.fixture import uuidsentinel
import sqlalchemy as sa

from nova_aggregate_mirror import conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import stored
from tests.scheduling import cloud
from tests.scheduling import explaining

ZONE = 'az-1'
HOST = 'OS-EXT-SRV-ATTR:host'
OTHER = {'properties': {}}
"""An image that no server has."""


class DisksFilter(filters.BaseHostFilter):
    """A filter of a vendor, which expects a number."""

    RUN_ON_REBUILD = False

    def host_passes(self, host_state, spec_obj):
        return int(spec_obj.flavor.extra_specs.get('disks', 0)) < 9


def fail(*_arguments, error=exception.NovaException('no disk'), **_options):
    """Spawn nothing, as a hypervisor without a disk."""
    raise error


class TestConditions(explaining.ExplainingTest):
    """Each host has a reason of its own."""

    hosts = ('good', 'elsewhere', 'lagging', 'off', 'full', 'plain')

    def setUp(self):
        super().setUp()
        zone = self.aggregate('east', set(self.hosts) - {'elsewhere'},
                              availability_zone=ZONE)
        self.zone = self.uuid(zone)
        self.set_aggregates('lagging')
        self.admin_api.put_service(
            self.service('off'), {'status': 'disabled',
                                  'disabled_reason': 'new disks'})
        self.reserve('full', 'VCPU')
        for host in set(self.hosts) - {'plain'}:
            self.set_trait(host)
        self.wanted = self.flavor(**{'trait:CUSTOM_FAST': 'required'})

    def test_each_host_has_its_reason(self):
        """The server lands on the only host that is left.

        Placement is asked as often as there are conditions.
        """
        answer = self.explain_flavor(self.wanted, ZONE)
        self.assertEqual({
            'good': 'acceptable',
            'elsewhere': 'not in zone az-1',
            'lagging': 'in zone az-1 in nova but not in placement',
            'off': 'disabled',
            'full': 'have too much VCPU reserved',
            'plain': 'without trait CUSTOM_FAST',
        }, self.reasons(answer))
        self.assertEqual(
            'nova-scheduler finds 1 of 6 hosts (good): 1 disabled, 1 have too '
            'much VCPU reserved, 1 in zone az-1 in nova but not in '
            'placement, 1 not in zone az-1, 1 without trait CUSTOM_FAST',
            explanation.sentence(answer))
        conditions = 7
        # Figures and holders of one host; the list, sharing ones and the whole
        # query.
        self.assertEqual(conditions + 3 + 3, self.asked.asked)
        server = self.boot(flavor_id=self.wanted, az=ZONE)
        self.assertEqual('good', server[HOST])

    def test_sharing_provider_that_is_deleted(self):
        """It was listed, and no longer shares anything."""
        providers = explaining.Placement.providers
        self.useFixture(fixtures.MonkeyPatch(
            'tests.scheduling.explaining.Placement.providers',
            lambda placement, **query: providers(
                placement, **query) | {uuidsentinel.deleted}))
        self.assertEqual(['good'], explaining.accepted(
            self.explain_flavor(self.wanted, ZONE)))

    def test_server_whose_builds_failed(self):
        """Request and record are those that nova has stored.

        The record says it: the hosts could take the server.
        """
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.fake.FakeDriver.spawn', fail))
        server = self.boot(flavor_id=self.wanted, az=ZONE)
        answer = self.explain_server(server)
        self.assertEqual({'server': server['id'], 'operation': 'create',
                          'flavor': 'm1.tested', 'zone': ZONE,
                          'project': self.api.project_id}, answer.request)
        self.assertEqual('error', answer.record.state)
        self.assertIn('Exceeded maximum number of retries',
                      answer.record.fault)
        self.assertIn(
            ('create: compute__do_build_and_run_instance', 'good', 'Success'),
            {(entry.event, entry.host, entry.result)
             for entry in answer.record.entries})
        self.assertEqual(['good'], explaining.accepted(answer))
        text = explanation.text(answer)
        self.assertIn('nova-compute.log of each host', text)
        self.assertLess(text.index('Exceeded'),
                        text.index('nova-scheduler finds'))


class TestWeights(explaining.ExplainingTest):
    """With all weighers of nova."""

    hosts = ('first', 'second')

    def setUp(self):
        super().setUp()
        # As nova's default; its test case has another.
        self.flags(weight_classes=['nova.scheduler.weights.all_weighers'],
                   build_failure_weight_multiplier=1e6,
                   group='filter_scheduler')
        self.wanted = self.flavor()

    def compare(self):
        return explaining.named(self.compared_flavor(self.wanted))

    def reported(self):
        """Let nova-compute report the failed build."""
        self._run_periodics()
        verdicts = self.compare()
        self.assertEqual(
            'but builds failed there: weight -1000000 of BuildFailureWeigher',
            verdicts['first'].reason.detail)
        return verdicts

    def test_host_on_which_a_build_failed(self):
        """Nova chooses it last; a restart, as is said, forgets the failure."""
        with fixtures.MonkeyPatch('nova.virt.fake.FakeDriver.spawn', fail):
            self.boot(flavor_id=self.wanted, az='nova:first')
        verdicts = self._wait_for_assert(
            self.reported, max_retries=cloud.PATIENCE)
        first = verdicts['first']
        self.assertEqual(-1e6, first.scores['BuildFailureWeigher'])
        self.assertAlmostEqual(first.weight, sum(first.scores.values()))
        self.assertIn('RAMWeigher', verdicts['second'].scores)
        self.assertEqual('', verdicts['second'].reason.detail)
        self.restart_compute_service(self.computes['first'])
        self.assertEqual('', self.compare()['first'].reason.detail)


class TestMoves(explaining.ExplainingTest):
    """A server on a host of a zone that has one more host."""

    hosts = ('first', 'second', 'other')

    def setUp(self):
        super().setUp()
        self.aggregate('east', ['first', 'second'], availability_zone=ZONE)
        self.server = self.boot(flavor_id=self.flavor(), az=ZONE)

    def test_each_operation(self):
        """The own host is left out of a move, and the only one to rebuild."""
        before = self.stored()
        leaving = {'first': 'the host to leave', 'second': 'acceptable',
                   'other': 'not in zone az-1'}
        for operation in ('migrate', 'live-migrate', 'evacuate'):
            self.admin_api.put_service_force_down(
                self.service('first'), operation == 'evacuate')
            self.assertEqual(leaving, self.reasons(
                self.explain_server(self.server, operation)), operation)
        self.admin_api.put_service_force_down(self.service('first'), False)
        self.assertEqual(leaving, self.reasons(self.explain_server(
            self.server, 'resize', flavor='m1.small')))
        staying = {'first': 'acceptable', 'second': 'acceptable',
                   'other': 'not in zone az-1'}
        self.assertEqual(
            staying, self.reasons(self.explain_server(self.server)))
        self.flags(allow_resize_to_same_host=True)
        answer = self.explain_server(self.server, 'resize', flavor='m1.small')
        self.assertEqual(staying, self.reasons(answer))
        # It is nova-api's option, whatever file was read.
        self.assertIn('Nova-api decides by its [DEFAULT] '
                      'allow_resize_to_same_host, here True (',
                      ''.join(answer.notes))
        self.admin_api.put_service_force_down(self.service('second'), True)
        answer = self.explain_server(self.server, 'rebuild', image=OTHER)
        self.assertEqual(
            {'first': 'acceptable', 'second': 'not the requested host',
             'other': 'not the requested host'}, self.reasons(answer))
        self.assertEqual({''}, {
            verdict.reason.step for verdict in answer.verdicts})
        # Nova applies no ComputeFilter to a rebuild.
        self.assertEqual({()}, {verdict.also for verdict in answer.verdicts})
        self.assertEqual(before, self.stored())

    def test_unshelve_before_it_is_offloaded(self):
        """Nova starts the server on its host, wherever there is room."""
        self.flags(shelved_offload_time=-1)
        self.admin_api.post_server_action(self.server['id'], {'shelve': None})
        self.become(self.server, status='SHELVED')
        for host in self.hosts:
            self.reserve(host, 'VCPU')
            answer = self.explain_server(self.server, 'unshelve')
            self.assertEqual(
                {'first': 'acceptable', 'second': 'not the requested host',
                 'other': 'not the requested host'}, self.reasons(answer))
            self.assertEqual(stored.ON_ITS_HOST, answer.stays)
        self.admin_api.post_server_action(
            self.server['id'], {'unshelve': None})
        self.become(self.server, status='ACTIVE', **{HOST: 'first'})

    def test_server_in_error(self):
        """Nova moves none; made active, as the page says, it moves."""
        page = pathlib.Path(__file__).parents[2].joinpath(
            'doc', 'source', 'admin', 'no-valid-host.rst').read_text()
        self.assertIn('$ openstack server set --state active ', page)
        # This is what that command sends.
        for state in 'error', 'active':
            self.admin_api.post_server_action(
                self.server['id'], {'os-resetState': {'state': state}})
            if state == 'error':
                self.assertRaises(
                    client.OpenStackApiException,
                    self.admin_api.post_server_action, self.server['id'],
                    {'migrate': None})
        self.admin_api.post_server_action(self.server['id'], {'migrate': None})
        self.become(self.server, status='VERIFY_RESIZE', **{HOST: 'second'})

    def test_hint_of_rebuild(self):
        """With a user's, nova neither queries placement nor checks the zone.

        An older nova has stored it.
        """
        spec = objects.RequestSpec.get_by_instance_uuid(
            self.context, self.server['id'])
        spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        spec.save()
        answer = self.compared_server(self.server, 'migrate')
        self.assertEqual({'second', 'other'},
                         set(explaining.accepted(answer)))

    def stored(self):
        """Return what nova has stored of requests and servers."""
        with api_db.get_engine().connect() as connection:
            return connection.execute(sa.text(
                'SELECT * FROM request_specs')).all()


class TestQueries(explaining.ExplainingTest):
    """The statements that a server adds to an explanation."""

    hosts = ('first', 'second')

    def statements(self, request):
        """Count those in the cell and in the API database.

        Those of each of six runs: nova's services add their own.
        """
        runs = [self.count(request) for _run in range(6)]
        counts = collections.Counter()
        for (database, _statement), count in functools.reduce(
                operator.and_, runs).items():
            counts[database] += count
        return counts

    def count(self, request):
        """Return how often each statement was sent to each database."""
        with nova_context.target_cell(
                self.context, self.cell_mappings['cell1']) as target:
            databases = {
                target.db_connection.writer.get_engine(): 'cell',
                api_db.get_engine(): 'API'}
        counts = collections.Counter()

        def count(connection, _cursor, statement, *_arguments):
            if statement.startswith('SELECT'):
                counts[databases.get(connection.engine), statement] += 1

        sa.event.listen(sa.engine.Engine, 'before_cursor_execute', count)
        try:
            self.explain(request())
        finally:
            sa.event.remove(sa.engine.Engine, 'before_cursor_execute', count)
        return counts

    def test_server(self):
        """At most 5 in its cell and 3 in the API database."""
        wanted, large = self.flavor(), self._create_flavor(vcpu=3)
        server = self.boot(flavor_id=wanted, host='first')
        without = self.statements(lambda: self.described(wanted))
        for operation in stored.PREPARATIONS:
            if operation == 'evacuate':
                self.admin_api.put_service_force_down(
                    self.service('first'), True)
            counts = self.statements(lambda: self.of_server(
                server, operation, image=OTHER,
                flavor=large if operation == 'resize' else ''))
            added = {database: counts[database] - without[database]
                     for database in ('cell', 'API')}
            self.assertLessEqual(added['cell'], 5, operation)
            self.assertLessEqual(added['API'], 3, operation)


class TestRequests(explaining.ExplainingTest):
    """What nova-api and nova make of a request before they ask placement."""

    hosts = ('first', 'second')

    def test_flavor_that_requests_nothing(self):
        """Nova asks placement, which refuses that."""
        wanted = self.flavor(**{'resources:VCPU': '0',
                                'resources:MEMORY_MB': '0',
                                'resources:DISK_GB': '0'})
        answer = self.explain_flavor(wanted)
        self.assertEqual('the flavor requests no resources', answer.failure)
        self.assertEqual('ERROR', self.boot(flavor_id=wanted)['status'])

    def test_plugins_that_cannot_be_loaded(self):
        """The options are named, and not for an error of a database."""
        wanted = self.flavor()
        for option, path, reason in (
                ('weight_classes', 'os.path', 'ClassNotFound: Class os.path'),
                ('available_filters', 'json.load', 'TypeError: load() miss'),
                ('available_filters', 'House', 'ValueError: Empty module')):
            self.flags(**{option: [path]}, group='filter_scheduler')
            refusal = str(self.assertRaises(
                exceptions.InvalidConfiguration, self.explain_flavor, wanted))
            self.assertTrue(refusal.startswith(
                '[filter_scheduler] available_filters or weight_classes: '
                + reason), refusal)
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.host_manager.HostManager.refresh_cells_caches',
            functools.partial(fail, error=db_exception.DBError())))
        self.assertRaises(db_exception.DBError, self.explain_flavor, wanted)


class TestZones(explaining.ExplainingTest):
    """One host in a zone and one in none, as nova-api takes their zones."""

    hosts = ('inside', 'outside')

    def setUp(self):
        super().setUp()
        self.flags(instances=-1, cores=-1, group='quota')
        self.aggregate('east', ['inside'], availability_zone=ZONE)
        self.wanted = self.flavor()

    def compare(self, zone, *hosts):
        """Explain and create a server: nova takes the first of the hosts."""
        try:
            acceptable = self.explain_flavor(self.wanted, zone).acceptable
        except exceptions.UnknownName:
            acceptable = ()
        try:
            host = self.boot(flavor_id=self.wanted, az=zone)[HOST]
        except client.OpenStackApiException:
            host = None
        self.assertEqual(
            (hosts, (*hosts, None)[0]),
            (tuple(verdict.host for verdict in acceptable), host), zone)
        return acceptable

    def test_host_and_node_in_the_zone(self):
        """Nova drops a zone that is not the host's, or that has a node only.

        With a host it does not check that the zone exists.
        """
        for zone in ('az-1:inside', 'nova:inside', 'typo:inside:inside',
                     ':inside', 'nova::inside', 'typo::inside'):
            self.compare(zone, 'inside')
        for zone in ('nova:outside', 'az-1:outside', 'az-1::outside'):
            self.compare(zone, 'outside')
        for zone in ('az-1:typo', 'nova::typo', 'az-1:outside:inside', 'typo'):
            self.compare(zone)
        for zone in ('nova', 'internal', 'typo:'):
            self.compare(zone, 'inside', 'outside')

    def test_zone_of_hosts_without_one(self):
        """Nothing enforces it; a server that is pinned to it can be unpinned.

        Unless an aggregate has the zone.
        """
        note = 'Nothing enforces zone nova: no aggregate has it'
        self.assertIn(note, ''.join(
            self.explain_flavor(self.wanted, 'nova').notes))
        server = self.boot(flavor_id=self.wanted, az='nova')
        notes = ''.join(self.explain_server(server, 'migrate').notes)
        self.assertIn(note, notes)
        self.assertIn('unpin the server', notes)
        self.assertIn(server['id'], notes)
        self.assertNotIn('Nothing enforces', ''.join(
            self.explain_flavor(self.wanted, ZONE).notes))
        self.aggregate('default', ['outside'], availability_zone='nova')
        self.assertNotIn('Nothing enforces', ''.join(
            self.explain_flavor(self.wanted, 'nova').notes))

    def test_host_that_is_down(self):
        """If it is requested, nova takes it without asking a filter."""
        self.admin_api.put_service_force_down(self.service('inside'), True)
        self.compare(ZONE)
        [inside] = self.compare('az-1:inside', 'inside')
        self.assertEqual('but forced down, which no filter checks for this '
                         'request', inside.reason.detail)
        self.assertIn('set --up <host>', inside.reason.step)


class TestHolders(explaining.ExplainingTest):
    """Two hosts with room for one server each."""

    hosts = ('first', 'second')

    def setUp(self):
        super().setUp()
        for host in self.hosts:
            self.provide(host, 'CUSTOM_SLOT', 1)
        self.wanted = self.flavor(**{'resources:CUSTOM_SLOT': '1'})
        self.server = self.boot(flavor_id=self.wanted)
        self.providers = {host: self._get_provider_uuid_by_host(host)
                          for host in self.hosts}

    def restart(self, host):
        """Restart nova-compute, which knows nothing of the slots."""
        self.restart_compute_service(self.computes[host])
        self.provide(host, 'CUSTOM_SLOT', 1)

    def verdicts(self):
        return explaining.named(self.explain_flavor(self.wanted))

    def allocate(self, consumer, provider='second', **resources):
        """Add resources of a provider to what a consumer has."""
        url = '/allocations/' + consumer
        allocations = self.placement.get(url, version='1.28').body
        allocations['allocations'][self.providers[provider]] = {
            'resources': resources}
        self.assertEqual(204, self.placement.put(url, {
            'project_id': 'p', 'user_id': 'u', 'consumer_generation': None,
            **allocations}, version='1.28').status)

    def audit(self, host):
        manage.PlacementCommands().audit(
            delete=True, provider_uuid=self.providers[host])

    def test_unknown_consumer(self):
        """Nova's audit, which the step names, removes it."""
        consumer = uuidsentinel.consumer
        self.allocate(consumer, CUSTOM_SLOT=1, VCPU=1)
        second = self.verdicts()['second']
        self.assertIn('held: 1 by %s, which is no server' % consumer,
                      second.reason.detail)
        self.assertIn('placement audit --verbose --resource_provider '
                      + self.providers['second'], second.reason.step)
        # The audit does not list what another service has allocated.
        self.assertIn('allocation show ' + consumer, second.reason.step)
        self.audit('second')
        self.assertEqual('acceptable', self.verdicts()['second'].reason.kind)

    def test_child_provider(self):
        """Who holds its resources is named, and not who holds the host's.

        Of several children that have the resource, none is.
        """
        self.create_child('second', 'card')
        self.providers |= self._providers
        self.provide('card', 'VGPU', 1)
        consumer = uuidsentinel.consumer
        self.allocate(consumer, 'card', VGPU=1)
        self.allocate(uuidsentinel.other, VCPU=1)
        self.wanted = self.flavor('m1.gpu', **{'resources:VGPU': '1'})
        second = self.verdicts()['second']
        self.assertIn('free 0 of 1 x 1; held: 1 by %s, which is no server'
                      % consumer, second.reason.detail)
        self.assertIn('--resource_provider ' + self.providers['card'],
                      second.reason.step)
        self.create_child('second', 'sibling')
        self.provide('sibling', 'VGPU', 1)
        self.reserve('sibling', 'VGPU')
        self.assertEqual('cannot provide 1 VGPU',
                         self.verdicts()['second'].reason.phrase)
        self.audit('card')
        self.assertEqual('acceptable', self.verdicts()['second'].reason.kind)

    def test_resize_that_is_not_confirmed(self):
        """It holds the host that the server has left."""
        self.admin_api.post_server_action(self.server['id'], {'migrate': None})
        self.become(self.server, status='VERIFY_RESIZE')
        first = self.verdicts()['first']
        self.assertIn('held: 1 by the migration of server '
                      + self.server['id'], first.reason.detail)
        self.assertIn('openstack server resize confirm ' + self.server['id'],
                      first.reason.step)
        self.admin_api.post_server_action(
            self.server['id'], {'confirmResize': None})
        self.become(self.server, status='ACTIVE')
        self.assertEqual('acceptable', self.verdicts()['first'].reason.kind)

    def test_move_that_goes_on(self):
        """It holds both hosts, and none of them any more when it has ended."""
        going_on = threading.Event()
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.fake.FakeDriver.migrate_disk_and_power_off',
            lambda *_arguments, **_options: going_on.wait(
                cloud.PATIENCE) and '{}'))
        self.admin_api.post_server_action(self.server['id'], {'migrate': None})
        self._wait_for_server_parameter(
            self.server, {'OS-EXT-STS:task_state': 'resize_migrating'})
        verdicts = self.verdicts()
        self.assertIn('(migrating)', verdicts['first'].reason.detail)
        self.assertIn('(resize_migrating)', verdicts['second'].reason.detail)
        for host in self.hosts:
            self.assertTrue(verdicts[host].reason.step.startswith('wait'))
        going_on.set()
        self.become(self.server, status='VERIFY_RESIZE')
        self.admin_api.post_server_action(
            self.server['id'], {'revertResize': None})
        self.become(self.server, status='ACTIVE')
        self.assertEqual('acceptable', self.verdicts()['second'].reason.kind)

    def test_evacuated_server(self):
        """Nova-compute, started as is said, frees what it has left."""
        self.computes['first'].stop()
        self.admin_api.put_service(
            self.service('first'), {'forced_down': True})
        self.admin_api.post_server_action(self.server['id'], {'evacuate': {}})
        self.become(self.server, **{HOST: 'second'})
        first = self.verdicts()['first']
        self.assertIn('is on host second since it was evacuated',
                      first.reason.detail)
        self.assertIn('start nova-compute on first', first.reason.step)
        self.assertEqual(['forced down'], [
            reason.phrase for reason in first.also])
        self.restart('first')
        # Before that, nova refuses this.
        self.admin_api.put_service(
            self.service('first'), {'forced_down': False})
        self.assertEqual('acceptable', self.verdicts()['first'].reason.kind)

    def test_option_that_reserves(self):
        """Nova-compute reports the lower value."""
        self.flags(cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0,
                   disk_allocation_ratio=1.0)
        self.wanted = self._create_flavor(
            memory_mb=2048, vcpu=4, disk=100, ephemeral=0)
        for option, resource, total, unit in (
                ('reserved_host_cpus', 'VCPU', 10, 1),
                ('reserved_host_memory_mb', 'MEMORY_MB', 8192, 1),
                ('reserved_host_disk_mb', 'DISK_GB', 1028, 1024)):
            phrase = 'have too much %s reserved' % resource
            for reserved, reason in ((total, phrase), (total - 1, phrase),
                                     (0, 'acceptable')):
                self.flags(**{option: reserved * unit})
                self.restart('second')
                second = self.verdicts()['second']
                self.assertEqual(reason, second.reason.phrase)
                self.assertEqual(bool(reserved), 'lower [DEFAULT] %s of the '
                                 'host' % option in second.reason.step)

    def test_nova_compute_of_an_older_release(self):
        """Restarted with nova 34, as is said, it adds the trait."""
        if not hasattr(request_filter, 'owner_nova_filter'):
            self.skipTest('Nova requires the trait since nova 34')
        self._put('second', 'traits', traits=[])
        second = self.verdicts()['second']
        self.assertEqual('without trait OWNER_NOVA', second.reason.phrase)
        self.assertIn('restart nova-compute', second.reason.step)
        self.restart('second')
        self.assertEqual('acceptable', self.verdicts()['second'].reason.kind)

    def test_everything_is_reserved(self):
        """As of an ironic node in maintenance: no server frees it."""
        self.reserve('second', 'CUSTOM_SLOT')
        second = self.verdicts()['second']
        self.assertEqual('have too much CUSTOM_SLOT reserved',
                         second.reason.phrase)
        self.assertIn('baremetal node list', second.reason.step)


class TestVolume(explaining.ExplainingTest):
    """The root disk of a server is a volume."""

    hosts = ('first', 'second')

    def setUp(self):
        super().setUp()
        self.cinder = self.useFixture(nova_fixtures.CinderFixture(self))

    def test_image_of_such_a_server(self):
        """Nova-api creates the volume, without a volume in the request."""
        mapping = [{
            'boot_index': 0, 'source_type': 'volume',
            'destination_type': 'volume',
            'volume_id': nova_fixtures.CinderFixture.IMAGE_BACKED_VOL}]
        image = self.glance.create(self.context, {
            'name': 'snapshot', 'properties': {
                'bdm_v2': True, 'block_device_mapping': mapping}})['id']
        self.reserve('first', 'DISK_GB')
        self.reserve('second', 'DISK_GB')
        wanted = self.flavor()
        # Nova decodes what glance has as JSON.
        answer = self.explain_flavor(wanted, image={'properties': {
            'bdm_v2': 'True', 'block_device_mapping': json.dumps(mapping)}})
        self.assertEqual(2, len(answer.acceptable))
        server = self.boot(flavor_id=wanted, image_uuid=image)
        self.assertEqual('ACTIVE', server['status'])
        answer = self.explain_flavor(wanted)
        self.assertEqual(0, len(answer.acceptable))

    def test_stored_request_of_queens(self):
        """It does not have that the root disk is a volume; the server has."""
        server = self.boot_from_volume(self.flavor())
        self.become(server, status='ACTIVE', **{HOST: 'first'})
        with api_db.get_engine().begin() as connection:
            [spec] = connection.execute(sa.text(
                'SELECT spec FROM request_specs')).scalars()
            stored = json.loads(spec)
            self.assertIs(True, stored['nova_object.data'].pop('is_bfv'))
            connection.execute(sa.text('UPDATE request_specs SET spec = :spec'
                                       ), {'spec': json.dumps(stored)})
        self.reserve('second', 'DISK_GB')
        for operation in 'create', 'migrate':
            self.assertEqual('acceptable', self.reasons(
                self.explain_server(server, operation))['second'], operation)
        self.admin_api.post_server_action(server['id'], {'migrate': None})
        self.become(server, status='VERIFY_RESIZE', **{HOST: 'second'})

    def boot_from_volume(self, flavor):
        return self.admin_api.post_server({'server': {
            **self._build_server(
                flavor_id=flavor, image_uuid='', networks='none'),
            'block_device_mapping_v2': [{
                'boot_index': 0, 'source_type': 'volume',
                'destination_type': 'volume',
                'uuid': nova_fixtures.CinderFixture.IMAGE_BACKED_VOL}]}})

    def test_zone_of_the_volume(self):
        """Nova-api requests it, if volumes must not be of another zone."""
        self.flags(cross_az_attach=False, group='cinder')
        self.cinder.az = ZONE
        self.aggregate('east', ['second'], availability_zone=ZONE)
        wanted = self.flavor()
        answer = self.explain_flavor(wanted, volume=True)
        self.assertEqual(2, len(answer.acceptable))
        self.assertIn('give it with --zone', ''.join(answer.notes))
        answer = self.explain_flavor(wanted, ZONE, volume=True)
        self.assertEqual(([], ['second']), (
            answer.notes, explaining.accepted(answer)))
        self.become(self.boot_from_volume(wanted), status='ACTIVE',
                    **{HOST: 'second'})


class TestRebuild(explaining.ExplainingTest):
    """Another image for a server on the first of two hosts."""

    hosts = ('first', 'second')
    host_filters = ('AggregateImagePropertiesIsolation',)

    def setUp(self):
        super().setUp()
        self.set_trait('second')
        self.server = self.boot(flavor_id=self.flavor())

    def image(self, **properties):
        return self.glance.create(self.context, {
            'name': 'other', 'properties': properties, 'status': 'active',
            'min_ram': 0, 'min_disk': 0})

    def rebuild(self, image):
        self.admin_api.post_server_action(
            self.server['id'], {'rebuild': {'imageRef': image['id']}})

    def test_traits_that_the_host_lacks(self):
        """Nova-conductor refuses the rebuild: that is not looked at."""
        image = self.image(**{'trait:CUSTOM_FAST': 'required'})
        answer = self.explain_server(self.server, 'rebuild', image=image)
        self.assertEqual(['first'], explaining.accepted(answer))
        self.assertIn('the image and its traits', answer.not_looked_at)
        self.rebuild(image)
        self.become(self.server, status='ERROR')
        # Nova marks the action after the server.
        self._wait_for_action_fail_completion(
            self.server, instance_actions.REBUILD, 'rebuild_server')
        answer = self.explain_server(self.server, '')
        self.assertIn('rebuild, failed at', answer.remarks[0])
        self.assertIn('Image traits cannot be satisfied', answer.record.fault)

    def test_image_that_it_has(self):
        """Nova-scheduler is not asked, which would refuse the host."""
        image = self.image(hw_machine_type='q35')
        self.rebuild(image)
        self.become(self.server, status='ACTIVE')
        self.aggregate('pc', ['first'], hw_machine_type='pc')
        self.assertEqual([], self.explain_server(
            self.server, 'rebuild', image={
                **image, 'id': uuidsentinel.other}).acceptable)
        for kept in None, image:
            answer = self.explain_server(self.server, 'rebuild', image=kept)
            self.assertEqual(['first'], explaining.accepted(answer))
            self.assertEqual(stored.KEPT_IMAGE, answer.stays)
        self.rebuild(image)
        self.become(self.server, status='ACTIVE', **{HOST: 'first'})


class TestHostFilters(explaining.ExplainingTest):
    """Host filters of nova and of a vendor."""

    hosts = ('ssd', 'disk')

    def test_host_that_is_named(self):
        """Each filter gets it, also if it is no candidate or rejected before.

        Of others it is not known.
        """
        self.aggregate('fast', ['ssd'], ssd='true')
        self.flags(enabled_filters=[
            'ComputeFilter', 'AggregateInstanceExtraSpecsFilter',
            'IoOpsFilter'], max_io_ops_per_host=0,
            group='filter_scheduler')
        self.reserve('disk', 'VCPU')
        wanted = self.flavor(ssd='true')
        also = {verdict.host: [reason.phrase for reason in verdict.also]
                for verdict in self.explain_flavor(wanted).verdicts}
        self.assertEqual({'ssd': [], 'disk': []}, also)
        [verdict] = self.explain(self.described(wanted), ['disk']).verdicts
        self.assertEqual(
            ['have too much VCPU reserved',
             'without an aggregate that matches the flavor',
             'busy with other servers'], [reason.phrase for reason in (
                 verdict.reason, *verdict.also)])

    def test_filter_of_a_vendor_that_fails(self):
        """Nova fails the request then; the filter is named."""
        self.flags(available_filters=[
            *cloud.AVAILABLE, DisksFilter.__module__ + '.DisksFilter'],
            enabled_filters=['DisksFilter'], group='filter_scheduler')
        wanted = self.flavor(disks='many')
        answer = self.explain_flavor(wanted)
        self.assertIn('DisksFilter raises ValueError: invalid literal',
                      answer.failure)
        self.assertIn(DisksFilter.__module__, answer.verdicts[0].reason.step)
        self.assertRaises(ValueError, self.chosen,
                          lambda: self.described(wanted))
        # Placement leaves no host that the filter could fail for.
        for host in self.hosts:
            self.reserve(host, 'VCPU')
        answer = self.explain(self.described(wanted), self.hosts)
        self.assertEqual('', answer.failure)

    def test_weigher_that_fails(self):
        """It is named as well."""
        self.flags(weight_classes=['nova.scheduler.weights.all_weighers'],
                   group='filter_scheduler')
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.weights.ram.RAMWeigher._weigh_object', fail))
        self.assertEqual('RAMWeigher raises NovaException: no disk',
                         self.explain_flavor(self.flavor()).failure)


class TestFilters(explaining.ExplainingTest):
    """With this package's request filters, the guard and nova's filters."""

    hosts = ('one', 'two', 'three')
    request_filters = ('flavor_extra_specs', 'tenant_isolation')
    host_filters = (cloud.GUARD, 'NumInstancesFilter')

    def test_names_of_those_who_asked(self):
        """The rule is named, not the request filter."""
        fast = self.aggregate('fast', ['one', 'two'], ssd='true')
        self.aggregate('theirs', ['two'], filter_tenant_id='others')
        wanted = self.flavor(**cloud.SSD)
        answer = self.explain_flavor(wanted)
        self.assertEqual({
            'one': 'acceptable',
            'two': 'in an aggregate that excludes tenant %s'
                   % self.api.project_id,
            'three': "not in an aggregate for the flavor's extra spec "
                     'aggregate_instance_extra_specs:ssd',
        }, self.reasons(answer))
        named = self.described(wanted, tenant='team')
        self.assertEqual('in an aggregate that excludes tenant team',
                         self.reasons(self.explain(named))['two'])
        # The query has what the flavor and the tenant require.
        self.assertEqual([], answer.notes)
        self.assertEqual('one', self.boot(flavor_id=wanted)[HOST])
        # Placement has a host that nova does not have.
        self.set_aggregates('three', self.uuid(fast))
        answer = self.explain_flavor(wanted)
        self.assertEqual('in other aggregates in nova than in placement',
                         self.reasons(answer)['three'])
        self.assertIn('nova does not: three.', answer.notes[0])


class TestBudget(explaining.ExplainingTest):
    """With a query that has no room for aggregates."""

    hosts = ('one', 'two')
    request_filters = ('flavor_extra_specs',)
    host_filters = (cloud.GUARD,)

    def setUp(self):
        conf.register_opts(cfg.CONF)
        # Read when nova-scheduler starts.
        self.flags(max_member_of_bytes=0, group='aggregate_mirror')
        super().setUp()

    def test_conditions_that_do_not_fit(self):
        self.aggregate('fast', ['one'], ssd='true')
        answer = self.explain_flavor(self.flavor(**cloud.SSD))
        self.assertEqual(
            {'one': 'acceptable',
             'two': 'in aggregates that exclude the request'},
            self.reasons(answer))
        self.assertIn('did not fit into the query to placement: 1. ',
                      answer.notes[0])


class TestSeveral(explaining.ExplainingTest):

    hosts = ('one', 'two', 'three')
    host_filters = ('IoOpsFilter',)

    def assert_six_fit(self, wanted):
        """Explain and boot six servers, and one more than nova places."""
        self.flags(cores=-1, instances=-1, ram=-1, group='quota')
        for count, status in (6, 'ACTIVE'), (7, 'ERROR'):
            answer = self.explain_flavor(wanted, count=count)
            self.assertEqual(6, len(answer.placed))
            self.assertEqual(status, self.boot_many(wanted, count))
        self.assertIn('. 6 of 7 servers fit at once: 2 on ',
                      explanation.sentence(answer))

    def test_servers_at_once(self):
        """As many as nova places, no more."""
        # Placement allocates 5 * 4 of them, two times 10.
        for host in self.hosts:
            self.reserve(host, 'VCPU', 5)
        self.assert_six_fit(self.flavor(vcpus=10))

    def test_servers_that_are_built_at_once(self):
        """A host builds some of them; one after the other, it builds more."""
        self.flags(max_io_ops_per_host=2, group='filter_scheduler')
        wanted = self.flavor()
        self.assert_six_fit(wanted)
        answer = self.explain_flavor(wanted, count=explanation.MAX_SERVERS)
        self.assertGreater(answer.count, 6)

    def boot_many(self, flavor, count):
        """Boot servers at once; return their common status."""
        server = self._build_server(flavor_id=flavor, networks='none')
        server.update(min_count=count, max_count=count)
        self.admin_api.post_server({'server': server})

        def ended():
            found = {one['status'] for one in self.admin_api.get_servers()}
            self.assertIn(found, ({'ACTIVE'}, {'ERROR'}))
            return found.pop()

        status = self._wait_for_assert(ended, max_retries=cloud.PATIENCE)
        for one in self.admin_api.get_servers():
            self._delete_server(one)
        return status
