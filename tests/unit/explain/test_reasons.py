# SPDX-License-Identifier: Apache-2.0
"""Why a compute node does not meet a condition, and what to do."""

import dataclasses

import testtools

from nova_aggregate_mirror.explain import query
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.placement import candidates
from nova_aggregate_mirror import source

NOVA = source.Nova(
    aggregates={'z': 'east', 'y': 'theirs'},
    members={'h1': frozenset('z'), 'h2': frozenset('y')},
    nodes={'n1': 'h1', 'n2': 'h2'})
KNOWN = reasons.Context(NOVA, {'h1': 'broken', 'h2': ''}, {})
FREE = candidates.Inventory(
    total=64, reserved=0, ratio=4.0, used=253, min_unit=2, max_unit=16,
    step_size=2)


def reason(key, value, node='n1', asked_by='', known=KNOWN, inventories=None,
           nested=False):
    return reasons.of_condition(
        query.Condition(key, value, asked_by), node, known, inventories,
        nested)


class TestResources(testtools.TestCase):

    def found(self, amount):
        return reason('resources', 'VCPU:%d' % amount,
                      inventories={'VCPU': FREE})

    def test_figures(self):
        """They are those of placement, which allocates total x ratio."""
        found = self.found(8)
        self.assertEqual('have fewer than 8 VCPU free', found.phrase)
        self.assertEqual('asked 8, free 3 of 64 x 4', found.detail)

    def test_no_figures(self):
        """They are read for some hosts only."""
        found = reason('resources', 'VCPU:8')
        self.assertEqual(('cannot provide 8 VCPU', ''),
                         (found.phrase, found.detail))
        self.assertEqual('see the figures with --host <host>', found.advice)

    def test_resources_of_several_providers(self):
        """Their figures are not read with any option."""
        found = reason('resources', 'VGPU:1', nested=True)
        self.assertEqual('cannot provide 1 VGPU', found.phrase)
        self.assertIn('the providers below it or shared with it',
                      found.advice)

    def test_limits_of_a_server(self):
        """Free resources do not help against these."""
        self.assertEqual('allow at most 16 VCPU for a server',
                         self.found(20).phrase)
        for amount in (1, 7):
            self.assertEqual('do not allocate %d VCPU to a server' % amount,
                             self.found(amount).phrase)

    def test_no_inventory(self):
        """The host does not have such a resource."""
        self.assertEqual('have no VGPU', reason(
            'resources', 'VGPU:1', inventories={'VCPU': FREE}).phrase)

    def test_freed_meanwhile(self):
        """What was full a moment ago can be tried again."""
        found = self.found(2)
        self.assertEqual(('asked 2, free 3 of 64 x 4 now', 'try again'),
                         (found.detail, found.advice))

    def test_group(self):
        """Only placement knows which providers a group may use."""
        self.assertEqual('cannot meet request group _port', reason(
            'resources_port', 'NET:1').phrase)


class TestTraits(testtools.TestCase):

    def test_disabled(self):
        """The operator's reason is shown; the trait alone is stale."""
        found = reason('root_required', '!COMPUTE_STATUS_DISABLED')
        self.assertEqual(('disabled', 'reason: broken'),
                         (found.phrase, found.detail))
        self.assertEqual('', reason(
            'root_required', '!COMPUTE_STATUS_DISABLED', 'n2').detail)
        self.assertEqual(
            'disabled in placement but not in nova',
            reason('root_required', '!COMPUTE_STATUS_DISABLED',
                   known=reasons.Context(NOVA, {}, {})).phrase)

    def test_other_traits(self):
        """Missing or forbidden."""
        self.assertEqual('without trait X', reason('required', 'X').phrase)
        found = reason('required', '!X')
        self.assertEqual('with the forbidden trait X', found.phrase)
        self.assertIn('remove the trait if it is wrong', found.advice)


class TestAggregates(testtools.TestCase):

    def test_nova_agrees(self):
        """The host is not meant to be there."""
        found = reason('member_of', 'in:z', 'n2', 'zone az-1')
        self.assertEqual(('not in zone az-1', 'if it should be: openstack '
                          'aggregate add host east <host>'),
                         (found.phrase, found.advice))

    def test_segment(self):
        """Only neutron knows which hosts reach a segment."""
        found = reason('member_of', 'in:z', 'n2', reasons.SEGMENTS)
        self.assertEqual('not in an aggregate for segments of the networks',
                         found.phrase)
        self.assertNotIn('aggregate add host', found.advice)

    def test_placement_lacks_it(self):
        """This is drift, which a sync repairs."""
        found = reason('member_of', 'in:z', asked_by='zone az-1')
        self.assertEqual('missing', found.kind)
        self.assertEqual('in zone az-1 in nova but not in placement',
                         found.phrase)
        self.assertIn('sync_aggregates --host <host>', found.advice)

    def test_hosts_that_share_a_compute_node(self):
        """What is known about any of them is a reason."""
        nova = dataclasses.replace(
            NOVA, members={**NOVA.members, 'twin': frozenset('z')},
            shared={'n1': (source.NodeRow('', 'n1', 'h1'),
                           source.NodeRow('', 'n1', 'twin'))})
        known = reasons.Context(nova, {'twin': 'broken'}, {'twin': 7.0})
        self.assertEqual('pending', reason(
            'member_of', 'in:z', known=known).kind)
        self.assertEqual('reason: broken', reason(
            'required', '!' + reasons.DISABLED, known=known).detail)

    def test_placement_has_it_left(self):
        """A forbidden aggregate that nova no longer has for the host."""
        self.assertEqual('stale', reason('member_of', '!in:y').kind)
        found = reason('member_of', '!in:y', 'n2', 'tenant t')
        self.assertEqual('in an aggregate that excludes tenant t',
                         found.phrase)
        self.assertEqual('theirs (y)', found.detail)

    def test_isolated_by_traits(self):
        """The request may require the traits, which is the remedy."""
        found = reason('member_of', '!in:y', 'n2', reasons.ISOLATED)
        self.assertEqual('in an aggregate whose traits the request does not '
                         'require', found.phrase)
        self.assertIn('require the traits', found.advice)

    def test_surplus(self):
        """What passes only because placement is stale."""
        conditions = [query.Condition('member_of', 'in:z', 'zone az-1')]
        self.assertEqual([], reasons.surplus(conditions, 'n1', KNOWN))
        self.assertEqual(['zone az-1'],
                         reasons.surplus(conditions, 'n2', KNOWN))

    def test_aggregates_of_others(self):
        """Those of segments, for example, are not nova's."""
        self.assertEqual('not in one of 2 aggregates',
                         reason('member_of', 'in:p,q').phrase)
        self.assertEqual([], reasons.surplus(
            [query.Condition('member_of', 'in:p')], 'n1', KNOWN))


class TestTitle(testtools.TestCase):

    def test_titles(self):
        """They have the names of aggregates and their UUIDs."""
        for key, value, title in (
                ('resources', 'VCPU:8', '8 VCPU'),
                ('resources1', 'A:1,B:2',
                 '1 A, 2 B in one provider (group 1)'),
                ('required', '!X', 'without trait X'),
                ('member_of', 'in:z', 'in the aggregate east (z)'),
                ('member_of', '!in:y,q', 'in no aggregate of theirs (y), q'),
                ('in_tree', 'n1', 'in_tree=n1')):
            self.assertEqual(title, reasons.title(
                query.Condition(key, value), NOVA))
