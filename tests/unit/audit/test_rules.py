# SPDX-License-Identifier: Apache-2.0
"""Rules of an audit: which are enforced, and what each requires."""

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
