# SPDX-License-Identifier: Apache-2.0
"""Why a compute node does not meet a condition, and what to do."""

import dataclasses

import testtools

from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.explain import reason_table
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror.explain import resource_holders
from nova_aggregate_mirror import source

NOVA = source.Nova(
    aggregates={'z': 'east', 'y': 'theirs'},
    members={'h1': frozenset('z'), 'h2': frozenset('y')},
    nodes={'n1': 'h1', 'n2': 'h2'})
FACTS = reasons.Facts(NOVA, disabled={'h1': 'broken', 'h2': ''})
ZONE = placement_query.Origin('zone az-1', zone=True)
PLACES = dict.fromkeys((
    'group', 'name', 'membership', 'zone', 'unpin', 'or_unpin', 'subject',
    'step', 'filter', 'module', 'first'), 'it') | {'amount': 1, 'largest': 1}
FREE = candidates.Inventory(
    total=64, reserved=0, allocation_ratio=4.0, used=253, min_unit=2,
    max_unit=16, step_size=2, provider='n1')


def reason(key, value, node='n1', origin=placement_query.Origin(),
           known=FACTS):
    return reasons.of_condition(
        placement_query.Condition(key, value, origin), node, known)


class TestResources(testtools.TestCase):

    def shortage(self, amount, name='VCPU', has='VCPU', holders=(), **changes):
        """Return the reason of a host that has a resource."""
        figures = {has: dataclasses.replace(FREE, **changes)}
        return reason(
            'resources', '%s:%d' % (name, amount), known=reasons.Facts(
                NOVA, figures={'n1': figures}, holders={'n1': holders}))

    def test_figures(self):
        """They are those of placement, which allocates total x ratio."""
        observed = self.shortage(8)
        self.assertEqual('have fewer than 8 VCPU free', observed.phrase)
        self.assertEqual('asked 8, free 3 of 64 x 4', observed.detail)

    def test_no_figures(self):
        """They are read for some hosts only, with few providers each."""
        observed = reason('resources', 'VCPU:8', known=reasons.Facts(NOVA))
        self.assertEqual(('cannot provide 8 VCPU', ''),
                         (observed.phrase, observed.detail))
        self.assertIn('see the figures with --host <host>', observed.step)
        self.assertIn('if several providers have it', observed.step)

    def test_limits_of_a_server(self):
        """Free resources do not help against these."""
        self.assertEqual('allow at most 16 VCPU for a server',
                         self.shortage(20).phrase)
        for amount in (1, 7):
            self.assertEqual('do not allocate %d VCPU to a server' % amount,
                             self.shortage(amount).phrase)

    def test_what_is_reserved(self):
        """The option is named only if a lower value of it is enough."""
        much = {'reserved': 60, 'used': 0, 'max_unit': 64}
        for name, amount, changes, phrase in (
                ('VCPU', 8, {**much, 'reserved': 64},
                 'have too much %s reserved'),
                ('VCPU', 64, much, 'have too much %s reserved'),
                ('VCPU', 64, {**much, 'used': 192},
                 'have too much %s reserved'),
                ('VCPU', 64, {**much, 'used': 193},
                 'allow at most 16 %s for a server'),
                ('VCPU', 18, {**much, 'max_unit': 17},
                 'allow at most 16 %s for a server'),
                # Nova-compute reserves some memory by default.
                ('MEMORY_MB', 64,
                 {**much, 'reserved': 4, 'allocation_ratio': 1.0},
                 'allow at most 60 %s for a server'),
                ('CUSTOM_SLOT', 64, much, 'allow at most 16 %s for a server')):
            self.assertEqual(phrase % name, self.shortage(
                amount, name, name, **changes).phrase, changes)

    def test_no_inventory(self):
        """The host does not have such a resource."""
        self.assertEqual('have no VGPU', self.shortage(1, 'VGPU').phrase)

    def test_freed_meanwhile(self):
        """What was full a moment ago has figures that are read again."""
        observed = self.shortage(2)
        self.assertEqual(
            ('cannot provide 2 VCPU', 'asked 2, free 3 of 64 x 4'),
            (observed.phrase, observed.detail))

    def test_what_frees_resources(self):
        """The step is that of the first holder with one."""
        room = 'delete or move servers, or add hosts'
        for steps, step in (
                (['', 'confirm'], 'confirm; if that is not enough: ' + room),
                (['', ''], room), ([], room)):
            holders = [resource_holders.Holder('it', {'VCPU': 1}, text)
                       for text in steps]
            self.assertEqual(
                step, self.shortage(8, holders=holders).step, steps)

    def test_group(self):
        """Only placement knows which providers a group may use."""
        self.assertEqual('cannot meet request group _port', reason(
            'resources_port', 'NET:1').phrase)


class TestTraits(testtools.TestCase):

    def test_disabled(self):
        """The operator's reason is shown; the trait alone is stale."""
        for node, known, expected in (
                ('n1', FACTS, ('disabled', 'reason: broken')),
                ('n2', FACTS, ('disabled', '')),
                ('n1', reasons.Facts(NOVA),
                 ('disabled in placement but not in nova',
                  'placement has trait COMPUTE_STATUS_DISABLED'))):
            observed = reason('root_required', '!COMPUTE_STATUS_DISABLED',
                              node, known=known)
            self.assertEqual(expected, (observed.phrase, observed.detail))

    def test_other_traits(self):
        """Missing or forbidden."""
        self.assertEqual('without trait X', reason('required', 'X').phrase)
        observed = reason('required', '!X')
        self.assertEqual('with the forbidden trait X', observed.phrase)
        self.assertIn('remove the trait if it is wrong', observed.step)


class TestAggregates(testtools.TestCase):

    def test_nova_agrees(self):
        """The host is not meant to be there."""
        add = 'openstack aggregate add host east <host>'
        observed = reason('member_of', 'in:z', 'n2')
        self.assertEqual(('not in aggregate east (z)', 'if it should be: '
                          + add), (observed.phrase, observed.step))

    def test_host_of_another_zone(self):
        """Nova adds no host of a zone, or with servers, to another one."""
        add = ('if it should be, and has no servers: openstack aggregate add '
               'host east <host>')
        for zones, unpin, step in (
                ({}, '', add), ({}, 'unpin it', add + '; or unpin it'),
                ({'h2': 'az-2'}, '',
                 'it is in zone az-2: request that one, or none'),
                ({'h2': 'az-2'}, 'unpin it', 'unpin it')):
            operation = 'migrate' if unpin else 'create'
            observed = reason('member_of', 'in:z', 'n2', ZONE, reasons.Facts(
                NOVA, operation=operation, zones=zones, unpin=unpin))
            self.assertEqual(('not in zone az-1', step),
                             (observed.phrase, observed.step))

    def test_segment(self):
        """Only neutron knows which hosts reach a segment."""
        observed = reason('member_of', 'in:z', 'n2', placement_query.SEGMENTS)
        self.assertEqual('not in an aggregate for segments of the networks',
                         observed.phrase)
        self.assertNotIn('aggregate add host', observed.step)

    def test_placement_lacks_it(self):
        """This is drift, which a sync repairs."""
        observed = reason('member_of', 'in:z', origin=ZONE)
        self.assertEqual('missing', observed.kind)
        self.assertEqual('in zone az-1 in nova but not in placement',
                         observed.phrase)
        self.assertIn('sync_aggregates --host <host>', observed.step)

    def test_hosts_that_share_a_compute_node(self):
        """What is known about any of them is a reason."""
        nova = dataclasses.replace(
            NOVA, members={**NOVA.members, 'twin': frozenset('z')},
            shared={'n1': (source.NodeRow('', 'n1', 'h1'),
                           source.NodeRow('', 'n1', 'twin'))})
        known = reasons.Facts(
            nova, disabled={'twin': 'broken'}, pending={'twin': 7.0})
        self.assertEqual('pending', reason(
            'member_of', 'in:z', known=known).kind)
        self.assertEqual('reason: broken', reason(
            'required', '!' + reasons.DISABLED, known=known).detail)

    def test_operation_of_a_clock_that_is_ahead(self):
        """It has just begun."""
        known = reasons.Facts(NOVA, pending={'h1': -5.0})
        self.assertIn(' for 0 s', reason(
            'member_of', 'in:z', known=known).detail)

    def test_placement_has_it_left(self):
        """A forbidden aggregate that nova no longer has for the host."""
        stale = reason('member_of', '!in:y')
        self.assertEqual('stale', stale.kind)
        self.assertIn('--prune', stale.step)
        pending = reason('member_of', '!in:y', known=reasons.Facts(
            NOVA, pending={'h1': 7.0}))
        self.assertEqual(('pending', 'still ' + stale.phrase),
                         (pending.kind, pending.phrase))
        observed = reason(
            'member_of', '!in:y', 'n2', placement_query.Origin('tenant t'))
        self.assertEqual('in an aggregate that excludes tenant t',
                         observed.phrase)
        self.assertEqual('theirs (y)', observed.detail)

    def test_isolated_by_traits(self):
        """The request may require the traits, which is the remedy."""
        observed = reason('member_of', '!in:y', 'n2', placement_query.ISOLATED)
        self.assertEqual('in an aggregate whose traits the request does not '
                         'require', observed.phrase)
        self.assertIn('require the traits', observed.step)

    def is_stale(self, node, *aggregates):
        """Check whether placement is stale, if it has returned a node."""
        condition = placement_query.Condition(
            'member_of', 'in:' + ','.join(aggregates), ZONE)
        return reasons.is_stale(node, reasons.Facts(
            NOVA, funnel=candidates.Funnel(
                frozenset(), [(condition, frozenset())])))

    def test_node_that_passes_because_placement_is_stale(self):
        """Nova's own members pass with right."""
        self.assertFalse(self.is_stale('n1', 'z'))
        self.assertTrue(self.is_stale('n2', 'z'))

    def test_aggregates_of_others(self):
        """Those of segments, for example, are not nova's."""
        self.assertEqual('not in aggregate p, q',
                         reason('member_of', 'in:p,q').phrase)
        self.assertFalse(self.is_stale('n1', 'p'))


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
                ('in_tree', 'n1', 'the requested host h1')):
            self.assertEqual(title, reasons.title(
                placement_query.Condition(key, value), NOVA))


class TestTable(testtools.TestCase):

    def test_each_reason_has_texts_for_both_operations(self):
        """Each place in them is filled by those who give the reason."""
        for key in reason_table.REASONS:
            for operation in 'create', 'migrate':
                found = reasons.reason(
                    key, reasons.Facts(NOVA, operation=operation), **PLACES)
                self.assertNotIn('%', found.phrase + found.step)

    def test_what_only_a_creation_can_change(self):
        """A server keeps its flavor, image, hints and group."""
        moving = reasons.Facts(NOVA, operation='live-migrate')
        for key in reason_table.REASONS:
            self.assertNotRegex(
                reasons.reason(key, moving, **PLACES).step,
                'another (flavor,|flavor or|image|group)|the hint', key)
