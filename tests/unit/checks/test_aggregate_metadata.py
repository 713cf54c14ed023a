# SPDX-License-Identifier: Apache-2.0
"""What the metadata of aggregates means to nova, and where it does not."""

import dataclasses
import types

import fixtures
from oslo_config import cfg
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import aggregate_metadata
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import keyed_aggregates
from tests import placement_service
from tests.unit import servers

TRAIT = 'CUSTOM_LICENSED'


def known(metadata, **members):
    """Return aggregates; ``members`` has the hosts of each."""
    hosts = {}
    for name, inside in members.items():
        for host in inside:
            hosts.setdefault(host, {})[getattr(uuids, name)] = None
    return keyed_aggregates.Aggregates(
        {getattr(uuids, name): name for name in metadata},
        {getattr(uuids, name): values for name, values in metadata.items()},
        hosts)


def deployment(aggregates, conf=None, **parts):
    return types.SimpleNamespace(aggregates=aggregates, conf=conf, **parts)


def nova(*hosts, **down):
    return source.Nova(
        aggregates={}, members={}, cells_down=down,
        nodes={getattr(uuids, host): host for host in hosts})


def zone(name):
    return {'availability_zone': name}


EAST = known({'a': zone('east')}, a=['h1'])


class TestZones(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        self.conf([])
        for name, default in (('default_availability_zone', 'nova'),
                              ('internal_service_availability_zone',
                               'internal'), ('default_schedule_zone', None)):
            self.conf.register_opt(cfg.StrOpt(name, default=default))

    def find(self, known_aggregates, nova_hosts, pinned=0):
        with fixtures.MonkeyPatch(
                'nova_aggregate_mirror.audit.readers.count_pinned',
                lambda _zone: pinned):
            return aggregate_metadata.zones(deployment(
                known_aggregates, conf=self.conf, nova=nova_hosts))

    def test_servers_of_the_default_zone(self):
        """Their number, of the newest."""
        [finding] = self.find(known({}), nova(), 2)
        self.assertTrue(finding.text.startswith(
            'Of the newest 10000 requests, 2 servers are pinned to '
            'availability zone nova'), finding.text)
        self.assertIn('those of them that are on a host', finding.text)
        [finding] = self.find(
            known({'a': zone('nova')}, a=['h1']), nova('h1'), 1)
        self.assertNotIn('pinned', finding.text)

    def one(self, known_aggregates, *hosts):
        finding, = self.find(known_aggregates, nova('h1', *hosts))
        return finding

    def assert_refused(self, name, finding):
        """Nova-api refuses each request without a zone."""
        self.assertEqual(
            (checks.Code.FAILURE,
             ('[DEFAULT]', 'default_schedule_zone = ' + name)),
            (finding.code, finding.commands))

    def test_zones_that_work(self):
        self.conf.set_override('default_schedule_zone', 'east')
        found = known({'a': zone('east'), 'b': zone('east'), 'c': {}},
                      a=['h1'], b=['h1', 'h2'], c=['h1'])
        self.assertEqual([], self.find(found, nova('h1', 'h2')))

    def test_names_of_nova(self):
        """Each means the hosts, or the services, without a zone."""
        for name, option in (('nova', 'default_availability_zone'),
                             ('internal',
                              'internal_service_availability_zone')):
            one = self.one(known({'a b': zone(name)}, **{'a b': ['h1']}))
            self.assertEqual(checks.Code.WARNING, one.code)
            self.assertIn(option, one.text)
            self.assertEqual(
                ("openstack aggregate set --zone NAME 'a b'",), one.commands)

    def test_name_with_a_colon(self):
        one = self.one(known({'a': zone('east:1')}, a=['h1']))
        self.assertIn('no server can be created', one.text)

    def test_host_in_two_zones(self):
        one = self.one(known({'a': zone('east'), 'b': zone('west')},
                             a=['h1', 'h2'], b=['h1', 'h3']), 'h2', 'h3')
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertIn('Host h1 is in availability zones east, west', one.text)
        self.assertEqual({'openstack aggregate remove host a h1',
                          'openstack aggregate remove host b h1'},
                         set(one.commands))

    def test_zone_without_hosts(self):
        """One of which nova has no compute node has a step of its own."""
        found = known({'a': zone('east'), 'b': zone('west'),
                       'c': zone('west'), 'd': zone('south')},
                      c=['h1'], d=['renamed'])
        one = self.one(found)
        self.assertEqual(checks.Code.WARNING, one.code)
        self.assertIn('availability zone east.', one.text)
        self.assertEqual(('openstack aggregate unset --property '
                          'availability_zone a',), one.commands)
        self.conf.set_override('default_schedule_zone', 'east')
        _empty, one = self.find(found, nova('h1'))
        self.assert_refused('east', one)
        self.conf.set_override('default_schedule_zone', 'south')
        self.one(found)

    def test_zone_of_requests_without_a_zone(self):
        self.conf.set_override('default_schedule_zone', 'west')
        self.assert_refused('west', self.one(EAST))
        # Nova's other services are in it, and nova-api accepts it.
        self.conf.set_override('default_schedule_zone', 'internal')
        self.assertEqual([], self.find(EAST, nova('h1')))

    def test_zone_of_hosts_without_a_zone(self):
        """Nova-api refuses it unless there are such hosts."""
        self.conf.set_override('default_schedule_zone', 'nova')
        self.assert_refused('nova', self.one(EAST))
        for hosts in nova('h1', 'h2'), nova('h1', cell1='refused'):
            self.assertEqual([], self.find(EAST, hosts))
        self.assertEqual([], self.find(known({}), nova()))


class TestRatios(testtools.TestCase):

    def test_keys_that_nova_ignores(self):
        self.assertEqual([], aggregate_metadata.ratios(deployment(
            known({'a': {'ssd': 'true'}}))))
        one, = aggregate_metadata.ratios(deployment(known({'a': {
            'cpu_allocation_ratio': '2.5',
            'disk_allocation_ratio': '$(halt)'}})))
        self.assertEqual(checks.Code.WARNING, one.code)
        inventory = ('openstack --os-placement-api-version 1.29 resource '
                     'provider inventory set --aggregate %s --amend '
                     '--resource ' % uuids.a)
        unset = 'openstack aggregate unset --property '
        self.assertEqual((
            inventory + 'VCPU:allocation_ratio=2.5',
            unset + 'cpu_allocation_ratio a',
            inventory + "DISK_GB:allocation_ratio='$(halt)'",
            unset + 'disk_allocation_ratio a'), one.commands)
        self.assertIn('nova.conf of a host overrides', one.text)


class TestIsolated(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.placement = self.useFixture(placement_service.PlacementService())
        self.client = client.Client(servers.make_conf(
            auth_type='admin_token', endpoint=self.placement.url,
            token=placement_service.TOKEN))
        for host in 'h1', 'h2':
            self.placement.create_provider(getattr(uuids, host), host)

    def find(self, value='required', hosts=nova('h1', 'h2'), trait=TRAIT,
             **members):
        return aggregate_metadata.isolation(deployment(
            known({'a': {'trait:' + trait: value}}, **members),
            nova=hosts, client=self.client))

    def test_host_without_the_trait(self):
        """Nova forbids it to some requests, placement to the others."""
        self.placement.create_trait(TRAIT)
        self.placement.set_traits(uuids.h1, TRAIT)
        self.assertEqual([], self.find())
        self.assertEqual([], self.find(a=['h1']))
        one, = self.find(a=['h1', 'h2'])
        self.assertEqual(checks.Code.WARNING, one.code)
        self.assertIn('hosts h2 do not have', one.text)
        self.assertEqual(1, len(one.commands))
        self.assertIn(uuids.h2, one.commands[0])

    def test_hosts_that_share_a_compute_node(self):
        """The one in the aggregate is named, whichever nova has first."""
        self.placement.create_trait(TRAIT)
        shared = dataclasses.replace(nova('h1', 'h2'), shared={
            uuids.h1: (source.NodeRow('', uuids.h1, 'h1'),
                       source.NodeRow('', uuids.h1, 'twin'))})
        for host in 'h1', 'twin':
            finding, = self.find(hosts=shared, a=[host])
            self.assertIn('hosts %s do not have' % host, finding.text)

    def test_trait_that_does_not_exist(self):
        one, = self.find(a=['h1'])
        self.assertEqual(checks.Code.FAILURE, one.code)
        self.assertIn(TRAIT, one.text)
        self.assertEqual(('openstack --os-placement-api-version 1.29 trait '
                          'create ' + TRAIT,), one.commands)

    def test_name_that_no_trait_can_have(self):
        """Placement creates none but those that begin with CUSTOM_."""
        one, = self.find(trait='STORAGE_DISK_SDD', a=['h1'])
        self.assertEqual((checks.Code.FAILURE, ()), (one.code, one.commands))
        self.assertIn('Correct the key', one.text)

    def test_placement_that_is_away(self):
        """What else is wrong with traits is reported nevertheless."""
        self.placement.refuse()
        found = aggregate_metadata.isolation(deployment(
            known({'a': {'trait:A': 'required'}, 'b': {'trait:B': 'true'}},
                  a=['h1']), nova=nova('h1'), client=self.client))
        self.assertEqual([True, True], [
            'trait:B' in found[0].text,
            'refused the connection' in found[1].text])

    def test_value_that_nova_ignores(self):
        one, = self.find(value='true', trait='A B', a=['h1'])
        self.assertIn('is not isolated by trait:A B: ', one.text)
        self.assertEqual(("openstack aggregate set --property "
                          "'trait:A B'=required a",), one.commands)


class TestUnread(testtools.TestCase):

    def find(self, metadata, specs=(), host_filters=(), request_filters=(),
             confined=False, isolated=False):
        """Return the text of each finding, and its last line."""
        conf = types.SimpleNamespace(
            scheduler=types.SimpleNamespace(
                limit_tenants_to_placement_aggregate=confined,
                enable_isolated_aggregate_filtering=isolated),
            filter_scheduler=types.SimpleNamespace(
                enabled_filters=['ComputeFilter', *host_filters]),
            aggregate_mirror=types.SimpleNamespace(
                request_filters=[*request_filters]))
        return [(finding.text.partition(' reads ')[2].partition(':')[0],
                 finding.commands[-1])
                for finding in aggregate_metadata.unread_keys(deployment(
                    known({'a': metadata}), conf=conf,
                    extra_specs=frozenset(specs)))]

    def test_tenants(self):
        """A filter of either kind reads them, and nova's own option."""
        metadata = {'filter_tenant_id': 'p', 'filter_tenant_id_2': 'q'}
        self.assertEqual(
            [('filter_tenant_id of aggregate a, filter_tenant_id_2 of '
              'aggregate a', 'enabled_filters = ComputeFilter,'
              'AggregateMultiTenancyIsolation')], self.find(metadata))
        for enabled in ({'confined': True},
                        {'request_filters': ['tenant_isolation']},
                        {'host_filters': ['AggregateMultiTenancyIsolation']}):
            self.assertEqual([], self.find(metadata, **enabled))

    def test_keys_for_two_filters(self):
        """Each finding has the option with both: the last one counts."""
        lines = {line for _text, line in self.find(
            {'filter_tenant_id': 'p', 'instance_type': 'm1'})}
        [line] = lines
        self.assertEqual(3, len(line.split(',')))

    def test_keys_of_flavors_and_images(self):
        """A key that a flavor or an image may have, with any reader."""
        for key, specs in (('ssd', ['ssd']), ('hw_machine_type', []),
                           ('ssd', ['aggregate_instance_extra_specs:ssd']),
                           ('hw_video', ['hw_video'])):
            self.assertNotEqual([], self.find({key: 'x'}, specs), key)
        self.assertEqual([], self.find({'owner': 'us', 'ssd': 'x'}, [
            'hw:cpu_policy', 'capabilities:ssd']))
        self.assertEqual([], self.find(
            {'hw_video': 'x'}, ['hw_video'],
            ['AggregateInstanceExtraSpecsFilter']))

    def test_traits(self):
        """They are for an option."""
        metadata = {'trait:CUSTOM_FAST': 'required'}
        self.assertEqual([], self.find(metadata, isolated=True))
        [(_text, line)] = self.find(metadata)
        self.assertEqual('enable_isolated_aggregate_filtering = true', line)
