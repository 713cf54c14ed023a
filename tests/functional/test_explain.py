# SPDX-License-Identifier: Apache-2.0
"""What an explanation says of a request, and what nova does with it."""

import json

import fixtures
from nova.cmd import manage
from nova.db.api import api as api_db
from nova import exception
from nova import objects
from nova.scheduler import filters
from nova.tests import fixtures as nova_fixtures
from oslo_utils.fixture import uuidsentinel
import sqlalchemy as sa

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import rendering
from nova_aggregate_mirror.explain import requests
from tests.scheduling import cloud
from tests.scheduling import explaining

ZONE = 'az-1'
HOST = 'OS-EXT-SRV-ATTR:host'


class DisksFilter(filters.BaseHostFilter):
    """A filter of a vendor, which expects a number."""

    RUN_ON_REBUILD = False

    def host_passes(self, host_state, spec_obj):
        return int(spec_obj.flavor.extra_specs.get('disks', 0)) < 9


def fail(*_arguments, **_options):
    """Spawn nothing, as a hypervisor without a disk."""
    raise exception.NovaException('no disk')


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
            'full': 'have all VCPU reserved',
            'plain': 'without trait CUSTOM_FAST',
        }, self.reasons(answer))
        self.assertEqual(
            '1 of 6 hosts can take the server (good): 1 disabled, 1 have all '
            'VCPU reserved, 1 in zone az-1 in nova but not in '
            'placement, 1 not in zone az-1, 1 without trait CUSTOM_FAST',
            rendering.sentence(answer))
        conditions = 7
        # Figures and holders of one host; the list, sharing ones and the whole
        # query.
        self.assertEqual(conditions + 3 + 3, self.asked.asked)
        server = self.boot(flavor_id=self.wanted, az=ZONE)
        self.assertEqual('good', server[HOST])

    def test_server_in_error(self):
        """Its request is explained as nova has stored it."""
        self.delete_provider('good')
        server = self.refused()
        answer = self.explain_server(server)
        self.assertEqual([], answer.acceptable)
        self.assertEqual({'server': server['id'], 'operation': 'create',
                          'flavor': 'm1.tested', 'zone': ZONE,
                          'project': self.api.project_id}, answer.request)
        self.assertIn('1 disabled', rendering.sentence(answer))
        self.assertEqual('error', answer.record.state)
        self.assertIn('No valid host was found', answer.record.fault)
        self.assertEqual(
            ['create: conductor_schedule_and_build_instances', 'fault'],
            sorted(entry.event for entry in answer.record.entries))

    def test_server_whose_builds_failed(self):
        """What nova stored says it: the hosts could take the server."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.fake.FakeDriver.spawn', fail))
        server = self.boot(flavor_id=self.wanted, az=ZONE)
        answer = self.explain_server(server)
        self.assertIn('Exceeded maximum number of retries',
                      answer.record.fault)
        self.assertIn(
            ('create: compute__do_build_and_run_instance', 'good', 'Success'),
            {(entry.event, entry.host, entry.result)
             for entry in answer.record.entries})
        self.assertEqual(['good'], [
            verdict.host for verdict in answer.acceptable])
        text = rendering.text(answer)
        self.assertIn('nova-compute.log of each host', text)
        self.assertLess(text.index('Exceeded'), text.index('can take'))

    def refused(self):
        server = self.boot(flavor_id=self.wanted, az=ZONE)
        self.assertEqual('ERROR', server['status'])
        self.assertEqual(
            [], self.explain_flavor(self.wanted, ZONE).acceptable)
        return server


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
            self.assertEqual(leaving, self.reasons(
                self.explain_server(self.server, operation)), operation)
        self.assertEqual(leaving, self.reasons(self.explain_server(
            self.server, 'resize', flavor='m1.small')))
        staying = {'first': 'acceptable', 'second': 'acceptable',
                   'other': 'not in zone az-1'}
        for operation in ('create', 'unshelve'):
            self.assertEqual(staying, self.reasons(
                self.explain_server(self.server, operation)), operation)
        self.flags(allow_resize_to_same_host=True)
        answer = self.explain_server(
            self.server, 'resize', flavor='m1.small')
        self.assertEqual(staying, self.reasons(answer))
        # It is nova-api's option, whatever file was read.
        self.assertIn('Nova-api decides by its [DEFAULT] '
                      'allow_resize_to_same_host, which is True',
                      ''.join(answer.notes))
        self.assertEqual(
            {'first': 'acceptable', 'second': 'not the requested host',
             'other': 'not the requested host'},
            self.reasons(self.explain_server(self.server, 'rebuild')))
        self.assertEqual(before, self.stored())

    def test_hint_of_rebuild(self):
        """A user's hint that an older nova has stored is noted.

        Nova then neither queries placement nor checks the zone.
        """
        spec = objects.RequestSpec.get_by_instance_uuid(
            self.context, self.server['id'])
        spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        spec.save()
        answer = self.compared(lambda: requests.of_server(
            self.context, self.server['id'], 'migrate'))
        self.assertEqual({'second', 'other'},
                         {one.host for one in answer.acceptable})
        self.assertEqual(1, len([note for note in answer.notes
                                 if '_nova_check_type=rebuild' in note]))

    def stored(self):
        """Return what nova has stored of requests and servers."""
        with api_db.get_engine().connect() as connection:
            return connection.execute(sa.text(
                'SELECT * FROM request_specs')).all()


class TestRequests(explaining.ExplainingTest):
    """What nova-api and nova make of a request before they ask placement."""

    hosts = ('first', 'second')

    def test_host_and_node_in_the_zone(self):
        """Nova does not check the zone then, and takes this host only."""
        wanted = self.flavor()
        for zone in ('nova:second', 'nova::second', 'typo:second:second',
                     ':second'):
            answer = self.compared(lambda: self.described(wanted, zone))
            self.assertEqual(
                {'first': 'not the requested host', 'second': 'acceptable'},
                self.reasons(answer), zone)
            server = self.boot(flavor_id=wanted, az=zone)
            self.assertEqual('second', server[HOST], zone)
        self.assertRaises(exceptions.UnknownName, self.described, wanted,
                          'typo::second')

    def test_flavor_that_requests_nothing(self):
        """Nova asks placement, which refuses that."""
        wanted = self.flavor(**{'resources:VCPU': '0',
                                'resources:MEMORY_MB': '0',
                                'resources:DISK_GB': '0'})
        answer = self.explain_flavor(wanted)
        self.assertEqual('the flavor requests no resources', answer.failure)
        self.assertEqual('ERROR', self.boot(flavor_id=wanted)['status'])

    def test_parts_of_the_disk(self):
        """Swap and ephemeral disk are part of what placement allocates."""
        wanted = self._create_flavor(
            name='m1.disks', memory_mb=64, vcpu=1, disk=1000, ephemeral=200,
            swap=512)
        [first, _second] = self.explain_flavor(wanted).verdicts
        self.assertIn('asked 1201 (1000 root disk + 200 ephemeral disk + 1 '
                      'swap), free 1028', first.detail)


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

    def verdicts(self):
        return {verdict.host: verdict for verdict
                in self.explain_flavor(self.wanted).verdicts}

    def test_server(self):
        """It uses what it holds."""
        first = self.verdicts()['first']
        self.assertIn('held: 1 by server %s (%s)' % (
            self.server['name'], self.server['id']), first.detail)
        self.assertEqual('delete or move servers, or add hosts', first.advice)

    def allocate(self, **resources):
        """Allocate resources of the second host to nobody."""
        self.assertEqual(204, self.placement.put(
            '/allocations/' + uuidsentinel.consumer, {
                'allocations': {self.providers['second']: {
                    'resources': resources}},
                'project_id': 'p', 'user_id': 'u',
                'consumer_generation': None}, version='1.28').status)
        return uuidsentinel.consumer

    def test_consumer_of_another_service(self):
        """Nova's audit would not remove it."""
        consumer = self.allocate(CUSTOM_SLOT=1)
        self.assertEqual(
            'ask the owner: "openstack resource provider allocation show %s"'
            % consumer, self.verdicts()['second'].advice)

    def test_unknown_consumer(self):
        """Nova's audit, which the advice names, removes it."""
        consumer = self.allocate(CUSTOM_SLOT=1, VCPU=1)
        second = self.verdicts()['second']
        self.assertIn('held: 1 by %s, which is no server' % consumer,
                      second.detail)
        self.assertIn('placement audit --verbose --resource_provider '
                      + self.providers['second'], second.advice)
        manage.PlacementCommands().audit(
            delete=True, provider_uuid=self.providers['second'])
        self.assertEqual('acceptable', self.verdicts()['second'].reason.kind)

    def test_resize_that_is_not_confirmed(self):
        """It holds the host that the server has left."""
        self.admin_api.post_server_action(
            self.server['id'], {'migrate': None})
        self.become(self.server, status='VERIFY_RESIZE')
        first = self.verdicts()['first']
        self.assertIn('held: 1 by the migration of server '
                      + self.server['id'], first.detail)
        self.assertIn('openstack server resize confirm ' + self.server['id'],
                      first.advice)
        self.admin_api.post_server_action(
            self.server['id'], {'confirmResize': None})
        self.become(self.server, status='ACTIVE')
        self.assertEqual('acceptable', self.verdicts()['first'].reason.kind)

    def test_everything_is_reserved(self):
        """As of an ironic node in maintenance: no server frees it."""
        self.reserve('second', 'CUSTOM_SLOT')
        second = self.verdicts()['second']
        self.assertEqual('have all CUSTOM_SLOT reserved',
                         second.reason.phrase)
        self.assertIn('baremetal node list', second.advice)


class TestVolume(explaining.ExplainingTest):
    """The root disk of a server is a volume."""

    hosts = ('first', 'second')

    def setUp(self):
        super().setUp()
        self.useFixture(nova_fixtures.CinderFixture(self))

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
        server = self.admin_api.post_server({'server': {
            **self._build_server(
                flavor_id=self.flavor(), image_uuid='', networks='none'),
            'block_device_mapping_v2': [{
                'boot_index': 0, 'source_type': 'volume',
                'destination_type': 'volume',
                'uuid': nova_fixtures.CinderFixture.IMAGE_BACKED_VOL}]}})
        self.become(server, status='ACTIVE', **{HOST: 'first'})
        with api_db.get_engine().begin() as connection:
            [spec] = connection.execute(sa.text(
                'SELECT spec FROM request_specs')).scalars()
            stored = json.loads(spec)
            self.assertIs(True, stored['nova_object.data'].pop('is_bfv'))
            connection.execute(sa.text('UPDATE request_specs SET spec = :spec'
                                       ), {'spec': json.dumps(stored)})
        self.reserve('second', 'DISK_GB')
        for operation in 'create', 'migrate', 'unshelve':
            self.assertEqual('acceptable', self.reasons(
                self.explain_server(server, operation))['second'], operation)
        self.admin_api.post_server_action(server['id'], {'migrate': None})
        self.become(server, status='VERIFY_RESIZE', **{HOST: 'second'})


class TestExtraSpecs(explaining.ExplainingTest):
    """An aggregate for an extra spec, with one of two hosts."""

    hosts = ('ssd', 'disk')

    def setUp(self):
        super().setUp()
        self.aggregate('fast', ['ssd'], ssd='true')

    def notes(self, **extra_specs):
        """Return the hosts that are left, and the notes on extra specs."""
        answer = self.explain_flavor(self.flavor(**extra_specs))
        objects.Flavor.get_by_name(self.context, 'm1.tested').destroy()
        return {verdict.host for verdict in answer.acceptable}, [
            note for note in answer.notes if 'extra specs' in note]

    def test_extra_spec_that_no_filter_reads(self):
        """It excludes no host, which a note says with the filter to enable.

        Nova's ComputeCapabilitiesFilter ignores it, too.
        """
        for name in 'ssd', 'aggregate_instance_extra_specs:ssd':
            left, notes = self.notes(**{name: 'true'})
            self.assertEqual({'ssd', 'disk'}, left)
            [note] = notes
            self.assertIn('extra specs of the flavor: %s.' % name, note)
            self.assertIn('Enable AggregateInstanceExtraSpecsFilter', note)
        self.flags(enabled_filters=[
            'ComputeFilter', 'AggregateInstanceExtraSpecsFilter'],
            group='filter_scheduler')
        for name in 'ssd', 'aggregate_instance_extra_specs:ssd':
            self.assertEqual(({'ssd'}, []), self.notes(**{name: 'true'}))

    def test_capability(self):
        """Only nova's ComputeCapabilitiesFilter reads it."""
        wanted = {'capabilities:vcpus_total': '10', 'vcpus_total': '10'}
        self.assertEqual(({'ssd', 'disk'}, []), self.notes(**wanted))
        self.flags(enabled_filters=['ComputeFilter'],
                   group='filter_scheduler')
        _left, notes = self.notes(**wanted)
        self.assertEqual(
            ['capabilities:vcpus_total', 'vcpus_total'],
            sorted(note.partition('flavor: ')[2].partition('.')[0]
                   for note in notes))

    def test_filter_of_a_vendor(self):
        """It reads an extra spec, also if it fails for another value."""
        self.flags(available_filters=[
            *cloud.AVAILABLE, DisksFilter.__module__ + '.DisksFilter'],
            enabled_filters=['DisksFilter'], group='filter_scheduler')
        self.assertEqual(({'ssd', 'disk'}, []), self.notes(disks='8'))

    def test_extra_specs_that_nova_reads_itself(self):
        """They are not meant for a filter."""
        self.assertEqual([], self.notes(**{
            'hw:cpu_policy': 'shared', 'quota:vif_inbound_average': '1',
            'trait:COMPUTE_STATUS_DISABLED': 'forbidden',
            'group_policy': 'none', 'hide_hypervisor_id': 'true'})[1])

    def test_no_host_is_left(self):
        """There is another reason, and no filter has seen a host."""
        for host in self.hosts:
            self.reserve(host, 'VCPU')
        self.assertEqual((set(), []), self.notes(ssd='true'))

    def test_forced_host(self):
        """Nova runs no host filter then, whatever is enabled."""
        server = self.boot(flavor_id=self.flavor(ssd='true'), az='nova:disk')
        self.assertNotIn('extra specs', ' '.join(
            self.explain_server(server).notes))


class TestExtraSpecsInQuery(explaining.ExplainingTest):

    hosts = ('ssd', 'disk')
    request_filters = ('flavor_extra_specs',)
    host_filters = (cloud.GUARD,)

    def test_extra_spec_that_a_request_filter_reads(self):
        """The query has it, and the guard reads it."""
        self.aggregate('fast', ['ssd'], ssd='true')
        answer = self.explain_flavor(self.flavor(**cloud.SSD))
        self.assertEqual(['ssd'], [one.host for one in answer.acceptable])
        self.assertEqual([], answer.notes)


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
        self.assertEqual('one', self.boot(flavor_id=wanted)[HOST])
        # Placement has a host that nova does not have.
        self.set_aggregates('three', self.uuid(fast))
        answer = self.explain_flavor(wanted)
        self.assertEqual('in other aggregates in nova than in placement',
                         self.reasons(answer)['three'])
        self.assertIn('nova does not: three.', answer.notes[0])


class TestSeveral(explaining.ExplainingTest):

    hosts = ('one', 'two', 'three')

    def test_servers_at_once(self):
        """As many as nova places, no more."""
        self.flags(cores=-1, instances=-1, ram=-1, group='quota')
        wanted = self._create_flavor(
            memory_mb=64, vcpu=10, disk=1, ephemeral=0)
        # Placement allocates 5 * 4 of them, two times 10.
        for host in self.hosts:
            self.reserve(host, 'VCPU', 5)
        answer = self.explain_flavor(wanted, count=6)
        self.assertEqual(6, len(answer.placed))
        self.assertTrue(answer.possible)
        answer = self.explain_flavor(wanted, count=7)
        self.assertEqual(6, len(answer.placed))
        self.assertFalse(answer.possible)
        self.assertIn('. 6 of 7 servers fit at once: 2 on ',
                      rendering.sentence(answer))
        self.assertEqual('ERROR', self.boot_many(wanted, 7))
        self.assertEqual('ACTIVE', self.boot_many(wanted, 6))

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
