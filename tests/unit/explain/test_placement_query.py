# SPDX-License-Identifier: Apache-2.0
"""Conditions of a placement query, apart and together."""

import itertools
import urllib.parse

import testtools

from nova_aggregate_mirror.explain import placement_query

NOVAS = (
    'limit=1000&group_policy=isolate&member_of=%21in%3Ac%2Cd&member_of=in%3Aa'
    '%2Cb&required=CUSTOM_X%2C%21CUSTOM_Y&resources=MEMORY_MB%3A64%2CVCPU%3A1'
    '&root_required=OWNER_NOVA%2C%21COMPUTE_STATUS_DISABLED'
    '&resources_port=NET_BW%3A10%2CNET_PPS%3A5&required_port=CUSTOM_NET'
    '&resources1=VGPU%3A1&same_subtree=1%2C_port&in_tree=host')


def parsed(text):
    return placement_query.parse(urllib.parse.parse_qsl(text))


class TestQuery(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.query = parsed(NOVAS)

    def test_conditions_in_the_order_of_adding(self):
        """Resources come first, groups after the rest, subtrees last."""
        self.assertEqual([
            'resources=MEMORY_MB:64', 'resources=VCPU:1',
            'root_required=OWNER_NOVA',
            'root_required=!COMPUTE_STATUS_DISABLED', 'required=CUSTOM_X',
            'required=!CUSTOM_Y', 'member_of=!in:c,d', 'member_of=in:a,b',
            'in_tree=host', 'resources1=VGPU:1',
            'resources_port=NET_BW:10,NET_PPS:5',
            'required_port=CUSTOM_NET', 'same_subtree=1,_port',
        ], list(map(str, self.query.conditions)))
        self.assertEqual(('isolate', 1000),
                         (self.query.policy, self.query.limit))

    def test_conditions_of_one_kind_are_in_the_order_of_their_origins(self):
        """The zone first, then the tenant: not that of a cloud's UUIDs."""
        origins = {
            'in:a': placement_query.Origin('tenant t'),
            'in:b': placement_query.Origin('a rule'),
            'in:c': placement_query.Origin('zone z', zone=True)}
        for order in itertools.permutations(origins):
            query = placement_query.parse(
                [('member_of', value) for value in order],
                lambda condition: origins[condition.value])
            self.assertEqual(['in:c', 'in:a', 'in:b'], [
                condition.value for condition in query.conditions])

    def test_forbidden_aggregates_of_two_origins(self):
        """They are two conditions, though one parameter has them all."""
        tenant, rule = map(placement_query.Origin, ('tenant t', 'a rule'))
        origins = {'a': rule, 'b': tenant, 'c': rule}
        query = placement_query.parse(
            [('member_of', '!in:a,b,c')],
            lambda condition: origins[condition.names[0]])
        self.assertEqual([('!in:b', tenant), ('!in:a,c', rule)], [
            (condition.value, condition.origin)
            for condition in query.conditions])

    def test_together_again(self):
        """All conditions are the query of nova, without its limit."""
        novas = [pair for pair in urllib.parse.parse_qsl(NOVAS)
                 if pair[0] != 'limit']
        self.assertEqual(sorted(novas), sorted(self.query.parameters()))

    def test_policy_needs_two_groups(self):
        """Placement rejects two groups without it."""
        first = dict(self.query.parameters(self.query.conditions[:10]))
        self.assertNotIn('group_policy', first)
        first = dict(self.query.parameters(self.query.conditions[:11]))
        self.assertEqual('isolate', first['group_policy'])

    def test_plain_query(self):
        """It has no group, so that providers can be asked about."""
        self.assertFalse(self.query.plain)
        self.assertTrue(parsed(
            'resources=VCPU%3A1&required=A&root_required=%21B').plain)

    def test_empty_resources(self):
        """Placement rejects them, as it rejects nova's query."""
        self.assertEqual([('member_of', 'in:a')],
                         parsed('member_of=in%3Aa').parameters())

    def test_alternative_of_pinned_processors(self):
        """Nova asks for shared processors as well, and takes both."""
        pinned, shared = (placement_query.parse([
            ('resources', 'MEMORY_MB:1,%s:1' % processor), ('required', 'X')])
            for processor in ('PCPU', 'VCPU'))
        memory, processors, trait = pinned.conditions
        _memory, others, _trait = shared.conditions
        for part, alternatives in (
                ([memory], []), ([processors], [[others]]),
                ([memory, processors], [[memory, others]]),
                ([memory, processors, trait], [[memory, others, trait]])):
            self.assertEqual([part, *alternatives], [
                *placement_query.alternatives([pinned, shared], part)])
