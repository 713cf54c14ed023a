# SPDX-License-Identifier: Apache-2.0
"""The available request filters, their options, and what they add."""

from nova.conf import CONF
from nova.conf import scheduler as scheduler_conf
from nova import exception as nova_exception
from nova import objects
from nova.scheduler.filters import extra_specs_ops
from oslo_utils.fixture import uuidsentinel as uuids
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import request_filters
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror.source import keyed_aggregates
from tests.scheduling import process
from tests.scheduling import worlds


FAST = {'aggregate_instance_extra_specs:ssd': 'true'}


class TestRequestFilters(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.process = self.useFixture(process.SchedulerProcess())

    def load(self, *names):
        self.process.configure(*names)
        return request_filters.load(CONF)[0]

    def keys(self, name, **asked):
        request_filter, = self.load(name)
        return request_filter.keys(request_spec.request(
            worlds.request_spec(**asked)))

    def test_order_of_the_option(self):
        """A name given twice counts once."""
        self.assertEqual(
            ['TypeAffinity', 'FlavorExtraSpecs'],
            [type(one).__name__ for one in self.load(
                'type_affinity', 'flavor_extra_specs', 'type_affinity')])

    def test_another_default_zone(self):
        """The option is nova's."""
        self.process.config(default_availability_zone='somewhere')
        self.assertTrue(self.keys('default_availability_zone',
                                  zone='somewhere'))

    def test_nova_without_the_namespace(self):
        """A nova that has removed the two options compares all keys."""
        for option in scheduler_conf.filter_scheduler_opts:
            if option.dest.startswith('aggregate_image_properties_isolation_'):
                CONF.unregister_opt(option, 'filter_scheduler')
                self.addCleanup(CONF.register_opt, option, 'filter_scheduler')
        self.assertEqual(
            keyed_aggregates.Keys(frozenset({'hw_vif_model'})),
            self.keys('image_properties', image={'hw_vif_model': 'virtio'}))


class TestFlavorExtraSpecs(testtools.TestCase):

    def matching(self, wanted, metadata):
        """Return the matching aggregates of each extra spec."""
        return [rule.matching for rule in request_filters.FlavorExtraSpecs(
            CONF).rules(constraints.ServerRequest('p', 'f', wanted, {}, ''),
                        metadata)]

    def test_values_for_which_the_filter_of_nova_would_raise(self):
        """Text that is no number, or no operand, matches nothing."""
        for value, wanted, error, matching in (
                ('many', '>= 8', ValueError, {'16'}),
                ('8', '<or>', IndexError, set())):
            self.assertRaises(error, extra_specs_ops.match, value, wanted)
            self.assertEqual([matching], self.matching({'cpu': wanted}, {
                value: {'cpu': value}, '16': {'cpu': '16'}}))


class Source:
    """A metadata source that counts its reads."""

    def __init__(self, **aggregates):
        self.aggregates = {
            getattr(uuids, name): has for name, has in aggregates.items()}
        self.reads = []
        self.error = None

    def read(self, keys):
        self.reads.append(keys)
        if self.error:
            raise self.error
        return self.aggregates

    def overlaps(self, aggregates):
        self.reads.append(aggregates)
        return frozenset()


class NarrowingTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.process = self.useFixture(process.SchedulerProcess())
        self.source = Source(fast={'ssd': 'true'}, slow={'ssd': 'false'},
                             theirs={'filter_tenant_id': 'tenant-b'})

    def narrow(self, spec, *names, budget=65536):
        self.process.configure(*names)
        narrow = request_filters.Narrowing(
            request_filters.load(CONF)[0], self.source, budget)
        return narrow(None, spec)


class TestNarrowing(NarrowingTest):

    def test_all_filters_in_one_query(self):
        """Several filters extend nova's query after a single read."""
        spec = worlds.request_spec(extra_specs=FAST)
        spec.requested_destination = objects.Destination(
            host='host1', aggregates=[uuids.zone],
            forbidden_aggregates={uuids.isolated})
        self.assertTrue(self.narrow(spec, 'flavor_extra_specs',
                                    'tenant_isolation'))
        destination = spec.requested_destination
        self.assertEqual(
            ('host1', [uuids.zone, uuids.fast],
             {uuids.isolated, uuids.theirs}),
            (destination.host, destination.aggregates,
             destination.forbidden_aggregates))
        self.assertEqual(1, len(self.source.reads))

    def test_keys_concerned_are_read(self):
        """Pairs are read only for a rule that has two sides."""
        keys = keyed_aggregates.Keys(
            frozenset({'ssd'}), frozenset({'filter_tenant_id'}))
        for project, reads in (('tenant-a', [keys]),
                               ('tenant-b', [keys, {uuids.theirs}])):
            del self.source.reads[:]
            self.narrow(
                worlds.request_spec(extra_specs=FAST, project=project),
                'flavor_extra_specs', 'tenant_isolation')
            self.assertEqual(reads, self.source.reads)

    def test_request_that_is_not_concerned(self):
        """It is unchanged, and nothing is read for one that asks nothing."""
        for requested, names, reads in (
                ({'extra_specs': {'hw:cpu_policy': 'shared'}}, [
                    'flavor_extra_specs', 'image_properties',
                    'default_availability_zone'], 0),
                ({'project': 'tenant-b'}, [
                    'tenant_isolation', 'type_affinity'], 2)):
            spec = worlds.request_spec(**requested)
            self.assertFalse(self.narrow(spec, *names))
            self.assertIsNone(spec.requested_destination)
            self.assertEqual(reads, len(self.source.reads))

    def test_no_aggregate_for_a_key(self):
        """The error that ends the request names the key."""
        error = self.assertRaises(
            nova_exception.RequestFilterFailed, self.narrow,
            worlds.request_spec(extra_specs={
                'aggregate_instance_extra_specs:gpu': 'true'}),
            'flavor_extra_specs')
        self.assertIn('aggregate_instance_extra_specs:gpu', error.message)
        self.assertEqual(
            ["Instance %s has no valid host: no host aggregate matches the "
             "flavor's extra spec aggregate_instance_extra_specs:gpu. To see "
             'the reason for each host, run nova-aggregate-mirror-manage '
             'scheduling explain --server %s (for a move: with --for '
             'OPERATION)' % (
                 uuids.instance, uuids.instance)], self.process.logged())


class TestForcedHosts(NarrowingTest):

    def narrowed(self, **forced):
        spec = worlds.request_spec(extra_specs=FAST)
        for field, value in forced.items():
            setattr(spec, field, value)
        return self.narrow(spec, 'flavor_extra_specs')

    def test_forced_host_and_node(self):
        """Nova's host filters skip forced hosts, so narrowing does, too."""
        self.assertFalse(self.narrowed(force_hosts=['host1']))
        self.assertFalse(self.narrowed(force_nodes=['node1']))
        self.assertEqual([], self.source.reads)
        # But not a host that nova only checks. Hints may be unset.
        self.assertTrue(self.narrowed(
            force_hosts=['host1'],
            scheduler_hints={'_nova_check_type': ['rebuild']}))
        self.assertTrue(self.narrowed(scheduler_hints=None, force_hosts=[]))


class TestFailure(NarrowingTest):
    """Nova catches only RequestFilterFailed: other errors end a request."""

    def test_metadata_cannot_be_read(self):
        """Any error is logged once, and the query is unchanged."""
        line = 'A request is not narrowed to aggregates'
        for self.source.error, logged in (
                (exceptions.NovaUnavailable('gone away'),
                 [line + ': gone away']),
                (ZeroDivisionError('why'), [line])):
            spec = worlds.request_spec(extra_specs=FAST)
            self.process.clear()
            self.assertFalse(self.narrow(spec, 'flavor_extra_specs'))
            self.assertIsNone(spec.requested_destination)
            self.assertEqual(logged, self.process.logged())

    def test_request_without_its_fields(self):
        """A conductor of another release may send any fields."""
        spec = objects.RequestSpec(flavor=objects.Flavor(
            name='m1.small', vcpus=1, memory_mb=64, root_gb=1, ephemeral_gb=0,
            swap=0))
        self.assertTrue(self.narrow(spec, *sorted(worlds.KEYS)))
        self.assertEqual(
            {uuids.theirs}, spec.requested_destination.forbidden_aggregates)

    def test_budget_is_too_small(self):
        """It is logged once, with the option; what fits is added."""
        spec = worlds.request_spec(extra_specs=FAST)
        self.process.configure('flavor_extra_specs', 'tenant_isolation')
        fast = constraints.MemberOf((frozenset({uuids.fast}),))
        budget = fast.size()
        narrow = request_filters.Narrowing(
            request_filters.load(CONF)[0], self.source, budget)
        for _ in range(2):
            narrow(None, spec)
        self.assertEqual(fast, request_spec.member_of(spec))
        warning, = self.process.logged()
        self.assertIn('[aggregate_mirror] max_member_of_bytes = %d' % budget,
                      warning)
