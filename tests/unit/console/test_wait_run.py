# SPDX-License-Identifier: Apache-2.0
"""Waiting for placement, with a clock of its own."""

import argparse
import contextlib
import io

import fixtures
import testtools

from nova_aggregate_mirror import causes
from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror.console import wait_run
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.limits import deadline
from tests.unit import doubles

DOWN = exceptions.ServiceUnreachable(
    'refused the connection', 'placement', step='start it')
SILENT = exceptions.DeadlineExceeded('was silent', 'placement')
NOVA_DOWN = exceptions.NovaUnavailable('did not answer', 'nova\'s database')
ENDED = 'Timeout after 10 s'


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
        self.out, self.err = [], []
        """The lines on standard output and on standard error."""

    def wait(self, *hosts, timeout=10):
        """Wait, and return the exit status."""
        end = self.clock + 2 * timeout

        def sleep(seconds):
            self.assertGreater(seconds, 0)
            self.clock += seconds
            self.assertLess(self.clock, end, 'it never ends')
            for after in sorted(self.later):
                if end - 2 * timeout + after <= self.clock:
                    self.later.pop(after)()

        out, err = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(out), \
                    contextlib.redirect_stderr(err):
                return wait_run.run(
                    self.nova, self.placement, frozenset(hosts or ['h1']),
                    timeout, 'sync --host', now=lambda: self.clock,
                    sleep=sleep)
        finally:
            self.out = out.getvalue().splitlines()
            self.err = err.getvalue().splitlines()

    def mirror(self):
        self.placement.write('n1', {'a', 'b'})

    def lose_provider(self):
        """Delete the provider of the host, but not that of another."""
        del self.placement.aggregates['n1']
        self.nova.nodes['n2'] = 'h2'
        self.placement.create('n2')

    def slow_nova(self, seconds):
        """Let each read of nova take so long."""
        def read(*arguments, **more):
            self.clock += seconds
            return doubles.Nova.read(self.nova, *arguments, **more)

        self.nova.read = read


class TestRequests(WaitTest):

    def add_aggregates(self, count):
        self.nova.hosts_of = {'a%d' % number: {'h1'}
                              for number in range(count)}

    def test_each_node_once(self):
        """An attempt is a GET for each node, whatever the aggregates.

        Nova is read once, after them, so that nothing is missing that was
        changed before; it is read before the first attempt, too.
        """
        self.nova.nodes['n2'] = 'h1'
        self.placement.create('n2')
        nodes = [('GET', 'n1'), ('GET', 'n2')]
        for aggregates in 1, 400:
            self.log.clear()
            self.add_aggregates(aggregates)
            self.assertEqual(exit_status.DRIFT, self.wait(timeout=2))
            self.assertEqual(
                [('TRUTH', ''), *3 * [*nodes, ('TRUTH', '')]], self.log)

    def test_node_without_provider(self):
        """It is asked about in each attempt, too.

        At the end, placement is compared with all of nova, and the name of
        the provider is looked up.
        """
        self.lose_provider()
        self.wait(timeout=1)
        self.assertEqual([
            ('TRUTH', ''), *2 * [('GET', 'n1'), ('TRUTH', '')], ('ALL', ''),
            ('TRUTH', ''), ('NAMED', 'name of h1')], self.log)

    def test_placement_that_is_down(self):
        """Nova is read first, as long as there was no answer."""
        self.placement.broken = {('GET', 'n1'): DOWN, ('PROBE', ''): DOWN}
        self.wait(timeout=1)
        self.assertEqual(2 * [
            ('TRUTH', ''), ('GET', 'n1'), ('PROBE', '')], self.log)


class TestEnd(WaitTest):

    def test_aggregates_come_one_after_the_other(self):
        """What is missing is printed when it changes, not at each attempt."""
        self.nova.hosts_of['c'].add('h1')
        self.placement.write('n1', {'b', 'c'})
        self.later = {3: lambda: self.placement.write('n1', {'a', 'b'}),
                      5: lambda: self.placement.write('n1', {'a', 'b', 'c'})}
        self.assertEqual(exit_status.OK, self.wait())
        self.assertEqual(
            ['Missing: host h1 (provider n1): aggregate name of a (a)',
             'Missing: host h1 (provider n1): aggregate name of c (c)'],
            self.err)
        self.assertEqual(
            ['Host h1: placement has it in 3 aggregates after 5 s: '
             'name of a (a), name of b (b), name of c (c)'], self.out)

    def test_every_node_and_every_host(self):
        """One complete node, or one complete host, is not enough."""
        self.nova.nodes = {'n1': 'h1', 'n2': 'h1', 'n3': 'h2'}
        self.nova.hosts_of['c'].add('h2')
        self.placement.create('n2')
        self.placement.create('n3')
        self.mirror()
        self.later = {2: lambda: self.placement.write('n3', {'c'}),
                      4: lambda: self.placement.write('n2', {'a', 'b'})}
        self.wait('h2', 'h1')
        self.assertEqual(
            [('Host h1', True), ('Host h2', True)],
            [(line.partition(':')[0], 'after 4 s' in line)
             for line in self.out])

    def test_membership_that_is_added_meanwhile(self):
        """It counts, even if placement was asked before."""
        self.mirror()
        get = self.placement.get

        def add(provider):
            answer = get(provider)
            self.nova.hosts_of['c'].add('h1')
            return answer

        self.placement.get = add
        self.assertEqual(exit_status.DRIFT, self.wait())

    def test_stale_association(self):
        """It is reported at the end; other aggregates are not nova's."""
        self.placement.write('n1', {'a', 'b', 'c', 'foreign'})
        self.assertEqual(exit_status.OK, self.wait())
        self.assertEqual(
            ['Stale: host h1 (provider n1): aggregate name of c (c): run a '
             'full sync with --prune'], self.err)

    def test_node_that_is_deleted_meanwhile(self):
        """It is searched for once, in a cell that is down as well."""
        self.nova.nodes['n2'] = 'h1'
        self.placement.create('n2', 'a')
        self.mirror()
        self.nova.silent = {'elsewhere'}
        self.later = {2: lambda: self.nova.nodes.pop('n2')}
        self.assertEqual(exit_status.OK, self.wait())
        self.assertIn('after 3 s', *self.out)
        self.assertEqual(
            ['Missing: host h1 (provider n2): aggregate name of b (b)',
             'Provider n2 is not compared: %s' % doubles.SILENT],
            self.err)

    def test_error_that_ends_it(self):
        """At once, with one line; a token that expired was renewed before."""
        for error in (exceptions.NotAuthorized('403', kind=causes.ROLE.kind),
                      exceptions.NotAuthorized('401'),
                      exceptions.RequestRejected('400')):
            self.placement.broken['GET', 'n1'] = error
            self.assertIs(error, self.assertRaises(type(error), self.wait))
        self.nova.broken = errors.Call(
            lambda: causes.openstack_client('nova-api'), '',
            kind=exceptions.NovaUnavailable).error(
                exceptions.NotAuthorized,
                causes.ROLE.with_detail('answered 403'))
        self.assertIs(self.nova.broken, self.assertRaises(
            exceptions.NovaUnavailable, self.wait))
        self.assertEqual((1000.0, []), (self.clock, self.err))

    def test_timeout(self):
        """The last attempt is made when the time is over."""
        self.later = {10: self.mirror}
        self.assertEqual(exit_status.OK, self.wait())
        self.placement.write('n1', {'a'})
        self.assertEqual(exit_status.DRIFT, self.wait())
        missing = 'Missing: host h1 (provider n1): aggregate name of b (b)'
        self.assertEqual([], self.out)
        self.assertEqual(
            [missing, ENDED, missing + ': run "sync --host h1"'], self.err)

    def test_slow_attempts(self):
        """A pause is as long as the attempt before it, but ends in time."""
        self.slow_nova(4)
        self.wait(timeout=25)
        self.assertEqual(
            [('TRUTH', ''), *3 * [('GET', 'n1'), ('TRUTH', '')]], self.log)
        self.assertIn('after 28 s', self.err[-3])

    def test_many_lines(self):
        """They are limited, and the rest is counted."""
        self.nova.hosts_of = {'a%d' % number: {'h1'} for number in range(15)}
        self.wait()
        self.assertEqual('... and 3 more', self.err[-1])
        self.assertEqual(2 * 13 + 1, len(self.err))


class TestMissing(WaitTest):
    """What a host lacks, before placement can have it everywhere."""

    def ends(self, status, *words):
        self.assertEqual(status, self.wait())
        for word in words:
            self.assertIn(word, '\n'.join(self.err))

    def test_provider(self):
        """Nova-compute creates it."""
        self.lose_provider()
        self.ends(
            exit_status.NO_PROVIDER, ENDED, 'Host h1: compute node n1 has '
            'no resource provider yet: if nova-compute has just started on '
            'that host, wait a minute')
        self.later = {2: lambda: self.placement.create('n1', 'a', 'b')}
        self.assertEqual(exit_status.OK, self.wait())

    def test_other_providers_that_cannot_be_read(self):
        """What is missing is printed all the same."""
        self.lose_provider()
        self.placement.broken = {('ALL', ''): DOWN}
        self.ends(exit_status.NO_PROVIDER, 'has no resource provider yet: ')

    def test_node(self):
        self.nova.nodes = {}
        self.ends(exit_status.NO_NODE,
                  'Host h1: nova does not find its compute node', ENDED,
                  'Host h1: no compute node: restart nova-compute')
        self.later = {2: lambda: self.nova.nodes.update(n1='h1'),
                      3: self.mirror}
        self.assertEqual(exit_status.OK, self.wait())

    def test_cell_that_is_down(self):
        """It may have a compute node of the host."""
        self.mirror()
        self.nova.silent = {'h1'}
        text = 'Host h1 is not compared: %s' % doubles.SILENT
        self.ends(exit_status.NO_NODE)
        self.assertEqual([text, ENDED, text], self.err)

    def test_node_of_several_hosts(self):
        """It is waited for: nova may be moving the node."""
        self.mirror()
        self.nova.twins = {'n1': 'h2'}
        self.ends(
            exit_status.NOT_UPDATED, 'is not mirrored: nova has the compute '
            'node on host h1 in cell cell1 and on host h2 in cell cell1; only '
            'h1 is in aggregate name of a (a)')
        self.later = {2: self.nova.twins.clear}
        self.assertEqual(exit_status.OK, self.wait())

    def test_the_lowest_status(self):
        self.nova.unmapped = {'h1'}
        self.ends(exit_status.NOT_MAPPED, 'mapping', 'Missing')


class TestMemberless(WaitTest):

    def test_host_in_no_aggregate(self):
        """It is named at once, and after the timeout with a step."""
        self.nova.nodes['n2'] = 'h2'
        self.mirror()
        self.assertEqual(exit_status.COULD_NOT_RUN, self.wait('h1', 'h2'))
        text = 'Nova has no host h2 in any aggregate'
        self.assertEqual(
            [text, ENDED,
             text + ': run "openstack aggregate add host AGGREGATE h2"'],
            self.err)

    def test_host_that_is_added_meanwhile(self):
        """A Galera node may show the memberships a little later."""
        self.mirror()
        members = self.nova.hosts_of
        self.nova.hosts_of = {'c': set()}
        self.later = {3: lambda: setattr(self.nova, 'hosts_of', members)}
        self.assertEqual(exit_status.OK, self.wait())


class TestErrors(WaitTest):

    def test_placement_that_recovers(self):
        """A retriable error is printed once for each kind and party."""
        self.nova.nodes['n2'] = 'h1'
        self.placement.create('n2', 'a', 'b')
        self.placement.broken = {('GET', 'n1'): DOWN, ('PROBE', ''): DOWN}
        self.later = {
            2: lambda: self.placement.broken.update(
                {('GET', 'n1'): exceptions.ServiceUnreachable(
                    'has no route', 'placement')}),
            3: lambda: self.placement.broken.update(
                {('GET', 'n1'): SILENT, ('PROBE', ''): SILENT}),
            4: self.placement.broken.clear, 6: self.mirror}
        self.assertEqual(exit_status.OK, self.wait())
        self.assertEqual(
            ['Nothing could be compared: placement refused the connection: '
             'start it', 'Nothing could be compared: %s' % SILENT,
             'Missing: host h1 (provider n1): aggregate name of a (a)',
             'Missing: host h1 (provider n1): aggregate name of b (b)'],
            self.err)

    def test_placement_that_goes_down(self):
        """Only the last attempt counts."""
        self.nova.nodes['n2'] = 'h1'
        self.placement.create('n2')
        self.later = {3: lambda: self.placement.broken.update(
            {('GET', 'n1'): DOWN, ('PROBE', ''): DOWN})}
        self.assertEqual(exit_status.NOT_READ, self.wait())
        text = ('Nothing could be compared: placement refused the connection: '
                'start it')
        self.assertEqual([text, ENDED, text], self.err[-3:])
        self.assertEqual(2, self.err.count(text))

    def test_provider_that_fails(self):
        """The others are compared."""
        self.nova.nodes['n2'] = 'h1'
        self.placement.create('n2', 'a', 'b')
        self.placement.broken = {
            ('GET', 'n1'): exceptions.ServiceFailed('answered 500')}
        self.assertEqual(exit_status.NOT_READ, self.wait())
        text = 'Host h1 (provider n1) is not compared: answered 500'
        self.assertEqual([text, ENDED, text], self.err)

    def test_nova(self):
        self.mirror()
        self.nova.broken = NOVA_DOWN
        self.assertEqual(exit_status.COULD_NOT_RUN, self.wait())
        text = 'Nothing could be compared: nova\'s database did not answer'
        self.assertEqual([text, ENDED, text], self.err)
        self.later = {2: lambda: setattr(self.nova, 'broken', None)}
        self.assertEqual(exit_status.OK, self.wait())


class TestLimits(WaitTest):
    """How long an attempt may take."""

    def setUp(self):
        super().setUp()
        self.limits = []
        self.placement.get = self.hang
        self.useFixture(fixtures.MonkeyPatch(
            'time.monotonic', lambda: self.clock))

    def hang(self, provider):
        self.limits.append(round(deadline.remaining(), 1))
        raise DOWN

    def test_short_timeout(self):
        """An attempt takes no longer, but at least for an answer."""
        for timeout, seconds in (1, 3.0), (3, 3.0), (7, 7.0):
            self.limits.clear()
            self.wait(timeout=timeout)
            self.assertEqual({seconds}, {*self.limits}, timeout)

    def test_long_timeout(self):
        """A provider has a limit, and so has the last attempt."""
        self.wait(timeout=40)
        self.assertEqual((wait_run.PATIENCE, wait_run.LAST),
                         (self.limits[0], self.limits[-1]))

    def test_silent_placement(self):
        """The wait ends with its timeout, however short."""
        def hang(*_arguments):
            self.clock += deadline.remaining()
            raise exceptions.DeadlineExceeded('silent')

        self.placement.get = self.placement.probe = hang
        self.wait(timeout=3)
        self.assertEqual(1003.0, self.clock)


class TestArguments(testtools.TestCase):

    def test_timeout(self):
        parse = cli.number(cli.LONGEST)
        self.assertEqual([1, 86400], [parse(text) for text in ('1', '86400')])
        for text in '0', '-1', '86401':
            self.assertRaises(argparse.ArgumentTypeError, parse, text)
        for text in 'soon', '1.5', '':
            self.assertRaises(ValueError, parse, text)
