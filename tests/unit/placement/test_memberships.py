# SPDX-License-Identifier: Apache-2.0
"""Memberships with few requests, and with answers that are missing."""

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import memberships
from nova_aggregate_mirror.placement import workers
from tests.unit import doubles

FAILED = exceptions.ServiceFailed('answered 503')


class TestRead(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.log = []
        self.placement = doubles.Placement(self.log)
        for provider, aggregates in (('n1', ('a', 'foreign')), ('n2', 'b'),
                                     ('disk', 'az'), ('idle', '')):
            self.placement.create(provider, *aggregates)
        self.broken = self.placement.broken

    def read(self, used, unused=''):
        self.log.clear()
        return memberships.read(
            self.placement, frozenset(used), frozenset(unused),
            workers.each())

    def test_by_aggregate(self):
        """Those that probably have no provider share a request."""
        self.assertEqual(
            ({'disk': {'a', 'z'}, 'n1': {'a'}, 'n2': {'b'}}, {}),
            self.read('abc', 'xyz'))
        self.assertEqual(3 + 1 + 3, len(self.log))

    def test_aggregate_that_cannot_be_read(self):
        """Its providers are unknown, and all others are known."""
        self.broken['MEMBERS', 'b'] = FAILED
        self.assertEqual(
            ({'disk': {'a'}, 'n1': {'a'}}, {'b': FAILED}), self.read('abc'))

    def test_list_that_cannot_be_read(self):
        """Each of its aggregates is asked for, so that only some fail."""
        self.broken['MEMBERS', 'x,y,z'] = FAILED
        self.broken['MEMBERS', 'x'] = FAILED
        self.assertEqual(
            ({'n2': {'b'}, 'disk': {'z'}}, {'x': FAILED}),
            self.read('b', 'xyz'))

    def test_placement_that_does_not_answer(self):
        """Nothing is compared after three failures and a probe."""
        for name in 'abcdefgh':
            self.broken['MEMBERS', name] = FAILED
        self.broken['PROBE', ''] = FAILED
        self.assertIs(FAILED, self.assertRaises(
            exceptions.ServiceFailed, self.read, 'abcdefgh'))
        self.assertEqual(4, len(self.log))

    def test_aggregates_without_an_answer(self):
        """Each takes the time of a request: a few of them end the read."""
        error = exceptions.DeadlineExceeded('was silent')
        for name in 'abcdefgh':
            self.broken['MEMBERS', name] = error
        self.assertIs(error, self.assertRaises(
            exceptions.DeadlineExceeded, self.read, 'abcdefgh'))
        self.assertEqual(3, self.log.count(('PROBE', '')))
