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
BEFORE = rules.PastSync(50.0, 60.0, 0)
AFTER = rules.PastSync(110.0, 120.0, 1)


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

    def settings(self, *names):
        return readers.read_settings(self.conf, names)

    def test_rules_that_are_enforced(self):
        """Those of enabled filters, of either kind, in the list's order.

        Filters without a rule of their own add none.
        """
        self.assertEqual(['zone'], rules.enforced(self.conf))
        self.choose('type_affinity', 'segment_addresses', 'of_another',
                    'default_availability_zone')
        for group, option, value in (
                ('filter_scheduler', 'enabled_filters',
                 ['AggregateInstanceExtraSpecsFilter']),
                ('scheduler', 'limit_tenants_to_placement_aggregate', True),
                ('scheduler', 'query_placement_for_routed_network_aggregates',
                 True)):
            self.conf.set_override(option, value, group)
        self.assertEqual(['zone', 'tenant_isolation', 'flavor_extra_specs',
                          'type_affinity', 'segment', 'of_another'],
                         rules.enforced(self.conf))

    def test_request_filters_that_are_loaded(self):
        """Each that has a rule; nova may confine tenants by another."""
        self.assertEqual({}, self.settings().filters)
        self.choose('type_affinity', 'segment_addresses')
        self.assertEqual({'type_affinity'}, self.settings().filters.keys())
        self.conf.set_override(
            'limit_tenants_to_placement_aggregate', True, 'scheduler')
        for names in [], ['tenant_isolation']:
            self.assertEqual(names or ['type_affinity'],
                             [*self.settings(*names).filters])

    def test_rules_of_filters_can_be_selected(self):
        """Each is loaded, also without a host filter of nova."""
        self.useFixture(fixtures.MockPatchObject(
            filter_table, 'HOST_FILTERS', {}))
        names = {row.name for row in filter_table.FILTERS if row.metadata}
        self.assertEqual(names, self.settings(*names).filters.keys())

    def test_default_zone(self):
        """It is compared if a filter enforces it, or if asked for."""
        for chosen, names, zone in (
                ([], [], ''), ([], ['segment'], ''), ([], ['zone'], 'nova'),
                ([], ['default_zone'], 'nova'),
                (['default_availability_zone'], [], 'nova')):
            self.choose(*chosen)
            self.assertEqual(zone, self.settings(*names).default_zone)


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
        """Nova requires no zone that no aggregate has, but the default.

        That is required of a server which is pinned to it, unless it is a
        zone itself.
        """
        east = {'a': {'availability_zone': 'az-1'}}
        west = {'b': {'availability_zone': 'az-2'}}
        nova = {'b': {'availability_zone': 'nova'}}
        for zones, zone, default, names, actual in (
                (east | west, 'az-2', '', ['zone'], 'zone az-1'),
                (west, 'az-2', '', ['zone'], 'no zone'),
                (east | west, 'az-1', '', [], ''),
                (east | west, 'az-3', '', [], ''),
                (east | west, '', '', [], ''),
                (east | west, 'nova', '', [], ''),
                (east, 'nova', 'nova', ['default_zone', 'zone'], 'zone az-1'),
                ({}, 'nova', 'nova', ['default_zone'], 'no zone'),
                (east, '', 'nova', [], ''), (east, 'az-1', 'nova', [], ''),
                (nova, 'nova', 'nova', ['zone'], 'no zone')):
            self.assertEqual(
                [(name, 'zone ' + zone, actual) for name in names],
                sorted(self.broken(zones, zone=zone, default_zone=default)))

    def test_tenant_that_nova_confines(self):
        """It may use its own aggregates only, if it has any or needs one."""
        own = {'b': {'filter_tenant_id_1': 'p'}}
        for metadata, needs, actual in (
                (own, {}, ''), (own, {'tenants_confined': True},
                                'not in west (b)'),
                ({}, {'tenants_confined': True}, ''),
                ({}, {'tenants_confined': True,
                      'tenants_need_aggregate': True},
                 'no aggregate matches')):
            self.assertEqual(
                [('tenant_isolation', 'tenant p', actual)] if actual else [],
                self.broken(metadata, **needs))

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

    def test_restricting_aggregate(self):
        """It is no cause if another one restricted the host before."""
        def restricted(added, changed=(), **options):
            metadata = dict.fromkeys(added, {'filter_tenant_id': 'a'})
            found = self.cause(keyed_aggregates.Aggregates(
                {}, metadata, {'h1': added}, {
                    (uuid, 'filter_tenant_id'): at for uuid, at in changed}),
                rule=restricting(*added), **options)
            return found.kind, found.since

        for added, changed, *expected in (
                ({'x': 10.0, 'y': 200.0}, (), audit.FORCED, 100.0),
                ({'x': None, 'y': 200.0}, (), audit.FORCED, 100.0),
                ({'x': 150.0, 'y': 200.0}, (), audit.CHANGED, 150.0),
                ({'x': 150.0}, [('x', 120.0)], audit.CHANGED, 150.0),
                # It may have been an aggregate of both tenants.
                ({'x': 10.0, 'y': 10.0}, [('y', 200.0)],
                 audit.CHANGED, 200.0)):
            self.assertEqual(
                (*expected,), restricted(added, changed, forced=True), added)
        self.assertEqual(audit.UNKNOWN, restricted({'x': 10.0, 'y': 200.0})[0])

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
                ({'syncs': [BEFORE, AFTER]}, audit.DRIFT),
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
        for syncs, kind in (
                ([BEFORE, AFTER], audit.DRIFT),
                ([BEFORE, rules.PastSync(90.0, 110.0, 3)], audit.DRIFT),
                ([BEFORE, rules.PastSync(101.0, 110.0, 0),
                  rules.PastSync(120.0, 130.0, 3)], audit.UNKNOWN),
                ([AFTER], audit.UNKNOWN), ([BEFORE], audit.UNKNOWN)):
            self.assertEqual(
                kind, self.cause(known(), syncs=syncs).kind, syncs)

    def test_move_during_drift(self):
        """Both are told, and it is later than the creation."""
        found = self.cause(known(), forced=True, syncs=[BEFORE, AFTER],
                           moved='live-migration')
        self.assertEqual(
            (audit.DRIFT, 'moved to the host by a live migration while '
             'placement differed from nova: the full sync of '
             '1970-01-01T00:02:00Z repaired 1 association', 100.0),
            (found.kind, found.text, found.since))
