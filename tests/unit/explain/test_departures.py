# SPDX-License-Identifier: Apache-2.0
"""The answer about the servers of a host, as text and as a document."""

import testtools

from nova_aggregate_mirror.explain import departures
from nova_aggregate_mirror.explain import explanation

WEB = departures.Departure('uuid-1', 'web', 'active', 'live-migrate', 'small',
                           'h2', ('h2', 'h3'))
LATE = departures.Departure(
    'uuid-2', 'late', 'active', 'live-migrate', 'large', first='h2',
    reason='no host is left')
BROKEN = departures.Departure(
    'uuid-3', 'broken', 'error', '', 'small', reason='in ERROR')


class TestAnswer(testtools.TestCase):

    def test_sentence(self):
        """It begins with what is asked."""
        for expected, found in (
                ('No server is on h1', []),
                ('1 of 1 server finds a host', [WEB]),
                ('1 of 3 servers find a host; 1 does not: late (no host is '
                 'left); 1 cannot be moved now (1 in ERROR)',
                 [WEB, LATE, BROKEN])):
            self.assertEqual(expected, departures.sentence(
                departures.Answer('h1', found)))

    def test_status(self):
        for possible, found in ((True, []), (True, [WEB]),
                                (False, [WEB, LATE]), (False, [WEB, BROKEN])):
            self.assertIs(possible, departures.Answer('h1', found).possible)

    def test_text(self):
        """Each server has its host, or why it has none."""
        text = departures.text(departures.Answer(
            'h1', [WEB, BROKEN], ['No nova-scheduler is up']))
        self.assertTrue(text.startswith('No nova-scheduler is up\n\n1 of 2'))
        self.assertIn('| web    | active | live-migrate | small  | h2', text)
        self.assertIn('| broken | error  | -            | small  | in ERROR',
                      text)

    def test_document(self):
        """A program tells the kinds apart."""
        document = departures.document(
            departures.Answer('h1', [WEB, LATE, BROKEN]))
        self.assertEqual(
            [('found', 'h2', ''), ('no_host', '', 'h2'),
             ('not_movable', '', '')],
            [(row['kind'], row['destination'], row['first'])
             for row in document['servers']])


class TestAll(testtools.TestCase):

    def filled(self, placed, **values):
        elsewhere = explanation.Reason('aggregate', 'not in zone az-1')

        def verdict(host, kind, phrase, *also):
            return explanation.Verdict(
                host, host, explanation.Reason(kind, phrase), 0, also=also)

        return explanation.sentence(explanation.Answer(
            {'zone': 'az-1'}, verdicts=[
                verdict('h1', explanation.ACCEPTABLE, ''),
                verdict('h2', 'disabled', 'disabled'),
                verdict('h3', 'aggregate', 'not in zone az-1'),
                verdict('h4', 'disabled', 'disabled', elsewhere)],
            fills=True, placed=placed, count=len(placed), **values))

    def test_what_runs_out(self):
        """Hosts of other zones are not counted.

        Nova creates no server on a host in no cell.
        """
        for placed, reason in (['h1', 'h1'], 'VCPU'), ([], 'no host mapping'):
            self.assertEqual(
                '%d more; then %s on 1 of 2 hosts of az-1, 1 disabled'
                % (len(placed), reason),
                self.filled(placed, ran_out={reason: 1}))

    def test_end_without_a_reason(self):
        for placed, interrupted in (
                (['h1'], True), (['h1'] * explanation.MAX_SERVERS, False)):
            self.assertEqual(
                '%d more; stopped there, and more may fit' % len(placed),
                self.filled(placed, interrupted=interrupted))
