# SPDX-License-Identifier: Apache-2.0
"""Rules of an audit: which are enforced, what each requires, and causes."""

import fixtures
from nova.conf import availability_zone
from nova.conf import scheduler as nova_options
import testtools

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import readers
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.source import keyed_aggregates
from tests.unit import doubles


RULE = constraints.Rule(
    'zone az-1', frozenset({'a'}), required=True,
    keys=keyed_aggregates.Keys(frozenset({'availability_zone'})))


class TestOptions(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = doubles.make_conf(self)
        self.conf.register_opts(nova_options.scheduler_opts, 'scheduler')
        self.conf.register_opts(nova_options.filter_scheduler_opts,
                                'filter_scheduler')
        availability_zone.register_opts(self.conf)

    def choose(self, *names):
        self.conf.set_override('request_filters', [*names], 'aggregate_mirror')

    def enable(self, group, **options):
        for name, value in options.items():
            self.conf.set_override(name, value, group)

    def test_rules_that_are_enforced(self):
        """Those of enabled filters, of either kind, in the list's order.

        Filters without a rule of their own add none.
        """
        self.assertEqual(['zone'], rules.enforced(self.conf))
        self.choose('type_affinity', 'segment_addresses', 'of_another',
                    'default_availability_zone')
        self.enable('filter_scheduler', enabled_filters=[
            'AggregateInstanceExtraSpecsFilter'])
        self.enable('scheduler', limit_tenants_to_placement_aggregate=True,
                    query_placement_for_routed_network_aggregates=True)
        self.assertEqual(['zone', 'tenant_isolation', 'flavor_extra_specs',
                          'type_affinity', 'segment', 'of_another'],
                         rules.enforced(self.conf))

    def test_request_filters_that_are_loaded(self):
        """Each that has a rule; nova may confine tenants by another."""
        self.assertEqual({}, readers.read_settings(self.conf, []).filters)
        self.choose('type_affinity', 'segment_addresses')
        self.assertEqual(
            {'type_affinity'},
            readers.read_settings(self.conf, []).filters.keys())
        self.enable('scheduler', limit_tenants_to_placement_aggregate=True)
        for names in [], ['tenant_isolation']:
            self.assertEqual(
                names or ['type_affinity'],
                [*readers.read_settings(self.conf, names).filters])

    def test_rules_of_filters_can_be_selected(self):
        """Each is loaded, also without a host filter of nova."""
        self.useFixture(fixtures.MockPatchObject(
            filter_table, 'HOST_FILTERS', {}))
        names = {row.name for row in filter_table.FILTERS if row.metadata}
        self.assertEqual(names, readers.read_settings(
            self.conf, names).filters.keys())

    def test_default_zone(self):
        """It is compared if a filter enforces it, or if asked for."""
        for chosen, names, zone in (
                ([], [], ''), ([], ['segment'], ''), ([], ['zone'], 'nova'),
                ([], ['default_zone'], 'nova'),
                (['default_availability_zone'], [], 'nova')):
            self.choose(*chosen)
            self.assertEqual(zone, readers.read_settings(
                self.conf, names).default_zone)


class TestRules(testtools.TestCase):
    """A host in aggregate ``a``, and servers of tenant ``p`` on it."""

    def broken(self, metadata, segments=None, zone='', **settings):
        """Audit a server; return the rules that its host does not pass."""
        auditing = auditor.Auditor(
            rules.RULES, keyed_aggregates.Aggregates(
                {'a': 'east', 'b': 'west'}, metadata, {'h1': {'a': None}}),
            rules.Settings(**settings))
        misplacements = [*auditing.run([auditor.AuditedServer(
            audit.PlacedServer('u', 'n', 'h1', 'p', 'active'),
            constraints.ServerRequest('p', 'f', {}, {}, zone),
            segments=frozenset((segments or {}).items()))])]
        self.totals = auditing.totals
        return [(misplacement.rule, misplacement.requested,
                 misplacement.actual)
                for misplacement in misplacements]

    def test_zone(self):
        """Nova requires no zone that no aggregate has, but the default."""
        zone = {'a': {'availability_zone': 'az-1'},
                'b': {'availability_zone': 'az-2'}}
        self.assertEqual([('zone', 'zone az-2', 'zone az-1')],
                         self.broken(zone, zone='az-2'))
        for requested in ('az-1', 'az-3', '', 'nova'):
            self.assertEqual([], self.broken(zone, zone=requested))
        self.assertIn(
            ('zone', 'zone nova', 'zone az-1'),
            self.broken(zone, zone='nova', default_zone='nova'))
        self.assertEqual([('zone', 'zone az-2', 'no zone')], self.broken(
            {'b': zone['b']}, zone='az-2'))

    def test_default_zone(self):
        """A server that is pinned to it, unless it is a zone itself."""
        zone = {'a': {'availability_zone': 'az-1'}}
        self.assertIn(('default_zone', 'zone nova', 'zone az-1'),
                      self.broken(zone, zone='nova', default_zone='nova'))
        self.assertEqual([('default_zone', 'zone nova', 'no zone')],
                         self.broken({}, zone='nova', default_zone='nova'))
        for requested in ('', 'az-1'):
            self.assertEqual([], self.broken(
                zone, zone=requested, default_zone='nova'))
        self.assertEqual({'zone'}, {rule for rule, *_texts in self.broken(
            {'b': {'availability_zone': 'nova'}}, zone='nova',
            default_zone='nova')})

    def test_tenant_that_nova_confines(self):
        """It may use its own aggregates only, if it has any or needs one."""
        own = {'b': {'filter_tenant_id_1': 'p'}}
        self.assertEqual([], self.broken(own))
        self.assertEqual([('tenant_isolation', 'tenant p', 'not in west (b)')],
                         self.broken(own, tenants_confined=True))
        self.assertEqual([], self.broken({}, tenants_confined=True))
        self.assertEqual(
            [('tenant_isolation', 'tenant p', 'no aggregate matches')],
            self.broken({}, tenants_confined=True,
                        tenants_need_aggregate=True))

    def test_segments(self):
        """Each server has its own; one server may break a rule twice."""
        self.assertEqual(
            [('segment', 'segment s1', 'not in west (b)'),
             ('segment', 'segment s3', 'not in west (b)')],
            self.broken({}, {'s3': frozenset('b'), 's2': frozenset('ab'),
                             's1': frozenset('b')}))
        self.assertEqual((1, {'segment': 1}), (
            self.totals.misplaced, self.totals.by_rule))


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
    """Causes of misplacements that only times tell apart."""

    def cause(self, aggregates, arrived=100.0, forced=False, syncs=(),
              moved='', rule=RULE):
        return rules.cause(
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
                ({'syncs': [rules.PastSync(50.0, 60.0, 0),
                            rules.PastSync(110.0, 120.0, 1)]}, audit.DRIFT),
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
            aggregates = keyed_aggregates.Aggregates(
                {'a': 'fast'}, {'a': {'fast disk': 'false'}},
                {'h1': {'a': None}}, {('a', 'fast disk'): 900.0})
            self.assertEqual(kind, self.cause(aggregates, rule=rule).kind)

    def test_kinds_of_moves(self):
        """In words."""
        for kind, text in (('evacuation', 'an evacuation'),
                           ('resize', 'a resize'), ('new', 'a new')):
            self.assertEqual('moved to the host by ' + text,
                             self.cause(known(), moved=kind).text)

    def test_first_sync_after_the_arrival_tells(self):
        """If an earlier sync is known as well.

        Nothing can be called later than an unknown arrival.
        """
        self.assertEqual(audit.UNKNOWN, self.cause(
            known(101.0, 200.0), arrived=None,
            syncs=[rules.PastSync(0.0, 1.0, 5)]).kind)
        before = rules.PastSync(50.0, 60.0, 0)
        for syncs, kind in (
                ([before, rules.PastSync(110.0, 120.0, 3)], audit.DRIFT),
                ([before, rules.PastSync(90.0, 110.0, 3)], audit.DRIFT),
                ([before, rules.PastSync(101.0, 110.0, 0),
                  rules.PastSync(120.0, 130.0, 3)], audit.UNKNOWN),
                ([rules.PastSync(110.0, 120.0, 3)], audit.UNKNOWN),
                ([before], audit.UNKNOWN)):
            self.assertEqual(kind, self.cause(known(), syncs=syncs).kind,
                             syncs)

    def test_move_during_drift(self):
        """Both are told, and it is later than the creation."""
        syncs = [rules.PastSync(50.0, 60.0, 0),
                 rules.PastSync(110.0, 120.0, 1)]
        found = self.cause(known(), forced=True, syncs=syncs,
                           moved='live-migration')
        self.assertEqual(
            (audit.DRIFT, 'moved to the host by a live migration while '
             'placement differed from nova: the full sync of '
             '1970-01-01T00:02:00Z repaired 1 association', 100.0),
            (found.kind, found.text, found.since))
