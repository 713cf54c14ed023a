# SPDX-License-Identifier: Apache-2.0
"""Causes of misplacements that only times tell apart."""

import testtools

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import events
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.source import keyed_aggregates

RULE = constraints.Rule(
    'zone az-1', frozenset({'a'}), required=True,
    keys=keyed_aggregates.Keys(frozenset({'availability_zone'})))


def known(added=None, changed=None):
    """Return an aggregate of another zone, which has the host."""
    return keyed_aggregates.Aggregates(
        {'b': 'west'}, {'b': {'availability_zone': 'az-2', 'ssd': 'true'}},
        {'h1': {'b': added}},
        {('b', 'availability_zone'): changed, ('b', 'ssd'): 900.0})


def restricting(*aggregates):
    """Return the rule of a tenant for whom these are not."""
    return constraints.Rule('tenant b', frozenset(), frozenset(aggregates),
                            keys=constraints.TENANT_KEYS)


class TestCause(testtools.TestCase):

    def cause(self, aggregates, arrived=100.0, forced=False, syncs=(),
              moved='', rule=RULE):
        return events.cause(
            audit.PlacedServer(
                'u', 'n', 'h1', 'p', 'active', arrived, moved),
            rule, forced, aggregates, syncs)

    def restricted(self, added, changed=(), **options):
        """Return the cause for a host in aggregates of another tenant."""
        metadata = dict.fromkeys(added, {'filter_tenant_id': 'a'})
        aggregates = keyed_aggregates.Aggregates(
            {}, metadata, {'h1': added}, {
                (uuid, 'filter_tenant_id'): at for uuid, at in changed})
        return self.cause(aggregates, rule=restricting(*added), **options)

    def test_restricting_aggregate(self):
        """It is no cause if another one restricted the host before."""
        for added, changed, kind, since in (
                ({'x': 10.0, 'y': 200.0}, (), audit.FORCED, 100.0),
                ({'x': None, 'y': 200.0}, (), audit.FORCED, 100.0),
                ({'x': 150.0, 'y': 200.0}, (), audit.CHANGED, 150.0),
                ({'x': 150.0}, [('x', 120.0)], audit.CHANGED, 150.0),
                # It may have been an aggregate of both tenants.
                ({'x': 10.0, 'y': 10.0}, [('y', 200.0)],
                 audit.CHANGED, 200.0)):
            found = self.restricted(added, changed, forced=True)
            self.assertEqual((kind, since), (found.kind, found.since), added)
        self.assertEqual(audit.UNKNOWN, self.restricted(
            {'x': 10.0, 'y': 200.0}).kind)

    def test_aggregate_that_does_not_restrict(self):
        """Nova before 30 ignores keys with a suffix."""
        metadata = {'x': {'filter_tenant_id': 'a'},
                    'y': {'filter_tenant_id_2': 'a'}}
        for added, kind in (({'x': 200.0, 'y': 10.0}, audit.CHANGED),
                            ({'x': 10.0, 'y': 200.0}, audit.UNKNOWN)):
            self.assertEqual(kind, self.cause(keyed_aggregates.Aggregates(
                {}, metadata, {'h1': added}), rule=restricting('x')).kind)

    def test_added_aggregate_that_does_not_match(self):
        """It breaks no rule: it hints at a host that left another one."""
        for options, kind in (
                ({'forced': True}, audit.FORCED),
                ({'moved': 'evacuation'}, audit.MOVED),
                ({'syncs': [events.PastSync(50.0, 60.0, 0),
                            events.PastSync(110.0, 120.0, 1)]}, audit.DRIFT),
                ({}, audit.CHANGED)):
            self.assertEqual(
                kind, self.cause(known(200.0), **options).kind, options)
            self.assertEqual(audit.CHANGED, self.cause(
                known(200.0, 300.0), **options).kind, options)

    def test_latest_change_after_the_arrival(self):
        """Other metadata does not explain it."""
        for added, changed, kind, since in (
                (99.0, None, audit.UNKNOWN, None),
                (101.0, 99.0, audit.CHANGED, 101.0),
                (101.0, 200.0, audit.CHANGED, 200.0),
                (None, 100.0, audit.UNKNOWN, None)):
            found = self.cause(known(added, changed))
            self.assertEqual((kind, since), (found.kind, found.since))

    def test_key_with_a_space(self):
        """It is the key that counts, not the last word of the subject."""
        for key, kind in (('fast disk', audit.CHANGED),
                          ('disk', audit.UNKNOWN)):
            rule = constraints.Rule(
                "the flavor's extra spec %s" % key, frozenset(),
                required=True, keys=keyed_aggregates.Keys(frozenset({key})))
            self.assertEqual(kind, events.cause(
                audit.PlacedServer(
                    'u', 'n', 'h1', 'p', 'active', 100.0),
                rule, False, keyed_aggregates.Aggregates(
                    {'a': 'fast'}, {'a': {'fast disk': 'false'}},
                    {'h1': {'a': None}}, {('a', 'fast disk'): 900.0})).kind)

    def test_kinds_of_moves(self):
        """In words."""
        for kind, text in (('evacuation', 'an evacuation'),
                           ('resize', 'a resize'), ('new', 'a new')):
            self.assertEqual('moved to the host by ' + text,
                             self.cause(known(), moved=kind).text)

    def test_unknown_arrival(self):
        """Nothing can be called later than it."""
        self.assertEqual(audit.UNKNOWN, self.cause(
            known(101.0, 200.0), arrived=None,
            syncs=[events.PastSync(0.0, 1.0, 5)]).kind)

    def test_first_sync_after_the_arrival_tells(self):
        """If an earlier sync is known as well."""
        before = events.PastSync(50.0, 60.0, 0)
        for syncs, kind in (
                ([before, events.PastSync(110.0, 120.0, 3)], audit.DRIFT),
                ([before, events.PastSync(90.0, 110.0, 3)], audit.DRIFT),
                ([before, events.PastSync(101.0, 110.0, 0),
                  events.PastSync(120.0, 130.0, 3)], audit.UNKNOWN),
                ([events.PastSync(110.0, 120.0, 3)], audit.UNKNOWN),
                ([before], audit.UNKNOWN)):
            self.assertEqual(kind, self.cause(known(), syncs=syncs).kind,
                             syncs)

    def test_move_during_drift(self):
        """Both are told, and it is later than the creation."""
        syncs = [events.PastSync(50.0, 60.0, 0),
                 events.PastSync(110.0, 120.0, 1)]
        found = self.cause(known(), forced=True, syncs=syncs,
                           moved='live-migration')
        self.assertEqual(
            (audit.DRIFT, 'moved to the host by a live migration while '
             'placement differed from nova: the full sync of '
             '1970-01-01T00:02:00Z repaired 1 association', 100.0),
            (found.kind, found.text, found.since))
