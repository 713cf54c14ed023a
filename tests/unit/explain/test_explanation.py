# SPDX-License-Identifier: Apache-2.0
"""The summary of an explanation, its tables and its JSON document."""

import json

import testtools

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror import printable

GOOD = explanation.Reason(explanation.ACCEPTABLE, explanation.ACCEPTABLE)
OFF = explanation.Reason(
    'disabled', 'disabled', '', 'enable ' + explanation.HOST)


def verdict(host, reason, condition, *also):
    return explanation.Verdict(
        'node-' + host, host, reason, condition, also=also)


def answer(**options):
    """Build the answer of a cloud with 11 hosts; 2 of them are left."""
    full = explanation.Reason('resources', 'full', 'free 0')
    verdicts = [
        *(verdict('good-%d' % one, GOOD, 2) for one in range(2)),
        *(verdict('off-%d' % one, OFF, 0) for one in range(8)),
        verdict('full', full, 1, OFF)]
    return explanation.Answer({'flavor': 'm1'}, [
        explanation.Condition('enabled', 'nova', 3, 8),
        explanation.Condition('1 VCPU', 'flavor', 2, 1)],
        verdicts, **options)


class TestSentence(testtools.TestCase):

    def test_reasons_by_number(self):
        """The most frequent reason comes first."""
        self.assertEqual(
            'nova-scheduler finds 2 of 11 hosts (good-0, good-1): '
            '8 disabled, 1 full',
            explanation.sentence(answer()))

    def test_no_acceptable_host(self):
        """No host is named; what applies to all is said instead of each."""
        every = answer().verdicts
        others = every[2:]
        for verdicts, options, text in (
                (others, {}, 'finds 0 of 9 hosts: 8 disabled, 1 full'),
                (others, {'failure': 'no such zone'},
                 'finds 0 of 9 hosts: no such zone'),
                (every, {'stays': 'it is not offloaded'},
                 'is not asked: it is not offloaded'),
                # A cell may be down.
                ([], {}, 'finds 0 of 0 hosts: nova shows no compute node')):
            self.assertEqual(
                'nova-scheduler ' + text, explanation.sentence(
                    explanation.Answer({}, [], verdicts, **options)))
        self.assertFalse(explanation.Answer({}, [], others).possible)

    def test_several_nodes(self):
        """Nodes are counted then, and the host is named once."""
        found = explanation.Answer({}, [], [
            explanation.Verdict('node-%d' % one, 'ironic-1', GOOD, 0)
            for one in range(3)])
        self.assertEqual(
            'nova-scheduler finds 3 of 3 compute nodes (ironic-1 with 3 '
            'nodes)', explanation.sentence(found))

    def test_several_servers(self):
        """They are possible if each has a host."""
        found = answer(count=4, placed=['good-0', 'good-1', 'good-0'])
        self.assertTrue(explanation.sentence(found).endswith(
            '. 3 of 4 servers fit at once: 2 on good-0, 1 on good-1'))
        self.assertFalse(found.possible)
        self.assertTrue(answer(count=1).possible)


class TestText(testtools.TestCase):

    def test_hosts_in_the_same_state_share_a_row(self):
        """Their step has a placeholder; a single host has its name."""
        self.assertEqual([
            (2, 'good-0, good-1', 'acceptable', '', '', ''),
            (8, 'off-0, off-1, off-2, off-3, off-4, off-5 and 2 more',
             'disabled', '', 'enable <host>', ''),
            (1, 'full', 'full', 'free 0', '', 'disabled'),
        ], explanation.rows(answer()))
        self.assertIn('also: disabled', explanation.text(answer()))

    def test_several_nodes_of_a_host(self):
        """Their step has the name of the host, as that of one node has."""
        answer = explanation.Answer({}, [], [verdict('a', OFF, 0, OFF)] * 2)
        self.assertEqual(
            [(2, 'a with 2 nodes', 'disabled', '', 'enable a', 'disabled')],
            explanation.rows(answer))

    def test_further_reasons_with_other_figures(self):
        """Hosts share a row if the phrases are the same."""
        few, none = (explanation.Reason('resources', 'full', detail)
                     for detail in ('free 1', 'free 0'))
        verdicts = [verdict('a', OFF, 0, few, OFF),
                    verdict('b', OFF, 0, none, OFF), verdict('c', OFF, 0, few)]
        rows = explanation.rows(explanation.Answer({}, [], verdicts))
        self.assertEqual(
            [('a, b', 'full; disabled'), ('c', 'full')],
            [(row[1], row[5]) for row in rows])
        self.assertEqual([OFF, explanation.Reason('resources', 'full'), OFF],
                         explanation.reasons(verdicts[:2]))

    def test_zones_beside_rows(self):
        """No row of csv has how many servers fit into a zone."""
        answer = explanation.Answer(
            fills=True, count=1, placed=['h1'], zones={'az-1': 1})
        self.assertIn('| az-1 | 1 ', explanation.text(answer, tables=False))

    def test_name_with_a_space(self):
        """The command can be typed as it is."""
        self.assertEqual("enable 'a b'", OFF.with_host('a b').step)

    def test_funnel(self):
        """How many are left after each condition, and how many it excludes."""
        self.assertEqual([
            ('compute nodes in nova', '', 11, 0), ('enabled', 'nova', 3, 8),
            ('1 VCPU', 'flavor', 2, 1)], explanation.funnel(answer()))

    def test_text(self):
        """Remarks come first, then the sentence; notes are the last."""
        lines = explanation.text(answer(
            notes=['a cell is down'], remarks=['first'],
            not_looked_at='quotas')).splitlines()
        self.assertEqual('first', lines[0])
        self.assertEqual(explanation.sentence(answer()), lines[2])
        self.assertEqual('Not looked at: quotas.', lines[4])
        self.assertEqual('Request: flavor m1', lines[6])
        self.assertEqual('Note: a cell is down', lines[-1])

    def test_text_that_controls_the_terminal(self):
        """Flavors and images have their names from users."""
        evil = 'a\x1b[2J\nb\u202e'
        reason = explanation.Reason('disabled', evil, evil, evil)
        condition = explanation.Condition(evil, evil, 0, 1)
        text = explanation.text(explanation.Answer(
            {evil: evil}, [condition], [verdict(evil, reason, 0)],
            notes=[evil]))
        self.assertEqual(printable.lines(text), text)

    def test_document(self):
        """Each host has its own step there."""
        found = json.loads(json.dumps(explanation.document(answer())))
        self.assertEqual({
            'host': 'off-7', 'node': 'node-off-7', 'weight': None,
            'weights': {}, 'condition': 0,
            'kind': 'disabled', 'reason': 'disabled', 'detail': '',
            'step': 'enable off-7', 'also': []}, found['hosts'][9])
        self.assertEqual(
            [{'kind': 'disabled', 'reason': 'disabled', 'detail': '',
              'step': 'enable full'}], found['hosts'][10]['also'])
        self.assertEqual(
            {'condition': 'enabled', 'asked_by': 'nova', 'left': 3,
             'excluded': 8}, found['conditions'][1])
