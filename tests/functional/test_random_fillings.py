# SPDX-License-Identifier: Apache-2.0
"""Random clouds, of which a host is emptied and a zone filled as predicted."""

import random

from nova.conf import CONF
from nova.tests.functional.api import client
import testscenarios

from nova_aggregate_mirror.explain import departures
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.scheduler import moving
from tests.functional import test_fillings

CASES = 2
# How many VCPUs a host has.
VCPUS = 10
# Actions on servers, and the status that follows.
ACTIONS = {'os-stop': 'SHUTOFF', 'suspend': 'SUSPENDED'}


class TestRandom(testscenarios.WithScenarios, test_fillings.FillingTest):

    scenarios = [(str(seed), {'seed': seed}) for seed in range(CASES)]
    hosts = ('h1', 'h2', 'h3', 'h4', 'h5')
    host_filters = ('DifferentHostFilter', 'AggregateMultiTenancyIsolation')

    def start_service(self, name, *args, **options):
        """Use nova's weighers, too: a move changes the weights."""
        if name == 'scheduler':
            self.flags(group='filter_scheduler', weight_classes=[
                *CONF.filter_scheduler.weight_classes,
                'nova.scheduler.weights.all_weighers'])
        return super().start_service(name, *args, **options)

    def setUp(self):
        super().setUp()
        self.flags(cores=-1, instances=-1, group='quota')
        choice = self.choice = random.Random(self.seed)
        others = choice.sample(self.hosts[1:], 4)
        self.zones = {'near': ['h1', *others[:2]], 'far': others[2:]}
        for zone, hosts in self.zones.items():
            self.aggregate(zone, hosts, availability_zone=zone)
        self.flavors = {}
        for name in 'first', 'second', 'third':
            vcpus, memory = choice.randint(1, 3), choice.choice((64, 128, 256))
            self.flavors[name] = self.flavor(name, memory, vcpus), vcpus
        self.used = dict.fromkeys(self.hosts, 0)

    def some(self, share):
        return [host for host in self.hosts[1:]
                if self.choice.random() < share]

    def fill(self, host, hints):
        """Create a server on a host; return its ID."""
        # A server that is forced to a host passes no filter there.
        forced = 'different_host' in hints or self.choice.random() < 0.5
        [zone] = [zone for zone, hosts in self.zones.items() if host in hosts]
        flavor, vcpus = self.choice.choice(list(self.flavors.values()))
        request = self._build_server(
            flavor_id=flavor, networks='none', host=None if forced else host,
            az='%s:%s' % (zone, host) if forced else None)
        server = self.admin_api.post_server({
            'server': request, 'os:scheduler_hints': hints})
        self.become(server, status='ACTIVE')
        self.used[host] += vcpus
        return server['id']

    def hint(self, policy):
        """Create a server group; return the hint to be in it."""
        group = self.admin_api.post_server_groups(
            {'name': policy, 'policy': policy})
        return {'group': group['id']}

    def populate(self):
        """Create servers on all hosts, and change the state of some."""
        apart, soft = map(self.hint, ('anti-affinity', 'soft-anti-affinity'))
        # An anti-affinity group has one server on each of these hosts.
        for host in ('h1', *self.some(0.4)):
            self.fill(host, apart)
        hints = [{}, {}, soft]
        for host in self.choice.choices(self.hosts, k=4) + ['h1'] * 3:
            if self.used[host] > VCPUS - 3:
                continue
            server = self.fill(host, self.choice.choice(hints))
            hints.append({'different_host': server})
            action = self.choice.choice(['', '', '', *ACTIONS])
            if host == 'h1' and action:
                self.admin_api.post_server_action(server, {action: None})
                self.become({'id': server}, status=ACTIONS[action])

    def confine(self):
        """Isolate and weigh some hosts, and leave little room on each."""
        self.aggregate('others', self.some(0.2), filter_tenant_id='other')
        weigher = self.choice.choice(('ram', 'cpu'))
        self.aggregate('weighed', self.some(0.5), **{
            weigher + '_weight_multiplier': self.choice.choice(
                ('-1.0', '3.0'))})
        for host in self.hosts:
            room = self.used[host] + self.choice.randint(1, 5)
            found = self._inventories(host)
            # Nova-compute keeps it.
            found['VCPU']['allocation_ratio'] = (room + 0.01) / VCPUS
            self._put(host, 'inventories', inventories=found)
        self._run_periodics()

    def test_emptied_and_filled(self):
        """Each move, and how many more servers fit, are as predicted."""
        self.populate()
        self.confine()
        operation = self.choice.choice(('', moving.COLD))
        for row in self.predicted(operation, 'size'):
            if row.kind != departures.NOT_MOVABLE:
                self.moved(row)
                continue
            action, *_names = test_fillings.ACTIONS[operation or moving.LIVE]
            self.assertRaises(
                client.OpenStackApiException,
                self.admin_api.post_server_action, row.server, action)
        zone, name = map(self.choice.choice, (
            list(self.zones), list(self.flavors)))
        count = self.explain(self.described(
            name, zone, count=explanation.MAX_SERVERS)).count
        flavor, created = self.flavors[name][0], 0
        while self.boot(flavor_id=flavor, az=zone)['status'] == 'ACTIVE':
            created += 1
        self.assertEqual(count, created)
