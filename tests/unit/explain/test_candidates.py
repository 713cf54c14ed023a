# SPDX-License-Identifier: Apache-2.0
"""What nova-scheduler reads from placement, and answers that are not that."""

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror import openstack_options

INVENTORY = {'total': 64, 'reserved': 4, 'allocation_ratio': 2.5,
             'min_unit': 1, 'max_unit': 64, 'step_size': 1}


class Client:
    """Answers of placement by path."""

    def __init__(self, **answers):
        self._answers = answers
        self.paths = []

    def read(self, path, parse, provider=None):
        self.paths.append(path)
        name = path.partition('?')[0].rpartition('/')[2]
        call = errors.Call(lambda: openstack_options.party('placement'), path)
        return parse(call, self._answers[name])


class TestReader(testtools.TestCase):

    def reader(self, **answers):
        self.client = Client(**answers)
        return candidates.CandidateReader(self.client)

    def test_candidates(self):
        """Parameters may be repeated, and are readable in a log."""
        found = self.reader(allocation_candidates={
            'allocation_requests': [{}], 'provider_summaries': {'a': {}},
        }).candidates([('member_of', 'in:x,y'), ('member_of', '!in:z')])
        self.assertEqual((1, frozenset('a')),
                         (len(found.requests), found.summaries.keys()))
        self.assertEqual(
            ['/allocation_candidates?member_of=in:x,y&member_of=!in:z'],
            self.client.paths)

    def test_providers(self):
        """Each has the provider at the top of its tree."""
        reader = self.reader(resource_providers={'resource_providers': [
            {'uuid': 'a', 'root_provider_uuid': 'a'},
            {'uuid': 'b', 'root_provider_uuid': 'a'}]})
        self.assertEqual({'a': 'a', 'b': 'a'}, reader.trees())
        reader.trees([('resources', 'VCPU:1')])
        self.assertEqual(
            ['/resource_providers', '/resource_providers?resources=VCPU:1'],
            self.client.paths)

    def test_name_that_no_trait_can_have(self):
        """It is one value of the query."""
        reader = self.reader(
            resource_classes={'resource_classes': [{'name': 'VCPU'}]},
            traits={'traits': []})
        self.assertEqual((['CUSTOM_X'], ['A&B']), reader.unknown(
            {'VCPU', 'CUSTOM_X'}, {'A&B'}))
        self.assertEqual('/traits?name=in:A%26B', self.client.paths[-1])

    def test_inventories(self):
        """What is free over several servers, never less than 0."""
        for used, free in ((0, 150), (149, 1), (200, 0)):
            found = self.reader(
                inventories={'inventories': {'VCPU': INVENTORY}},
                usages={'usages': {'VCPU': used}}).inventories('a')
            self.assertEqual(free, found['VCPU'].free)

    def test_class_without_usage(self):
        """It was added between the two requests."""
        reader = self.reader(inventories={'inventories': {'VCPU': INVENTORY}},
                             usages={'usages': {}})
        self.assertEqual({}, reader.inventories('a'))

    def test_allocations_of_a_deleted_provider(self):
        """It has none; those of other hosts can be explained."""
        def answer(*_arguments):
            raise exceptions.ProviderNotFound('no provider a')

        reader = self.reader()
        self.client.read = answer
        self.assertEqual({}, reader.allocations('a'))

    def test_malformed_answers(self):
        """They are an error that can be retried, not a traceback."""
        for read, answers in (
                (lambda one: one.candidates([]), {'allocation_candidates': {
                    'allocation_requests': {}, 'provider_summaries': {}}}),
                (lambda one: one.candidates([]), {'allocation_candidates': {
                    'allocation_requests': [], 'provider_summaries': None}}),
                (lambda one: one.trees(),
                 {'resource_providers': {'resource_providers': [{}]}}),
                (lambda one: one.trees(), {'resource_providers': {}}),
                (lambda one: one.inventories('a'),
                 {'inventories': {'inventories': []}, 'usages': {}}),
                (lambda one: one.inventories('a'),
                 {'inventories': {'inventories': {'VCPU': {}}},
                  'usages': {'usages': {'VCPU': 1}}})):
            self.assertRaises(exceptions.MalformedAnswer, read,
                              self.reader(**answers))
