# SPDX-License-Identifier: Apache-2.0
"""The page of an explained request: bars, rows of hosts, and escaping."""

import re
import uuid

import testtools

from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.html_report import page

NOW = 1.7e9
EVIL = '<script>document.title = "evil"</script><b title=\'&amp;'
GOOD = explanation.Reason(explanation.ACCEPTABLE, explanation.ACCEPTABLE)
OFF = explanation.Reason(
    'disabled', 'disabled', 'reason: fan', 'enable ' + explanation.HOST)


def explained(hosts, excluded, reason=OFF, **options):
    """Build the answer of a cloud.

    :param excluded: number of hosts that each condition excludes
    """
    nodes = [str(uuid.UUID(int=number << 64)) for number in range(hosts)]
    conditions, verdicts, start = [], [], 0
    for number, count in enumerate(excluded):
        end = start + count
        verdicts += [explanation.Verdict(
            nodes[at], 'cmp-%04d' % at, reason, number)
            for at in range(start, end)]
        conditions.append(explanation.Condition(
            'condition %d' % number, 'flavor', hosts - end, count))
        start = end
    left = [explanation.Verdict(
        nodes[at], 'cmp-%04d' % at, GOOD, len(conditions),
        scores={'RAM': float(hosts - at)}) for at in range(start, hosts)]
    return explanation.Answer(
        {'flavor': 'm1'}, conditions, [*left, *verdicts], **options)


def rendered(answer):
    return ''.join(page.generate(
        explanation.PAGE, NOW, answer=answer, view=explanation))


class TestBars(testtools.TestCase):

    def test_shares_of_all_compute_nodes(self):
        """What is left and what is excluded add up to the bar above."""
        text = rendered(explained(200, [0, 50, 150]))
        self.assertEqual(
            [('left', '100%'), ('left', '100%'), ('left', '75%'),
             ('excluded', '25%'), ('excluded', '75%')],
            re.findall('class="([a-z]+)" style="width:([^"]+)"', text))
        self.assertEqual(1, text.count('<tr class="last">'))

    def test_nova_without_compute_nodes(self):
        """There is no bar, and the page says why."""
        text = rendered(explained(0, [0]))
        self.assertNotIn('style="width', text)
        self.assertIn('Nova shows no compute node.', text)

    def test_what_is_said_beside_the_answer(self):
        """What is down, and what was not looked at."""
        text = rendered(explained(
            2, [1], remarks=['No nova-scheduler is up'],
            not_looked_at='quotas'))
        first = text.partition('<h1')[0]
        self.assertIn('<p><bdi>No nova-scheduler is up</bdi></p>', first)
        self.assertIn('Not looked at: quotas.', text)

    def test_links_to_the_hosts(self):
        """Each condition that excludes hosts leads to their first row."""
        text = rendered(explained(9, [2, 0, 3]))
        self.assertEqual(['condition-0', 'condition-2'],
                         re.findall('<a href="#([^"]+)"', text))
        self.assertEqual(['condition-3', 'condition-0', 'condition-2'],
                         re.findall('<tr id="([^"]+)"', text))


class TestHosts(testtools.TestCase):

    def test_every_host_is_named(self):
        """Hosts in the same state share a row, which names all of them."""
        text = rendered(explained(20, [12]))
        self.assertIn('<b>12 hosts</b> from <bdi>cmp-0000</bdi>', text)
        self.assertIn('<b>8 hosts</b> from <bdi>cmp-0012</bdi>', text)
        self.assertEqual(20, text.count('<li><bdi>cmp-'))
        self.assertIn('<bdi>cmp-0012</bdi> <i>8.00</i>', text)
        self.assertIn('&lt;host&gt; stands for the name of each', text)
        self.assertIn('enable &lt;host&gt;', text)

    def test_size(self):
        """A host adds its name, and nothing else."""
        sizes = [len(rendered(explained(hosts, [hosts])))
                 for hosts in (0, 5000)]
        self.assertLess(sizes[0], 16 * 1024)
        self.assertLess((sizes[1] - sizes[0]) / 5000, 32)

    def test_single_host(self):
        """Its step has its name, and no placeholder."""
        text = rendered(explained(3, [1]))
        self.assertIn('<b><bdi>cmp-0000</bdi></b>', text)
        self.assertIn('enable cmp-0000', text)
        self.assertNotIn('enable &lt;host&gt;', text)

    def test_further_conditions(self):
        """Each with its step, which names a single host."""
        down = explanation.Reason(
            'down', 'down', '', 'start ' + explanation.HOST)
        text = rendered(explanation.Answer({}, [], [
            explanation.Verdict('node', 'cmp', OFF, 0, also=(down,))]))
        self.assertIn('also: <bdi>down</bdi>', text)
        self.assertIn('<bdi>start cmp</bdi>', text)

    def test_several_nodes_of_a_host(self):
        """Their UUIDs tell them apart."""
        text = rendered(explanation.Answer({}, [], [
            explanation.Verdict('node-%d' % one, 'ironic', OFF, 0)
            for one in range(2)]))
        self.assertIn('<b>2 compute nodes</b> from <bdi>ironic</bdi>', text)
        self.assertIn('<bdi>ironic</bdi> <code>node-1</code>', text)
        self.assertNotIn('<code>', rendered(explained(3, [2])))

    def test_hosts_of_the_servers(self):
        """The hosts of the servers are listed with their numbers."""
        text = rendered(explained(
            3, [1], count=4, placed=['cmp-0001', 'cmp-0002', 'cmp-0001']))
        self.assertIn('Requested at once: 4; with a host: 3.', text)
        self.assertIn('2 on <bdi>cmp-0001</bdi>', text)
        self.assertNotIn('id="servers"', rendered(explained(3, [1])))
        text = rendered(explained(
            3, [1], placed=['cmp-0001'], fills=True, zones={'az-1': 1}))
        self.assertIn('1 in zone <bdi>az-1</bdi>', text)


class TestEscaping(testtools.TestCase):

    def test_every_text_is_escaped(self):
        """No value becomes markup, wherever it is shown."""
        reason = explanation.Reason(EVIL, EVIL, EVIL, EVIL)
        what = explanation.Answer(
            {EVIL: EVIL}, [explanation.Condition(EVIL, EVIL, 0, 2)],
            [explanation.Verdict(EVIL, EVIL, reason, 0, also=(reason,))] * 2,
            [EVIL],
            placed=[EVIL], count=2, failure=EVIL)
        text = rendered(what)
        self.assertEqual(1, text.count('<script>'))
        self.assertNotIn('<b title', text)
        # Title and headline with a failure and a host each, name and value of
        # the request, note, condition, who asked, hosts with nodes, two
        # reasons with details and steps, and host of a server.
        self.assertEqual(21, text.count('&lt;script&gt;'))

    def test_long_texts_are_folded(self):
        """A condition with many aggregates takes a few lines, not a page."""
        names = ', '.join('aggregate-%d' % one for one in range(99))
        what = explained(2, [1])
        condition = explanation.Condition(names, '', 1, 1)
        text = rendered(explanation.Answer({}, [condition], what.verdicts))
        self.assertIn('<summary><bdi>%s…</bdi>' % names[:90], text)
        self.assertIn('<bdi>%s</bdi></details>' % names, text)
