# SPDX-License-Identifier: Apache-2.0
"""Lines about what is wrong."""

import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.reconcile import problems

FAILURE = exceptions.ServiceFailed(
    'answered 500', 'placement', step='see its log').failure


class TestLines(testtools.TestCase):

    def test_one_step(self):
        """It is that of the failure, or of the problem."""
        self.assertEqual(
            ['Host h1 is not mirrored: placement answered 500: see its log',
             'Host h2 has no host mapping: map it'],
            problems.lines([
                problems.Problem(
                    'h1', 'Host h1 is not mirrored', failure=FAILURE),
                problems.Problem('h2', 'Host h2 has no host mapping', 'map it')
            ], ''))

    def test_many_with_the_same_failure(self):
        """The first of them are listed; a command lists all."""
        same = problems.Problem('h', 'a', failure=FAILURE)
        texts = problems.lines(12 * [same], '"-f json"')
        self.assertEqual([*10 * [str(same)], (
            '... and 2 more of the same kind; "-f json" lists all')], texts)
