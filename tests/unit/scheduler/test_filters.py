# SPDX-License-Identifier: Apache-2.0
"""The filters of nova-scheduler, and how the guard checks hosts."""

import logging

import fixtures
from nova.conf import CONF
from nova import exception as nova_exception
from nova import objects
from nova.scheduler import filters as nova_filters
from nova.scheduler import host_manager
from nova.scheduler import request_filter
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.scheduler import filters
from tests.scheduling import oracle
from tests.scheduling import process
from tests.scheduling import worlds

ALL_FILTERS = 'nova_aggregate_mirror.scheduler.filters.all_filters'
ROUTED = 'query_placement_for_routed_network_aggregates'
STOCK = 'nova.scheduler.filters.all_filters'


class TestAllFilters(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.process = self.useFixture(process.SchedulerProcess())
        self.process.config(
            enabled_filters=['ComputeFilter', 'AggregateMembershipFilter'],
            group='filter_scheduler')
        self.before = len(request_filter.ALL_REQUEST_FILTERS)

    def added(self):
        return len(request_filter.ALL_REQUEST_FILTERS) - self.before

    def available(self, *lines):
        """Return the filters that nova finds with these option values."""
        found = nova_filters.HostFilterHandler().get_matching_classes(lines)
        return {one.__name__: one for one in found}

    def test_named_beside_nova_or_instead(self):
        """Both configurations give all filters of nova and this package."""
        wanted = self.available(STOCK) | {
            'AggregateMembershipFilter': filters.AggregateMembershipFilter,
            'SegmentAddressesFilter': filters.SegmentAddressesFilter}
        self.assertEqual(wanted, self.available(STOCK, ALL_FILTERS))
        self.assertEqual(wanted, self.available(ALL_FILTERS))
        self.assertEqual(0, self.added())
        self.assertEqual([], self.process.logged(logging.INFO))

    def test_request_filters_are_installed_once(self):
        """After nova's, however often nova creates its host manager."""
        self.process.configure('type_affinity', 'tenant_isolation')
        for _ in range(2):
            self.available(ALL_FILTERS)
        self.assertEqual(1, self.added())
        self.assertEqual(
            ['Requests are narrowed to host aggregates by '
             'nova-aggregate-mirror, request filters: type_affinity, '
             'tenant_isolation'], self.process.logged(logging.INFO))

    def test_nova_without_the_list(self):
        """A nova without the list of request filters is an error."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.request_filter.ALL_REQUEST_FILTERS', ()))
        self.assertRaises(exceptions.UnexpectedNova, filters.install)

    def refusal(self):
        """Return the line with which nova-scheduler refuses to start."""
        stopped = self.assertRaises(SystemExit, filters.all_filters)
        self.assertEqual((1, 0), (stopped.code, self.added()))
        line, = self.process.logged()
        return line

    def test_unknown_request_filter(self):
        """Nova-scheduler does not start with an incomplete isolation."""
        self.process.configure('tenant_isolation', 'tenant_isolatoin')
        self.assertEqual(
            'nova-scheduler does not start: [aggregate_mirror] '
            'request_filters: no entry point in '
            'nova_aggregate_mirror.request_filters is named '
            '"tenant_isolatoin"',
            self.refusal())

    def test_request_filters_of_both_kinds(self):
        """Free addresses are checked before aggregates are added."""
        self.process.configure('tenant_isolation', 'segment_addresses')
        self.available(ALL_FILTERS)
        self.assertEqual(['SegmentAddresses', 'Narrowing'], [
            type(one).__name__ for one
            in request_filter.ALL_REQUEST_FILTERS[self.before:]])

    def test_missing_credentials_of_neutron(self):
        """As for placement's: a warning, then a refusal."""
        self.process.config(group='scheduler', **{ROUTED: True})
        filters.all_filters()
        line, = self.process.logged()
        self.assertIn('cannot query neutron', line)
        self.assertIn('[neutron] has no auth_type', line)
        self.process.config(group='aggregate_mirror',
                            missing_credentials='fail')
        stopped = self.assertRaises(SystemExit, filters.all_filters)
        self.assertEqual(1, stopped.code)
        self.assertIn('nova-scheduler does not start: [neutron] has no '
                      'auth_type', self.process.logged()[-1])

    def test_credentials_that_are_not_needed(self):
        """Nova-scheduler does not query neutron."""
        self.process.config(group='aggregate_mirror',
                            missing_credentials='fail')
        filters.all_filters()
        self.assertEqual([], self.process.logged())

    def test_option_out_of_range(self):
        """The line names the option."""
        path = self.useFixture(fixtures.TempDir()).join('nova.conf')
        with open(path, 'w') as config:
            config.write('[aggregate_mirror]\nmax_member_of_bytes = lots\n')
        CONF(['--config-file', path], project='nova')
        self.addCleanup(CONF.reset)
        self.assertIn('[aggregate_mirror] max_member_of_bytes in ',
                      self.refusal())
        CONF.clear_override('max_member_of_bytes', 'aggregate_mirror')

    def test_isolation_that_no_host_filter_checks(self):
        """Nova-scheduler does not start with any such request filter.

        A query that could not be narrowed would open the isolated hosts.
        """
        for name in oracle.FILTERS:
            self.process.configure(name)
            self.enable('ComputeFilter')
            self.assertEqual(
                'nova-scheduler does not start: no host filter checks the '
                'hosts of the [aggregate_mirror] request_filters %s: add '
                'AggregateMembershipFilter to [filter_scheduler] '
                'enabled_filters' % name, self.refusal())
            self.process.clear()

    def test_isolation_that_a_host_filter_checks(self):
        """It starts with the guard, or with nova's filter of the same kind.

        A full segment has no address for a server, wherever it lands.
        """
        for name, host_filter in (*filter_table.HOST_FILTERS.items(),
                                  ('segment_addresses', 'ComputeFilter')):
            self.process.configure(name)
            self.enable(host_filter)
            filters.all_filters()
        self.process.configure(*oracle.FILTERS)
        self.enable('AggregateMembershipFilter')
        filters.all_filters()
        self.assertEqual([], self.process.logged())

    def enable(self, name):
        self.process.config(enabled_filters=[name], group='filter_scheduler')


class GuardTest(testtools.TestCase):
    """Three hosts: ``a`` in aggregate A, ``b`` in B, ``c`` in none."""

    def setUp(self):
        super().setUp()
        self.process = self.useFixture(process.SchedulerProcess())
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.source.metadata.MetadataSource',
            lambda: self))
        self.asked = []
        self.metadata = {uuids.A: {}, uuids.B: {}}
        self.spec = worlds.request_spec()

    def known(self, some):
        """Return known UUIDs as MetadataSource does."""
        self.asked.append(frozenset(some))
        return frozenset(some) & {uuids.A, uuids.B, uuids.empty}

    def hosts(self):
        states = []
        for name, within in (('a', [uuids.A]), ('b', [uuids.B]), ('c', [])):
            state = host_manager.HostState(name, name, uuids.cell)
            state.aggregates = [
                objects.Aggregate(id=1, uuid=uuid,
                                  metadata=self.metadata[uuid])
                for uuid in within]
            states.append(state)
        return states

    def passing(self, guard=None):
        guard = guard or filters.AggregateMembershipFilter()
        passed = guard.filter_all(iter(self.hosts()), self.spec)
        return ''.join(host.host for host in passed)

    def ask(self, *groups, forbidden=None):
        self.spec.requested_destination = objects.Destination(
            aggregates=[','.join(group) for group in groups],
            forbidden_aggregates=forbidden)


class TestMembership(GuardTest):

    def test_nothing_is_asked(self):
        """Every host passes, and nova's database is not read."""
        self.assertEqual('abc', self.passing())
        self.assertEqual(([], []), (self.asked, self.process.logged()))

    def test_required_aggregates(self):
        """Other hosts that placement offers are refused, with a log line."""
        self.ask([uuids.A, uuids.B])
        self.assertEqual('ab', self.passing())
        self.assertEqual(
            ['Instance %s is not scheduled to c: placement and '
             'nova-scheduler do not have these hosts in the same aggregates. '
             'Placement is reconciled automatically; if this warning persists '
             'for minutes, restart nova-scheduler' % uuids.instance],
            self.process.logged())
        self.ask([uuids.A, uuids.B], [uuids.B])
        self.assertEqual('b', self.passing())

    def test_aggregate_without_members(self):
        """Its UUID belongs to nova, although no host shows it."""
        self.ask([uuids.empty])
        self.assertEqual('', self.passing())
        _strays, nothing = self.process.logged()
        self.assertEqual(
            'Instance %s has no valid host: host aggregates exclude each of '
            'the 3 hosts that placement and earlier filters have left. To '
            'see the reason for each host, run nova-aggregate-mirror-manage '
            'scheduling explain --server %s (for a move: with --for '
            'OPERATION)' % (
                uuids.instance, uuids.instance), nothing)

    def test_set_with_a_foreign_uuid(self):
        """Network segments are left to placement; other sets are checked."""
        self.ask([uuids.A, uuids.segment])
        self.assertEqual('abc', self.passing())
        self.ask([uuids.A, uuids.segment], [uuids.B])
        self.assertEqual('b', self.passing())

    def test_forbidden_aggregates(self):
        """A host in a forbidden aggregate does not pass."""
        self.ask(forbidden={uuids.A, uuids.segment})
        self.assertEqual('bc', self.passing())
        self.assertEqual(1, len(self.process.logged()))

    def test_nova_is_asked_once(self):
        """Aggregates of the hosts are known; others are read, and cached."""
        guard = filters.AggregateMembershipFilter()
        for groups in ([uuids.A],), ([uuids.empty],), ([uuids.empty],):
            self.ask(*groups)
            self.passing(guard)
        self.assertEqual([{uuids.empty}], self.asked)

    def test_nova_cannot_be_asked(self):
        """What no host shows is left to placement, with a log line."""
        def known(some):
            raise exceptions.NovaUnavailable('gone away')

        self.known = known
        self.ask([uuids.A], [uuids.empty])
        self.assertEqual('a', self.passing())
        unknown, strays = self.process.logged()
        self.assertEqual(
            'Instance %s: could not check whether the hosts from placement '
            'are in %s; they are used: gone away' % (
                uuids.instance, uuids.empty), unknown)
        self.assertIn('is not scheduled to b, c:', strays)


class TestRules(GuardTest):

    def setUp(self):
        super().setUp()
        self.process.configure('tenant_isolation', 'image_properties')
        self.metadata[uuids.A]['filter_tenant_id'] = 'tenant-b'
        self.metadata[uuids.B]['hw_machine_type'] = 'q35'
        self.spec = worlds.request_spec(image={'hw_machine_type': 'pc'})

    def test_rules_of_the_request_filters(self):
        """They apply although nothing of them was in the query."""
        self.assertEqual('c', self.passing())
        self.assertEqual([], self.process.logged())

    def test_only_those_that_are_configured(self):
        """The guard alone isolates no host."""
        self.process.configure('image_properties')
        self.assertEqual('ac', self.passing())

    def test_rebuild(self):
        """A server that stays is checked for its new image only."""
        self.spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        self.spec.force_hosts = ['a']
        self.ask([uuids.empty], forbidden={uuids.A})
        self.assertEqual('ac', self.passing())

    def test_rebuild_without_its_host(self):
        """The hint is a user's: all rules apply, also those of nova.

        Nova has run no request filter for it.
        """
        def isolate(context, spec):
            self.assertTrue(context.is_admin)
            self.ask(forbidden={uuids.B})

        self.metadata[uuids.B] = {}
        request_filter.ALL_REQUEST_FILTERS[:] = [isolate]
        self.spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        self.assertEqual('c', self.passing())
        self.assertIn('Instance %s has the scheduler hint _nova_check_type '
                      'from a user' % uuids.instance,
                      self.process.logged()[0])

    def test_request_filter_refuses_such_a_request(self):
        """It has no host then, as without the hint."""
        def refuse(context, spec):
            raise nova_exception.RequestFilterFailed(reason='no such zone')

        request_filter.ALL_REQUEST_FILTERS[:] = [refuse]
        self.spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        self.assertEqual('', self.passing())

    def test_nova_runs_it_where_it_runs_its_own(self):
        """Once per request, and on rebuild, as for image properties."""
        guard = filters.AggregateMembershipFilter()
        self.assertTrue(guard.RUN_ON_REBUILD)
        self.assertEqual([True, False], [
            guard.run_filter_for_index(index) for index in (0, 1)])
