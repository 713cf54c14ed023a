# SPDX-License-Identifier: Apache-2.0
"""Hosts that an explanation finds acceptable, and those that nova chooses.

Random clouds, requests and moves on a real nova and placement. Nova chooses
one host per call, and is called again without that host until it finds none.
"""

import collections
import os

import hypothesis
from hypothesis import strategies as st
from nova import context as nova_context
from nova import objects
from nova.scheduler import manager as nova_manager

from nova_aggregate_mirror.explain import explanation
from tests.scheduling import cloud
from tests.scheduling import explaining

CASES = int(os.environ.get('AGGREGATE_MIRROR_EXPLAINED', 12))
# The same seed gives the same clouds and requests.
SEED = int(os.environ.get('AGGREGATE_MIRROR_SEED', 0))
# For each of these many creations, nova also claims the resources.
CLAIMED = 5
# The operations of the cases, in turn.
OPERATIONS = [operation for move in [*explanation.OPERATIONS][1:]
              for operation in (explanation.CREATE, move)]
TRAIT = 'CUSTOM_FAST'
FLAVORS = {'plain': {}, 'fast': {'trait:' + TRAIT: 'required'},
           'slow': {'trait:' + TRAIT: 'forbidden'}, 'ssd': cloud.SSD}
FILTERS = ('flavor_extra_specs', 'tenant_isolation')
ISOLATED = ('NumInstancesFilter', 'AggregateImagePropertiesIsolation')

HOST = st.fixed_dictionaries({
    'aggregates': st.frozensets(st.integers(0, 2), max_size=2),
    'drifted': st.sampled_from((False, False, False, True)),
    'fast': st.booleans(),
    'full': st.sampled_from((False, False, False, True)),
    'disabled': st.sampled_from((False, False, False, True)),
    'down': st.sampled_from((False, False, False, False, True)),
})
METADATA = st.fixed_dictionaries({}, optional={
    'availability_zone': st.sampled_from(('east', 'west')),
    'ssd': st.sampled_from(('true', 'false')),
    'filter_tenant_id': st.sampled_from(('tenant-a', 'tenant-b')),
    'hw_machine_type': st.sampled_from(('pc', 'q35')),
})
REQUEST = st.fixed_dictionaries({
    'zone': st.sampled_from((None, None, 'east', 'west', 'nova')),
    'project': st.sampled_from(('tenant-a', 'tenant-b', 'tenant-c')),
    'flavor': st.sampled_from(('plain', *FLAVORS)),
    'image': st.sampled_from(({}, {}, {'hw_machine_type': 'pc'})),
})


class EquivalenceTest(explaining.ExplainingTest):

    hosts = ('h1', 'h2', 'h3', 'h4')

    def setUp(self):
        super().setUp()
        self.flags(track_instance_changes=False, group='filter_scheduler')
        flavors = {name: self.flavor(name, **extra_specs)
                   for name, extra_specs in FLAVORS.items()}
        self.aggregates = [self.aggregate('a%d' % number)
                           for number in range(3)]
        self.uuids = list(map(self.uuid, self.aggregates))
        self.set_trait('h1')
        self.servers = {
            operation: self.boot(host='h1', flavor_id=flavors['plain'])['id']
            for operation in ('move', explanation.UNSHELVE)}
        shelved = {'id': self.servers[explanation.UNSHELVE]}
        self.become(shelved, status='ACTIVE')
        self._shelve_server(shelved, 'SHELVED_OFFLOADED')
        self.states = dict.fromkeys(self.hosts, {})
        self.counts = collections.Counter()

    def request(self, wanted):
        if wanted['operation'] == explanation.CREATE:
            return self.described(
                wanted['flavor'], wanted['zone'] or '',
                image={'properties': wanted['image']},
                project=wanted['project'])
        server = self.servers.get(wanted['operation'], self.servers['move'])
        self.store(server, wanted)
        return self.of_server(
            {'id': server}, wanted['operation'], flavor=wanted['flavor']
            if wanted['operation'] == 'resize' else '',
            image={'properties': wanted['image']})

    def store(self, server, wanted):
        """Change the request of a server that nova has stored."""
        spec = objects.RequestSpec.get_by_instance_uuid(self.context, server)
        spec.availability_zone = wanted['zone']
        spec.project_id = wanted['project']
        spec.flavor = objects.Flavor.get_by_name(
            self.context, wanted['flavor'])
        spec.image = objects.ImageMeta.from_dict(
            {'properties': wanted['image']})
        spec.save()

    def compare(self):
        """Compare for many worlds, the same in every run."""
        @hypothesis.seed(SEED)
        @hypothesis.settings(
            max_examples=CASES, deadline=None, database=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(
            hosts=st.fixed_dictionaries(dict.fromkeys(self.hosts, HOST)),
            metadata=st.lists(METADATA, min_size=3, max_size=3),
            wanted=REQUEST)
        def one(hosts, metadata, wanted):
            self.become_world(hosts, metadata)
            # Nova-api refuses a zone without an enabled nova-compute.
            if {wanted['zone']} not in [
                    {metadata[number]['availability_zone']
                     for number in host['aggregates']
                     if 'availability_zone' in metadata[number]} or {'nova'}
                    for host in hosts.values() if not host['disabled']]:
                wanted = {**wanted, 'zone': None}
            self.compare_once(wanted)

        one()
        print('%s: %s' % (self.id().rpartition('.')[2], dict(self.counts)))
        self.assertGreater(self.counts['some hosts'], CASES / 10)

    def compare_once(self, wanted):
        wanted['operation'] = OPERATIONS[
            self.counts.total() // 2 % len(OPERATIONS)]
        found = self.compared(lambda: self.request(wanted)).acceptable
        self.counts['all hosts' if len(found) == len(self.hosts) else
                    'some hosts' if found else 'no host'] += 1
        self.counts[wanted['operation']] += 1
        if (wanted['operation'] == explanation.CREATE
                and self.counts[explanation.CREATE] % CLAIMED == 0):
            self.assertEqual(bool(found), self.claims(wanted))

    def claims(self, wanted):
        """Let nova claim the resources; return whether it finds a host."""
        spec = self.request(wanted).spec
        spec.user_id = 'user'
        scheduler = nova_manager.SchedulerManager()
        if not self.select(scheduler, spec, return_objects=True,
                           instance_uuids=[spec.instance_uuid]):
            return False
        scheduler.placement_client.delete_allocation_for_instance(
            self.context, spec.instance_uuid, force=True)
        return True

    def become_world(self, hosts, metadata):
        """Change nova and placement to these hosts and aggregates."""
        for number, wanted in zip(self.aggregates, metadata):
            found = objects.Aggregate.get_by_id(self.context, number)
            found.update_metadata({
                **dict.fromkeys(found.metadata.keys() - wanted), **wanted})
            members = {host for host, one in hosts.items()
                       if self.aggregates.index(number) in one['aggregates']}
            for host in members - set(found.hosts):
                found.add_host(host)
            for host in set(found.hosts) - members:
                found.delete_host(host)
        for host, one in hosts.items():
            self.become_host(host, one)

    def become_host(self, host, wanted):
        """Change what differs from the world before."""
        before, self.states[host] = self.states[host], wanted

        def changed(*names):
            return any(before.get(name) != wanted[name] for name in names)

        if changed('aggregates', 'drifted'):
            self.set_aggregates(host, *(
                uuid for number, uuid in enumerate(self.uuids)
                if (number in wanted['aggregates']) != (
                    wanted['drifted'] and number == 0)))
        if changed('full'):
            self.reserve(host, 'VCPU', None if wanted['full'] else 0)
        if changed('fast', 'disabled'):
            self._put(host, 'traits', traits=[
                'OWNER_NOVA', *[TRAIT] * wanted['fast'],
                *['COMPUTE_STATUS_DISABLED'] * wanted['disabled']])
        if changed('disabled', 'down'):
            with nova_context.target_cell(
                    self.context, self.cell_mappings['cell1']) as cell:
                service = objects.Service.get_by_compute_host(cell, host)
                service.disabled = wanted['disabled']
                service.forced_down = wanted['down']
                service.save()


class TestWithoutFilters(EquivalenceTest):

    def test_nova_chooses_what_is_acceptable(self):
        """With nova's request filters only."""
        self.compare()


class TestWithFilters(EquivalenceTest):

    request_filters = FILTERS
    host_filters = (cloud.GUARD, *ISOLATED)

    def test_nova_chooses_what_is_acceptable(self):
        """With request filters of this package, the guard and more filters."""
        self.compare()
