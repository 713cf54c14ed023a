# SPDX-License-Identifier: Apache-2.0
"""Memberships with few requests, and with answers that are missing."""

import math

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror.reconcile import survey
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

    def read(self, used, unused='', count=math.inf):
        """Read what placement has that had this many providers before."""
        self.log.clear()
        if count:
            self.placement.provider_count = count
        return survey.read_memberships(
            provider_writes.Context(journal.Ledger(), None, self.placement),
            frozenset(used), frozenset(unused))

    def test_by_aggregate(self):
        """As long as it is not known that there are few providers."""
        for count in math.inf, 1000:
            self.assertEqual(
                ({'disk': {'a', 'z'}, 'n1': {'a'}, 'n2': {'b'}}, {}),
                self.read('abc', 'xyz', count))
            self.assertEqual(3 + 1 + 3, len(self.log))

    def test_by_provider(self):
        """If that takes fewer requests: the list, and one for each."""
        answer = self.read('abcdefgh', 'z')
        self.assertEqual(8 + 1 + 1, len(self.log))
        self.assertEqual(answer, self.read('abcdefgh', 'z', count=None))
        self.assertEqual(5, len(self.log))

    def test_aggregate_in_another_spelling(self):
        """Rule 16: placement decides whether it is the same, in both ways."""
        uuid = '8fc7b1f2-3c2f-4f4c-8d8f-5f0e1c7f5a01'
        self.placement.aggregates['idle'].add(uuid.upper())
        for members in set(), {'idle'}:
            self.placement.members = lambda *_aggregates: members
            answer, unread = self.read({uuid, *'bcdefgh'}, '', 4)
            self.assertEqual(
                {'n2': {'b'}, **{name: {uuid} for name in members}}, answer)
            self.assertEqual({}, unread)

    def test_providers_that_have_become_many(self):
        """The list shows it, and is the only request in vain."""
        self.placement.aggregates |= {
            'p%d' % number: set() for number in range(9)}
        self.assertEqual({'disk', 'n1', 'n2'},
                         set(self.read('abcdefgh', '', 4)[0]))
        self.assertEqual(1 + 8, len(self.log))

    def test_provider_that_cannot_be_read(self):
        """It is in the lists of its aggregates, unless it is gone."""
        for error in FAILED, exceptions.ProviderNotFound('deleted'):
            self.placement.fail('GET', 'n1', error=error)
            self.assertEqual(
                ({'disk': {'a'}, 'n1': {'a'}, 'n2': {'b'}}, {}),
                self.read('abcdefgh', '', 4))
            self.assertEqual(5 + 8, len(self.log))

    def test_aggregate_or_list_that_cannot_be_read(self):
        """The providers of one aggregate are unknown, all others are known.

        Each aggregate of a list is asked for, so that only some fail.
        """
        self.placement.fail('MEMBERS', 'x,y,z', 'x', 'b', error=FAILED)
        self.assertEqual(
            ({'disk': {'a', 'z'}, 'n1': {'a'}}, {'b': FAILED, 'x': FAILED}),
            self.read('abc', 'xyz'))

    def test_placement_that_does_not_answer(self):
        """Nothing is compared after three failures and a probe."""
        self.placement.fail('MEMBERS', *'abcdefgh', error=FAILED)
        self.placement.fail('PROBE', '', error=FAILED)
        self.assertIs(FAILED, self.assertRaises(
            exceptions.ServiceFailed, self.read, 'abcdefgh'))
        self.assertEqual(4, len(self.log))

    def test_providers_without_an_answer(self):
        """They end the read, not another failure before them."""
        self.placement.create('other')
        self.placement.fail(
            'GET', 'disk', error=exceptions.ProviderNotFound('deleted'))
        self.placement.fail('GET', 'idle', 'n1', 'n2')
        self.assertIs(doubles.NO_ANSWER, self.assertRaises(
            exceptions.MirrorError, self.read, 'abcdefgh', '', 5))
        self.assertNotIn(('GET', 'other'), self.log)

    def test_likely_and_unlikely_aggregates_without_an_answer(self):
        """Those of one kind do not count for the other."""
        self.placement.fail('MEMBERS', 'c', 'd', 'x', 'x,y,z')
        _, unread = self.read('abcd', 'xyz')
        self.assertEqual({'c', 'd', 'x'}, unread.keys())
