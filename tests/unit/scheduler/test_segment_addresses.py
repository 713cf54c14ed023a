# SPDX-License-Identifier: Apache-2.0
"""The segments that are left out, and what is never left out."""

import ipaddress
import logging
import os
import types

import hypothesis
from hypothesis import strategies
from nova import exception as nova_exception
from nova import objects
from oslo_config import cfg
from oslo_utils.fixture import uuidsentinel as uuids

from nova_aggregate_mirror.scheduler import filters
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror.scheduler import segment_addresses
from tests import neutron_service
from tests import placement_service
from tests.scheduling import process
from tests.scheduling import worlds
from tests.unit import servers

NETWORK, OTHER = uuids.network, uuids.other
SEGMENTS = [uuids.left, uuids.middle, uuids.right]
OPTION = 'query_placement_for_routed_network_aggregates'
CASES = int(os.environ.get('AGGREGATE_MIRROR_REQUESTS', 1000))


class AddressesTest(servers.LoopbackTestCase):

    details = True

    def setUp(self):
        super().setUp()
        self.process = self.useFixture(process.SchedulerProcess())
        self.placement = self.useFixture(placement_service.PlacementService())
        self.neutron = self.useFixture(
            neutron_service.NeutronService(self.details))
        self.conf = servers.make_conf(
            auth_type='admin_token', endpoint=self.placement.url,
            token=placement_service.TOKEN)
        self.conf.register_opt(cfg.BoolOpt(OPTION, default=True), 'scheduler')
        self.neutron.configure(self.conf)
        for segment in SEGMENTS:
            self.placement.create_provider(segment, segment)
            self.placement.set_aggregates(segment, [aggregate(segment)])
        self.filter = segment_addresses.SegmentAddresses(self.conf)

    def segment(self, number, free, **values):
        """Create a subnet in a segment of the network, with addresses left."""
        cidr = '10.%d.0.0/29' % len(self.neutron.subnets)
        subnet = self.neutron.subnet(
            values.pop('network', NETWORK), SEGMENTS[number], cidr, **values)
        for address in list(ipaddress.ip_network(cidr).hosts())[1 + free:]:
            self.neutron.port(NETWORK, (subnet, str(address)))
        return subnet

    def asked(self, *networks, required=None, servers=1):
        """Return a request for which nova requires all segments."""
        spec = worlds.request_spec()
        spec.num_instances = servers
        spec.requested_networks = objects.NetworkRequestList(
            objects=list(networks))
        spec.requested_destination = objects.Destination()
        used = {one['segment_id'] for one in self.neutron.subnets}
        for group in required or [[one for one in SEGMENTS if one in used]]:
            spec.requested_destination.require_aggregates(
                [aggregate(one) for one in group])
        return spec

    def left(self, spec):
        """Run the filter; return the segments that are left, by condition."""
        self.filter(None, spec)
        names = {aggregate(one): one for one in SEGMENTS}
        return [{names.get(uuid, uuid) for uuid in one.split(',')}
                for one in spec.requested_destination.aggregates]


def aggregate(segment):
    return getattr(uuids, 'aggregate of %s' % segment)


def host(*segments, servers=0):
    """Return the state of a host in the aggregates of segments."""
    return types.SimpleNamespace(num_instances=servers, aggregates=[
        types.SimpleNamespace(uuid=aggregate(one)) for one in segments])


def network(uuid=NETWORK, **values):
    return objects.NetworkRequest(network_id=uuid, **values)


def port(uuid):
    return objects.NetworkRequest(port_id=uuid)


class TestFilter(AddressesTest):

    def test_full_segment_is_left_out(self):
        """For a network, and for a port without an address.

        Its aggregates are read from placement only once.
        """
        self.segment(0, free=0)
        self.segment(1, free=1)
        for requested in network(), port(self.neutron.port(NETWORK)):
            asked = self.asked(requested)
            self.assertEqual([{SEGMENTS[1]}], self.left(asked))
        self.assertEqual(2, len([one for one in self.placement.requests
                                 if 'aggregates' in one.path]))

    def test_segments_with_addresses(self):
        """They need no request to placement, and nothing is counted."""
        self.segment(0, free=4)
        self.segment(1, free=5)
        spec = self.asked(network(), servers=4)
        self.assertEqual([set(SEGMENTS[:2])], self.left(spec))
        self.assertIsNone(request_spec.get_addresses(spec))
        self.assertEqual(['subnets', 'network-ip-availabilities'],
                         self.neutron.requests)
        self.assertEqual([], self.placement.requests)

    def test_all_segments_are_full(self):
        """The reason names the network and the segments."""
        self.segment(0, free=0)
        self.segment(1, free=0)
        error = self.assertRaises(
            nova_exception.RequestFilterFailed, self.left,
            self.asked(network()))
        for name in (NETWORK, *SEGMENTS[:2]):
            self.assertIn(name, str(error))
        [line] = self.process.logged()
        self.assertIn('explain --server', line)

    def test_room_of_each_segment(self):
        """Ten servers fit into two segments with five addresses each."""
        self.segment(0, free=5)
        self.segment(1, free=5)
        spec = self.asked(network(), servers=10)
        self.assertEqual([set(SEGMENTS[:2])], self.left(spec))
        states = [host(one) for one in SEGMENTS[:2]]
        judge = filters.SegmentAddressesFilter()
        for _server in range(10):
            judge.filter_all(states, spec)[0].num_instances += 1
        self.assertEqual([5, 5], [one.num_instances for one in states])
        self.assertEqual([], judge.filter_all(states, spec))

    def test_servers_requested_together(self):
        """The room that is left decreases with each, also of an open one."""
        self.segment(0, free=2)
        self.segment(1, free=5)
        spec = self.asked(network(), servers=4)
        self.assertEqual([set(SEGMENTS[:2])], self.left(spec))
        left, right, both, apart = states = [
            host(*within, servers=7) for within in (
                SEGMENTS[:1], SEGMENTS[1:2], SEGMENTS[:2], [])]
        judge = filters.SegmentAddressesFilter()
        self.assertEqual(states, judge.filter_all(states, spec))
        left.num_instances += 2
        # The other segment has enough for all.
        self.assertEqual([right, both], judge.filter_all(states, spec))

    def test_servers_requested_together_after_a_change(self):
        """Hosts of a segment with a new aggregate are kept."""
        self.segment(0, free=2)
        self.segment(1, free=5)
        self.left(self.asked(network(), servers=4))
        self.placement.set_aggregates(SEGMENTS[1], [aggregate(SEGMENTS[2])])
        spec = self.asked(network(), servers=4,
                          required=[[SEGMENTS[0], SEGMENTS[2]]])
        self.left(spec)
        full, changed = states = [host(SEGMENTS[0]), host(SEGMENTS[2])]
        judge = filters.SegmentAddressesFilter()
        judge.filter_all(states, spec)
        full.num_instances += 2
        self.assertEqual([changed], judge.filter_all(states, spec))

    def test_addresses_that_a_server_needs(self):
        """One of the same segment for each port that shall get one.

        A requested address may be free although no pool has it. The condition
        for the segment of an address is kept.
        """
        for free, ports, required, left in (
                ((1, 2), lambda _subnet: [
                    network(), port(self.neutron.port(NETWORK))], (), [1]),
                ((1, 0), lambda subnet: [port(self.neutron.port(
                    NETWORK, (subnet, '10.0.0.2')))], [SEGMENTS[:1]], [0]),
                ((0, 0), lambda _subnet: [port(self.neutron.port(
                    NETWORK, ip_allocation='none'))], (), [0, 1]),
                ((0, 0), lambda _subnet: [network(address='10.0.0.7')], (),
                 [0, 1])):
            self.neutron.subnets.clear()
            self.neutron.ports.clear()
            subnet, _other = map(self.segment, (0, 1), free)
            asked = self.asked(*ports(subnet), required=required)
            self.assertEqual([{SEGMENTS[each] for each in left}],
                             self.left(asked))

    def test_conditions_of_others(self):
        """Another network and a zone are kept."""
        self.segment(0, free=0)
        self.segment(1, free=1)
        self.segment(2, free=0, network=OTHER)
        spec = self.asked(network(), required=[
            SEGMENTS[:2], SEGMENTS[2:], [SEGMENTS[0], 'zone']])
        self.assertEqual(
            [{SEGMENTS[1]}, {SEGMENTS[2]},
             {SEGMENTS[0], aggregate('zone')}], self.left(spec))

    def test_network_without_segments(self):
        self.neutron.subnet(NETWORK, '', '10.0.0.0/30')
        spec = self.asked(network(), required=[SEGMENTS[:1]])
        self.assertEqual([set(SEGMENTS[:1])], self.left(spec))
        self.assertEqual(['subnets'], self.neutron.requests)

    def test_segments_that_nova_does_not_require(self):
        """Neutron is not asked without networks, or with nova's option off."""
        self.segment(0, free=0)
        self.assertEqual([{SEGMENTS[0]}], self.left(self.asked()))
        self.conf.set_override(OPTION, False, 'scheduler')
        self.assertEqual([{SEGMENTS[0]}], self.left(self.asked(network())))
        self.assertEqual([], self.neutron.requests)

    def test_aggregates_that_have_changed(self):
        """They are read again once; nothing else is removed."""
        self.segment(0, free=0)
        self.segment(1, free=1)
        self.left(self.asked(network()))
        self.placement.set_aggregates(SEGMENTS[1], [aggregate(SEGMENTS[2])])
        left, middle, right, *_others = SEGMENTS
        for required, kept in ([left, right], right), ([middle], middle):
            spec = self.asked(network(), required=[required])
            self.assertEqual([{kept}], self.left(spec))
        self.assertIn('have changed', self.process.logged(logging.INFO)[-1])


class TestCounts(AddressesTest):
    """What neutron's counts mean, with the extension that has details."""

    def test_subnets_of_a_segment(self):
        """They count together, whichever page of an answer they are on.

        No server gets addresses that are for other services; it is not known
        whether a server is one of those of a zone.
        """
        router, zone = ({'service_types': [service]} for service
                        in ('network:routed', 'compute:east'))
        for subnets, left in (
                ([(0, 0, {}), (0, 1, {}), (1, 0, {})], [0]),
                ([(0, 0, {}), (1, 0, {}), (0, 1, {})], [0]),
                ([(0, 0, {}), (0, 5, router), (1, 1, {})], [1]),
                ([(0, 0, {}), (0, 0, zone), (1, 1, {})], [0, 1])):
            for self.neutron.page in (0, 1):
                self.neutron.subnets.clear()
                self.neutron.ports.clear()
                for number, free, values in subnets:
                    self.segment(number, free, **values)
                self.assertEqual([{SEGMENTS[each] for each in left}],
                                 self.left(self.asked(network())), subnets)

    def test_derived_addresses(self):
        """They cannot run out."""
        self.segment(1, free=1)
        self.neutron.subnet(
            NETWORK, SEGMENTS[0], 'fd00::/126', allocation_pools=[],
            ipv6_address_mode='slaac')
        self.segment(0, free=1)
        self.assertEqual([set(SEGMENTS[:2])], self.left(self.asked(network())))


class TestCountsOfAnOlderNeutron(TestCounts):
    """Without the details it counts the addresses of ports."""

    details = False

    def test_subnet_without_a_pool(self):
        """What neutron has counted is not the number of free addresses."""
        self.segment(0, free=0, allocation_pools=[])
        self.segment(1, free=1)
        self.assertEqual([set(SEGMENTS[:2])], self.left(self.asked(network())))


class TestDoubt(AddressesTest):
    """Segments are left out only if neutron's answer is certain."""

    def setUp(self):
        super().setUp()
        self.subnet = self.segment(0, free=0)
        self.segment(1, free=1)

    def assert_kept(self):
        spec = self.asked(network())
        self.assertEqual([set(SEGMENTS[:2])], self.left(spec))
        self.assertIsNone(request_spec.get_addresses(spec))

    def test_counts_that_cannot_be(self):
        """More addresses used than exist, or a subnet that is not counted."""
        for counts in [], [{'subnet_ip_availability': [{
                'subnet_id': self.subnet, 'total_ips': 5, 'used_ips': 5,
                'ip_availability_details': {
                    'total_ips_in_allocation_pool': 5,
                    'used_ips_in_allocation_pool': 6}}]}]:
            self.neutron.replaced['network-ip-availabilities'] = {
                'network_ip_availabilities': counts}
            self.assert_kept()

    def test_neutron_refuses(self):
        """Neutron does not have the extension, or the role is missing."""
        for status in (403, 404, 500):
            self.neutron.statuses['network-ip-availabilities'] = status
            self.assert_kept()
        self.assertEqual(3, len(self.process.logged(logging.ERROR)))
        self.assertIn('neutron', self.process.logged()[0])

    def test_answer_that_is_not_neutrons(self):
        for body in ({}, [], {'subnets': [{}]}, {'subnets': 'none'}):
            self.neutron.replaced['subnets'] = body
            self.assert_kept()
        self.assertEqual(4, len(self.process.logged(logging.ERROR)))

    def test_placement_is_away(self):
        self.placement.refuse()
        self.assert_kept()

    def test_later_network_that_cannot_be_read(self):
        """The request is as it was, also for the networks before."""
        self.segment(2, free=1, network=OTHER)
        self.placement.fail_with(503, provider=SEGMENTS[2])
        groups = [SEGMENTS[:2], SEGMENTS[2:]]
        self.assertEqual(list(map(set, groups)), self.left(self.asked(
            network(), network(OTHER), required=groups, servers=2)))
        self.assertIn('placement', self.process.logged()[0])

    def test_credentials_are_missing(self):
        self.conf.set_override('auth_type', None, 'neutron')
        self.assert_kept()
        self.assertIn('[neutron] has no auth_type', self.process.logged()[0])


class TestEquivalence(AddressesTest):
    """Random networks, compared with a list of all their addresses."""

    def test_random_networks(self):
        """What is left out has no address, and what is left has."""
        out = self.play(details=True) + self.play(details=False)
        count = sum(map(bool, out))
        print('left out segments in %d of %d networks' % (count, len(out)))
        self.assertGreater(count, CASES / 10)

    def play(self, details):
        self.neutron.details = details
        out = []

        @hypothesis.settings(
            max_examples=CASES // 2, deadline=None, derandomize=True,
            database=None, suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(strategies.data())
        def play(data):
            self.neutron.subnets.clear()
            self.neutron.ports.clear()
            subnet = strategies.tuples(
                strategies.sampled_from(SEGMENTS[:3]),
                strategies.sampled_from([4, 6]))
            subnets = data.draw(strategies.lists(
                subnet, min_size=1, max_size=5))
            free = {}
            for number, (segment, version) in enumerate(subnets):
                free.setdefault((segment, version), 0)
                free[segment, version] += self.create(
                    data, segment, '10.%d.0.0/29' % number if version == 4
                    else 'fd00:%d::/125' % number)
            wanted = data.draw(strategies.integers(1, 3))
            expected = {segment for segment, _version in subnets}
            for (segment, _version), count in free.items():
                if count < wanted:
                    expected.discard(segment)
            spec = self.asked(*[network() for _port in range(wanted)])
            if expected:
                self.assertEqual([expected], self.left(spec))
            else:
                self.assertRaises(nova_exception.RequestFilterFailed,
                                  self.left, spec)
            out.append({segment for segment, _version in subnets} - expected)

        play()
        return out

    def create(self, data, segment, cidr):
        """Create a subnet with ports; return the number of addresses left."""
        hosts = list(ipaddress.ip_network(cidr).hosts())
        number = strategies.sampled_from(range(len(hosts)))
        ends = sorted(data.draw(strategies.lists(
            number, min_size=2, max_size=4, unique=True)))
        ends = ends[:len(ends) // 2 * 2]
        pools, allocated = [], set()
        for first, last in zip(ends[::2], ends[1::2]):
            pools.append({'start': str(hosts[first]), 'end': str(hosts[last])})
            allocated |= {*range(first, last + 1)}
        subnet = self.neutron.subnet(
            NETWORK, segment, cidr, allocation_pools=pools)
        used = data.draw(strategies.sets(number))
        for each in used:
            self.neutron.port(NETWORK, (subnet, str(hosts[each])))
        return len(allocated - used)
