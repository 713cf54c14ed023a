# SPDX-License-Identifier: Apache-2.0
"""Findings about request filters, host filters and sharing providers."""

from importlib import metadata
import types

import fixtures
from nova.conf import scheduler as nova_options
from nova.scheduler import filters
from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import scheduler
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.scheduler import filter_table
from tests import placement_service
from tests.unit import doubles
from tests.unit import servers

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
        return scheduler.filters(types.SimpleNamespace(conf=self.conf))

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
            (checks.Code.WARNING, ('[filter_scheduler]', 'enabled_filters = '
             + ','.join([*self.enabled, GUARD, COUNTING]))),
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
            'broken', 'no.such.module:Filter', scheduler.NAMESPACE)
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
        line = 'enabled_filters = ' + ','.join(
            [*self.enabled, COUNTING, GUARD])
        for name in sorted({*NAMES} - {'segment_addresses'}):
            self.assert_failure(
                self.find(name, enabled=(COUNTING,)),
                'No host filter checks the hosts for %s: nova-scheduler does '
                'not start.' % name, '[filter_scheduler]', line)

    def test_both_host_filters_are_missing(self):
        """Each finding prints the line with both."""
        self.conf.set_override(ROUTED, True, 'scheduler')
        line = 'enabled_filters = ' + ','.join(
            [*self.enabled, GUARD, COUNTING])
        self.assertEqual([('[filter_scheduler]', line)] * 2, [
            one.commands
            for one in self.find('segment_addresses', enabled=())])

    def test_guard_is_missing(self):
        """Nova has host filters for all rules but zones."""
        one, = self.find('flavor_extra_specs', enabled=(EXTRA_SPECS,))
        self.assertEqual(checks.Code.WARNING, one.code)
        self.assertIn('only placement checks availability zones', one.text)
        self.assertEqual('enabled_filters = ' + ','.join(
            [*self.enabled, EXTRA_SPECS, GUARD]), one.commands[1])


class TestSharing(servers.LoopbackTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.placement = self.useFixture(placement_service.PlacementService())
        self.client = client.Client(servers.make_conf(
            auth_type='admin_token', endpoint=self.placement.url,
            token=placement_service.TOKEN))
        self.nova = doubles.Nova([])
        self.nova.hosts_of = {AGGREGATE: {'h1'}, OTHER: {'h2'}}
        self.placement.create_provider(PROVIDER, 'store')

    def find(self) -> checks.Findings:
        return scheduler.sharing(types.SimpleNamespace(
            source=self.nova, client=self.client))

    def test_none_shares(self):
        """There is no finding without a sharing provider."""
        self.placement.create_provider(uuidutils.generate_uuid(), 'node')
        self.assertEqual([], self.find())

    def test_outside_of_an_aggregate(self):
        """The remedy is a command; in all aggregates it is no finding."""
        self.placement.set_traits(PROVIDER, 'MISC_SHARES_VIA_AGGREGATE')
        self.placement.set_aggregates(PROVIDER, [AGGREGATE])
        one, = self.find()
        self.assertEqual(checks.Code.WARNING, one.code)
        self.assertIn(PROVIDER, one.text)
        command, = one.commands
        self.assertTrue(command.startswith(
            'openstack --os-placement-api-version 1.29 resource provider '
            'aggregate set '), command)
        self.assertTrue(command.endswith(' ' + PROVIDER))
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

    def test_placement_or_nova_away(self):
        """Without their answer the check has no finding of its own."""
        self.placement.refuse()
        self.assertRaises(exceptions.ServiceUnreachable, self.find)
        self.placement.recover()
        self.nova.broken = exceptions.NovaUnavailable('gone')
        self.assertRaises(exceptions.NovaUnavailable, self.find)
