# SPDX-License-Identifier: Apache-2.0
"""Which providers are asked again, and how long each is waited for."""

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import provider_writes
from tests.unit import doubles

LONG = 60.0


class TestRequests(doubles.TestCase):

    def setUp(self):
        super().setUp()
        self.nova.hosts_of = {'a': {'h1'}}
        self.waits = []
        """The provider, or nothing, and the seconds of each request."""
        self.add('n1')

    def add(self, node):
        self.nova.nodes[node] = 'h1'
        self.placement.create(node)

    def converge(self, **mode):
        ask = self.placement._ask

        def note(method, what):
            if method == 'GET':
                self.waits.append((what, deadline.remaining()))
            ask(method, what)

        self.placement._ask = note
        return self.reconciler.converge(
            [journal.Dirty('h1', frozenset(self.nova.nodes))],
            provider_writes.Mode(**mode))

    def hang(self, method, what):
        self.placement.broken[method, what] = (
            exceptions.DeadlineExceeded('no answer'))

    def waited(self, provider):
        """Return whether each request about it had the long patience."""
        return [seconds > LONG / 2 for what, seconds in self.waits
                if what == provider]

    def failed(self):
        return outcome.Subject(outcome.PROVIDER, 'n1')

    def test_single_provider(self):
        """It delays no other."""
        self.converge(patience=LONG)
        self.assertEqual([True], self.waited('n1'))

    def test_single_provider_of_a_request(self):
        """It is asked once more if all of placement is slow."""
        self.hang('GET', 'n1')
        self.hang('PROBE', '')
        probe = self.placement.probe

        def recover():
            try:
                probe()
            finally:
                self.placement.broken.clear()

        self.placement.probe = recover
        self.assertEqual({'n1'}, self.converge().done)

    def test_providers_that_hang(self):
        """All of them are asked with patience, once the others are written."""
        for node in 'n2', 'n3':
            self.add(node)
        for node in 'n1', 'n2':
            self.hang('GET', node)
        answer = self.converge(patience=LONG)
        self.assertEqual(({'n3'}, None), (answer.done, answer.outage))
        self.assertEqual([False], self.waited('n3'))
        for node in 'n1', 'n2':
            self.assertEqual([False, True], self.waited(node))

    def test_provider_that_fails_at_once(self):
        """Patience would not help it."""
        for node in 'n2', 'n3':
            self.add(node)
        self.placement.broken['GET', 'n1'] = exceptions.ServiceFailed('503')
        self.hang('GET', 'n2')
        answer = self.converge(patience=LONG)
        self.assertIn(self.failed(), answer.failed)
        self.assertEqual(([False], [False, True]),
                         (self.waited('n1'), self.waited('n2')))

    def test_missing_provider_before_one_that_fails(self):
        """Both are told."""
        self.nova.nodes['n0'] = 'h1'
        self.placement.broken['GET', 'n1'] = exceptions.ServiceFailed('503')
        answer = self.converge()
        self.assertEqual({'n0'}, answer.missing)
        self.assertIsInstance(
            answer.failed[self.failed()], exceptions.ServiceFailed)

    def test_few_endless_conflicts(self):
        """Three are tried in each round, more only once more."""
        self.placement.before_put = (
            lambda provider: self.placement.write(provider, ()))
        for count, puts in (3, 5), (4, 2):
            del self.log[:]
            while len(self.nova.nodes) < count:
                self.add('n%d' % (len(self.nova.nodes) + 1))
            self.converge()
            self.assertEqual(puts, self.log.count(('PUT', 'n1')))
