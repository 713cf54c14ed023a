# SPDX-License-Identifier: Apache-2.0
"""Waiting for placement, with a clock of its own."""

import argparse

import testtools

from nova_aggregate_mirror.console import arguments
from nova_aggregate_mirror.console import readiness
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.limits import deadline
from tests.unit import doubles

DOWN = exceptions.ServiceUnreachable('refused')
NOVA_DOWN = exceptions.NovaUnavailable('no answer')


class WaitTest(testtools.TestCase):
    """Host h1 with node n1 is in the aggregates a and b, in nova only."""

    def setUp(self):
        super().setUp()
        self.useFixture(doubles.ShortUUIDs())
        self.log = []
        self.placement = doubles.Placement(self.log)
        self.nova = doubles.Nova(self.log)
        self.nova.hosts_of = {'a': {'h1'}, 'b': {'h1'}, 'c': set()}
        self.nova.nodes = {'n1': 'h1'}
        self.placement.create('n1')
        self.clock = 1000.0
        self.later = {}
        """What happens so many seconds after the start."""
        self.said = []

    def wait(self, *hosts, timeout=10):
        end = self.clock + 2 * timeout

        def sleep(seconds):
            self.assertGreater(seconds, 0)
            self.clock += seconds
            self.assertLess(self.clock, end, 'it never ends')
            for after in sorted(self.later):
                if end - 2 * timeout + after <= self.clock:
                    self.later.pop(after)()

        return readiness.until_mirrored(
            self.nova, self.placement, frozenset(hosts or ['h1']), timeout,
            self.said.append, lambda: self.clock, sleep)

    def mirror(self):
        self.placement.write('n1', {'a', 'b'})


class TestEnd(WaitTest):

    def test_all_is_there(self):
        """It is read once, nova first, and nothing is written."""
        self.mirror()
        done = self.wait()
        self.assertEqual(exit_status.OK, done.status())
        self.assertEqual(
            ['Host h1: placement has it in 2 aggregates after 0 s: '
             'name of a (a), name of b (b)'], done.summary())
        self.assertEqual([], done.faults() + self.said)
        self.assertEqual([('TRUTH', ''), ('GET', 'n1')], self.log[:2])
        self.assertLessEqual({method for method, _what in self.log},
                             {'TRUTH', 'GET'})

    def test_aggregates_come_one_after_the_other(self):
        """What is missing is printed when it changes, not at each attempt."""
        self.later = {3: lambda: self.placement.write('n1', {'a'}),
                      5: self.mirror}
        done = self.wait()
        self.assertEqual(
            ['Host h1 (provider n1) is not in name of a (a), name of b (b)',
             'Host h1 (provider n1) is not in name of b (b)'], self.said)
        self.assertIn('after 5 s', done.summary()[0])
        self.assertEqual(5.0, done.seconds)

    def test_every_node_and_every_host(self):
        """One complete node, or one complete host, is not enough."""
        self.nova.nodes = {'n1': 'h1', 'n2': 'h1', 'n3': 'h2'}
        self.nova.hosts_of['c'].add('h2')
        self.placement.create('n2')
        self.placement.create('n3')
        self.mirror()
        self.later = {2: lambda: self.placement.write('n3', {'c'}),
                      4: lambda: self.placement.write('n2', {'a', 'b'})}
        done = self.wait('h2', 'h1')
        self.assertEqual(
            [('Host h1', True), ('Host h2', True)],
            [(line.partition(':')[0], 'after 4 s' in line)
             for line in done.summary()])

    def test_stale_association(self):
        """It is reported at the end; other aggregates are not nova's."""
        self.placement.write('n1', {'a', 'b', 'c', 'foreign'})
        done = self.wait()
        self.assertEqual(exit_status.OK, done.status())
        self.assertEqual(
            ['Host h1 (provider n1) is also in name of c (c), where nova does '
             'not have it; a full sync with --prune removes that'],
            done.faults())

    def test_node_that_is_deleted_meanwhile(self):
        """Which of its associations are stale is not known."""
        self.placement.write('n1', {'a', 'b', 'c'})

        def read(*arguments, **more):
            truth = doubles.Nova.read(self.nova, *arguments, **more)
            self.nova.nodes = {}
            return truth

        self.nova.read = read
        done = self.wait()
        self.assertEqual(([], exit_status.OK), (done.faults(), done.status()))

    def test_account_that_lacks_a_role(self):
        """It ends at once, with one line."""
        denied = exceptions.Forbidden('answered 403')
        self.placement.broken['GET', 'n1'] = denied
        self.assertIs(denied, self.assertRaises(
            exceptions.Forbidden, self.wait))
        self.nova.broken = errors.Call(
            'nova-api', '', kind=exceptions.NovaUnavailable).error(
                exceptions.Forbidden, 'answered 403')
        self.assertIs(self.nova.broken, self.assertRaises(
            exceptions.NovaUnavailable, self.wait))
        self.assertEqual((1000.0, []), (self.clock, self.said))

    def test_account_that_is_refused(self):
        """It is asked once more, in case of a token that has expired."""
        self.placement.broken['GET', 'n1'] = exceptions.NotAuthorized('401')
        self.assertRaises(exceptions.NotAuthorized, self.wait)
        self.assertEqual(1, len(self.said))
        self.mirror()
        self.later = {1: self.placement.broken.clear}
        self.assertEqual(exit_status.OK, self.wait().status())

    def test_timeout(self):
        """The last attempt is made when the time is over."""
        self.later = {10: self.mirror}
        self.assertEqual(exit_status.OK, self.wait().status())
        self.placement.write('n1', {'a'})
        done = self.wait()
        self.assertEqual(exit_status.DRIFT, done.status())
        self.assertEqual([], done.summary())
        self.assertEqual(
            ['Timeout after 10 s: Host h1 (provider n1) is not in name of b '
             '(b); check that an agent is running, or sync the host'],
            done.faults())

    def test_slow_attempts(self):
        """A pause is as long as the attempt before it, but ends in time."""
        def read(*arguments, **more):
            self.clock += 4
            return doubles.Nova.read(self.nova, *arguments, **more)

        self.nova.read = read
        done = self.wait(timeout=15)
        self.assertEqual([('TRUTH', ''), ('GET', 'n1')] * 3, self.log)
        self.assertEqual(19.0, done.seconds)

    def test_many_lines(self):
        """They are limited, and the rest is counted."""
        self.nova.nodes = {'n%d' % number: 'h1' for number in range(12)}
        done = self.wait()
        self.assertEqual('... and 2 more', self.said[-1])
        self.assertEqual(11, len(done.faults()))


class TestMissing(WaitTest):
    """What a host lacks, before placement can have it everywhere."""

    def ends(self, status, *words):
        done = self.wait()
        self.assertEqual(status, done.status())
        for word in words:
            self.assertIn(word, '\n'.join(done.faults()))

    def test_provider(self):
        """Nova-compute creates it; this may be the wrong placement, too."""
        del self.placement.aggregates['n1']
        self.ends(exit_status.NO_PROVIDER, 'compute node n1 has no resource '
                  'provider yet; restart nova-compute', 'region RegionOne')
        self.later = {2: lambda: self.placement.create('n1', 'a', 'b')}
        self.assertEqual(exit_status.OK, self.wait().status())

    def test_node(self):
        self.nova.nodes = {}
        self.ends(exit_status.NO_NODE,
                  'has no compute node that nova lists; restart ')
        self.later = {2: lambda: self.nova.nodes.update(n1='h1'),
                      3: self.mirror}
        self.assertEqual(exit_status.OK, self.wait().status())

    def test_cell_that_is_down(self):
        """It may have a compute node of the host."""
        self.mirror()
        self.nova.silent = {'h1'}
        self.ends(exit_status.NO_NODE, 'cell cell9: silent')

    def test_mapping(self):
        """The scheduler needs it."""
        self.mirror()
        self.nova.unmapped = {'h1'}
        self.ends(exit_status.NOT_MAPPED, 'no host mapping; run "nova-manage')

    def test_the_lowest_status(self):
        self.nova.unmapped = {'h1'}
        self.ends(exit_status.NOT_MAPPED, 'mapping', 'is not in')


class TestMemberless(WaitTest):

    def test_host_in_no_aggregate(self):
        """It is an error, with advice, long before the timeout."""
        self.nova.nodes['n2'] = 'h2'
        exc = self.assertRaises(
            exceptions.UnknownName, self.wait, 'h1', 'h2', timeout=300)
        self.assertIn('no host h2 in any', str(exc))
        self.assertIn('openstack aggregate add host', str(exc))
        self.assertEqual(1000 + readiness.SETTLE, self.clock)
        self.assertEqual(
            'Host h2 is in no aggregate', '\n'.join(sorted(self.said)[1:]))
        self.assertRaises(exceptions.UnknownName, self.wait, 'h2', timeout=1)

    def test_database_that_lags(self):
        """Nova may show the memberships a little later."""
        self.mirror()
        members = self.nova.hosts_of
        self.nova.hosts_of = {'c': set()}
        self.later = {3: lambda: setattr(self.nova, 'hosts_of', members)}
        self.assertEqual(exit_status.OK, self.wait().status())


class TestErrors(WaitTest):

    def test_placement_that_recovers(self):
        """A retriable error is printed once, whatever its text."""
        self.placement.broken = {('GET', 'n1'): DOWN}
        self.later = {
            2: lambda: self.placement.broken.update(
                {('GET', 'n1'): exceptions.ServiceFailed('503')}),
            4: self.placement.broken.clear, 6: self.mirror}
        self.assertEqual(exit_status.OK, self.wait().status())
        self.assertEqual(
            ['Host h1 (provider n1) could not be read: refused',
             'Host h1 (provider n1) is not in name of a (a), name of b (b)'],
            self.said)

    def test_placement_at_the_end(self):
        """Only the last attempt counts, and one request of it may fail."""
        self.nova.nodes['n2'] = 'h1'
        self.later = {3: lambda: self.placement.broken.update(
            {('GET', 'n1'): DOWN})}
        done = self.wait()
        self.assertEqual(exit_status.NOT_READ, done.status())
        self.assertEqual(
            ['Timeout after 10 s: Host h1 (provider n1) could not be read: '
             'refused'], done.faults())

    def test_placement_that_hangs(self):
        """Each request has a limit, which is shorter at the end."""
        limits = []

        def get(provider):
            limits.append(deadline.remaining())
            raise DOWN

        self.placement.get = get
        self.wait(timeout=40)
        self.assertTrue(
            readiness.LEAST < limits[0] <= readiness.REQUEST, limits)
        self.assertTrue(0 < limits[-1] <= readiness.LEAST, limits)

    def test_nova(self):
        self.mirror()
        self.nova.broken = NOVA_DOWN
        done = self.wait()
        self.assertEqual(exit_status.COULD_NOT_RUN, done.status())
        self.assertEqual(
            ['Timeout after 10 s: Nova could not be read: no answer'],
            done.faults())
        self.later = {2: lambda: setattr(self.nova, 'broken', None)}
        self.assertEqual(exit_status.OK, self.wait().status())

    def test_permanent_error(self):
        """It is raised at once."""
        self.placement.broken = {
            ('GET', 'n1'): exceptions.RequestRejected('400')}
        self.assertRaises(exceptions.RequestRejected, self.wait)
        self.assertEqual(1000.0, self.clock)


class TestArguments(testtools.TestCase):

    def test_timeout(self):
        parse = arguments.number(arguments.LONGEST)
        self.assertEqual([1, 86400], [parse(text) for text in ('1', '86400')])
        for text in '0', '-1', '86401':
            self.assertRaises(argparse.ArgumentTypeError, parse, text)
        for text in 'soon', '1.5', '':
            self.assertRaises(ValueError, parse, text)
