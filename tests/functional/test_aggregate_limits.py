# SPDX-License-Identifier: Apache-2.0
"""Nova's limits and weights of an aggregate, with and without this package.

Nova-scheduler reads them from its own copy of the aggregates, on the hosts
that placement has returned.
"""

from nova.scheduler.weights import cpu
import testscenarios

from tests.scheduling import cloud

load_tests = testscenarios.load_tests_apply_scenarios

HOST = 'OS-EXT-SRV-ATTR:host'
FIRST, SECOND, OTHER = 'first', 'second', 'other'


class LimitsTest(testscenarios.WithScenarios, cloud.CloudTest):

    scenarios = [
        ('stock', {'request_filters': (),
                   'extra': ('AggregateInstanceExtraSpecsFilter',)}),
        ('narrowed', {'request_filters': ('flavor_extra_specs',),
                      'extra': (cloud.GUARD,)})]
    hosts = (FIRST, SECOND, OTHER)
    limit = ''

    def setUp(self):
        self.host_filters = (*self.extra, *((self.limit,) * bool(self.limit)))
        super().setUp()
        self.wanted = self.flavor(**cloud.SSD)

    def lands(self):
        """Boot a server; return its host, or None."""
        return self.boot(flavor_id=self.wanted)[HOST]


class TestInstances(LimitsTest):

    limit = 'AggregateNumInstancesFilter'

    def test_limit(self):
        """Each host of the aggregate gets one server, and no third is made."""
        self.aggregate('fast', [FIRST, SECOND], ssd='true',
                       max_instances_per_host='1')
        self.assertEqual([FIRST, SECOND, None],
                         [self.lands() for _server in range(3)])


class TestIoOps(LimitsTest):

    limit = 'AggregateIoOpsFilter'

    def test_limit(self):
        """The hosts of an aggregate that allows no operation are left out."""
        self.aggregate('fast', [FIRST, SECOND], ssd='true')
        self.aggregate('busy', [FIRST], max_io_ops_per_host='0')
        self.assertEqual(SECOND, self.lands())


class TestWeights(LimitsTest):

    def test_multiplier(self):
        """A negative multiplier fills one host of the aggregate first."""
        self.scheduler_service.manager.host_manager.weighers = [
            cpu.CPUWeigher()]
        number = self.aggregate('fast', [FIRST, SECOND], ssd='true')
        spread = {self.lands(), self.lands()}
        self.assertEqual({FIRST, SECOND}, spread)
        filled = self.lands()
        self.admin_api.post_aggregate_action(number, {'set_metadata': {
            'metadata': {'cpu_weight_multiplier': '-1.0'}}})
        self.assertEqual([filled, filled], [self.lands(), self.lands()])
