# SPDX-License-Identifier: Apache-2.0
"""The first condition that each compute node does not pass, and the notes."""

import dataclasses

import testtools

from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import conditions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import placement_query
from nova_aggregate_mirror.explain import reasons
from nova_aggregate_mirror import source

NODES = frozenset('abcd')
NOVA = source.Nova(
    aggregates={'z': 'east'}, members={'host-a': frozenset('z')},
    nodes={node: 'host-' + node for node in NODES})
CONDITIONS = [
    placement_query.Condition('required', 'X'),
    placement_query.Condition(
        'member_of', 'in:z', placement_query.Origin('zone az', zone=True))]
# Every node passes every condition.
PASSING = reasons.Facts(
    NOVA, scope=NODES, states=NODES, requested=NODES,
    funnel=candidates.Funnel(
        NODES, [(condition, NODES) for condition in CONDITIONS],
        within_limit=NODES))


def narrowed(first=NODES, second=NODES, **changes):
    """Return the funnel with what passes the first and second condition."""
    return dataclasses.replace(
        PASSING.funnel, passed=[*zip(CONDITIONS, (first, second))], **changes)


def explain(**changes):
    return conditions.explain(dataclasses.replace(PASSING, **changes))


def without(node):
    return NODES - {node}


class TestSteps(testtools.TestCase):

    def assert_excluded(self, phrase, **changes):
        """Check that a node is excluded by a condition of its own."""
        answer = explain(**changes)
        [verdict] = [verdict for verdict in answer.verdicts
                     if verdict not in answer.acceptable]
        self.assertEqual(('host-d', phrase),
                         (verdict.host, verdict.reason.phrase))
        self.assertEqual(1, answer.conditions[verdict.condition].excluded)

    def test_each_step(self):
        """A node that passes all others has the reason of this condition."""
        left = without('d')
        for phrase, changes in (
                ('without a resource provider', {
                    'funnel': narrowed(existing=left)}),
                ('without trait X', {'funnel': narrowed(left, left)}),
                ('not in zone az', {'funnel': narrowed(NODES, left)}),
                ('not among the candidates of placement', {
                    'funnel': narrowed(within_limit=left)}),
                ('beyond max_placement_results', {
                    'funnel': narrowed(within_limit=left, answers=[
                        candidates.Candidates([{'allocations': {}}] * 4, {}, 3)
                    ])}),
                ('in another cell than the server', {
                    'elsewhere': frozenset('d')}),
                ('without a requested resource of its own', {
                    'funnel': narrowed(within_limit=left, answers=[
                        candidates.Candidates([], {'d': {}})])}),
                ('without a host state in nova-scheduler', {'states': left}),
                # It is in no cell, and not in another one.
                ('without a nova-compute service', {
                    'elsewhere': {'d'}, 'states': left, 'serviceless': {'d'}}),
                ('in a disabled cell', {
                    'states': left, 'cells_disabled': frozenset('d')}),
                ('not the requested host', {'requested': left}),
                ('the host to leave', {
                    'requested': left, 'ignored': frozenset('d')}),
                ('full', {'rehearsal': [reasons.FilterRun(
                    'NumInstancesFilter', {'d': ''})]})):
            self.assert_excluded(phrase, **changes)

    def test_first_step(self):
        """Later ones do not count, and the nodes left are those of all."""
        answer = explain(elsewhere=frozenset('a'), states=without('a'),
                         requested=without('b'), scores={
                             'c': {'RAMWeigher': 1.}, 'd': {'RAMWeigher': 2.}})
        self.assertEqual(
            [('d', 'acceptable'), ('c', 'acceptable'), ('a', 'cell'),
             ('b', 'not_requested')],
            [(verdict.node, verdict.reason.kind)
             for verdict in answer.verdicts])
        self.assertEqual(
            ['with a resource provider', 'trait X', 'in the aggregate east '
             '(z)', 'in the cell of the server', 'requested hosts'],
            [condition.name for condition in answer.conditions])

    def test_each_condition_that_a_node_fails(self):
        """In the order of the conditions, and each once."""
        [verdict] = explain(
            funnel=narrowed(without('b'), without('b')),
            disabled={'host-b': ''}, down={'host-b': False},
            elsewhere=frozenset('b'), ignored=frozenset('b'),
            rehearsal=[reasons.FilterRun('ComputeFilter', {'b': ''})],
            scope=frozenset('b')).verdicts
        self.assertEqual('without trait X', verdict.reason.phrase)
        self.assertEqual(
            ['not in zone az', 'in another cell than the server',
             'the host to leave', 'disabled', 'down'],
            [reason.phrase for reason in verdict.also])

    def test_refused_request(self):
        """No host is considered, whatever else is known."""
        answer = explain(refusal=reasons.Refusal('request filters', 'no zone'))
        self.assertEqual('no zone', answer.failure)
        self.assertEqual({'refused'}, {
            verdict.reason.kind for verdict in answer.verdicts})

    def test_refused_move(self):
        """Its cell is named if placement was asked before."""
        for responses, also in (None, []), (PASSING.funnel, ['cell']):
            answer = explain(
                refusal=reasons.Refusal('request filters', 'no zone'),
                elsewhere=frozenset('d'), funnel=responses)
            self.assertEqual(also, [
                reason.kind for reason in answer.verdicts[-1].also])

    def test_shown_hosts(self):
        """Other nodes are neither listed nor counted."""
        answer = explain(scope=frozenset('ab'), states=without('b'))
        self.assertEqual(['a', 'b'], [
            verdict.node for verdict in answer.verdicts])
        self.assertEqual(1, answer.conditions[-1].left)


class TestFilters(testtools.TestCase):

    def reason(self, run, **changes):
        verdict = explain(rehearsal=[run], **changes).verdicts[-1]
        return verdict.reason.phrase, verdict.reason.detail

    def test_guard(self):
        """Whether a rule or a difference of placement excludes the host."""
        run = reasons.FilterRun('AggregateMembershipFilter', {'a': 'text'})
        differing = 'in other aggregates in nova than in placement'
        self.assertEqual(
            (differing, 'AggregateMembershipFilter: text'), self.reason(run))
        broken = dataclasses.replace(run, broken_rules=frozenset('a'))
        self.assertEqual('in aggregates that exclude the request',
                         self.reason(broken)[0])
        # Placement has b in the zone, and nova has not.
        other = reasons.FilterRun(run.name, {'b': ''}, frozenset('b'))
        self.assertEqual(differing, self.reason(other)[0])

    def test_service(self):
        """Nova's databases have the cause, whatever the filter logs."""
        run = reasons.FilterRun('ComputeFilter', {'a': ''})
        self.assertEqual('down', self.reason(run)[0])
        self.assertEqual('disabled', self.reason(
            run, disabled={'host-a': ''})[0])
        phrase, *_others = self.reason(
            run, down={'host-a': True})
        self.assertEqual('forced down', phrase)

    def test_service_of_a_host_that_another_filter_rejects(self):
        """The ComputeFilter does not get it, and would reject it."""
        runs = [reasons.FilterRun('IoOpsFilter', {'a': '', 'b': ''}),
                reasons.FilterRun('ComputeFilter', {})]
        answer = explain(
            rehearsal=runs, down={'host-a': False, 'host-c': False},
            disabled={'host-b': ''}, scores={'c': {}})
        verdicts = {verdict.host: verdict for verdict in answer.verdicts}
        self.assertEqual(
            {'host-a': ['down'], 'host-b': ['disabled'], 'host-c': [],
             'host-d': []}, {host: [reason.phrase for reason in verdict.also]
                             for host, verdict in verdicts.items()})
        # A request for this host passes no other filter.
        self.assertEqual('acceptable', verdicts['host-c'].reason.kind)

    def test_service_of_the_host_of_a_rebuild(self):
        """The ComputeFilter is not applied to it, and rejects no host."""
        verdicts = explain(
            rehearsal=[reasons.FilterRun('ComputeFilter', {})],
            down={'host-a': False}, disabled={'host-b': ''},
            funnel=None).verdicts
        self.assertEqual({'acceptable'}, {
            verdict.reason.kind for verdict in verdicts})

    def test_server_that_stays(self):
        """Its node is left, or those of its host, whatever their service."""
        nova = dataclasses.replace(NOVA, nodes={**NOVA.nodes, 'b': 'host-a'})
        staying = reasons.Facts(
            nova, explanation.Answer(stays='on its host'), scope=NODES,
            serviceless=frozenset('a'), cells_disabled=NODES, elsewhere=NODES)
        for node, left in ('b', 'b'), ('name', 'ab'):
            self.assertEqual({*left}, {
                verdict.node for verdict in conditions.explain(
                    staying.staying_on('host-a', node)).acceptable})

    def test_filter_that_got_no_host(self):
        """It is left out, unless it would reject hosts."""
        runs = [reasons.FilterRun(name, rejected) for name, rejected in (
            ('First', {'a': '', 'b': '', 'c': '', 'd': ''}), ('Second', {}),
            ('Third', {'a': ''}))]
        self.assertEqual('First', explain(
            rehearsal=runs, scores={}).conditions[-1].name)

    def test_filter_that_is_not_listed(self):
        """It is named."""
        self.assertEqual(
            ('rejected by RackFilter', 'RackFilter'),
            self.reason(reasons.FilterRun('RackFilter', {'a': ''})))
        # The operator's own filter is not in nova's documentation.
        run = reasons.FilterRun(
            'RackFilter', {'a': ''}, module='house.filters')
        self.assertEqual(
            'see the filter in the module house.filters',
            explain(rehearsal=[run]).verdicts[-1].reason.step)


class TestNotes(testtools.TestCase):

    def test_notes(self):
        """In the order of the conditions; the request's own are first."""
        notes = explain(
            answer=explanation.Answer({}, notes=['own']),
            rehearsal=[reasons.FilterRun(
                'AggregateTypeAffinityFilter', {'a': ''})]).notes
        self.assertEqual('own', notes[0])
        self.assertEqual(
            'Placement has these hosts in an aggregate that the request '
            'needs, nova does not: host-b, host-c, host-d. Run '
            '"nova-aggregate-mirror-manage placement sync_aggregates '
            '--prune".', notes[1])
        self.assertIn('nova-scheduler has aggregates in its memory', notes[2])
