# SPDX-License-Identifier: Apache-2.0
"""The benchmark of explanations: obstacles, expected reasons and targets."""

import collections

import testtools

from benchmarks import explain
from benchmarks import figures
from benchmarks import obstacles
from benchmarks import traffic
from benchmarks import workload

HOSTS = workload.Size(300, 0, 0).host_names()


def run(seconds):
    return figures.Run(seconds, 1.0, 0.0, 150.0, {
        **dict.fromkeys(traffic.PLACEMENT, 0), 'other': 6})


class TestObstacles(testtools.TestCase):

    def test_most_hosts_are_excluded(self):
        """A third is full, and five more tenths have another obstacle."""
        found = obstacles.by_obstacle(HOSTS)
        self.assertEqual(
            {obstacles.FULL: 100, obstacles.FREE: 50, **dict.fromkeys((
                obstacles.DISABLED, obstacles.MISSING, obstacles.ELSEWHERE,
                obstacles.THEIRS, obstacles.SLOW), 30)},
            {name: len(some) for name, some in found.items()})
        self.assertEqual(sorted(HOSTS), sorted(
            host for some in found.values() for host in some))

    def test_aggregates(self):
        """Each host is in one zone; the tenant's hosts are in both."""
        zone, other, ssd, theirs = (
            set(hosts) for _metadata, hosts in obstacles.groups(HOSTS))
        self.assertEqual(set(HOSTS), zone | other)
        self.assertEqual(set(), zone & other)
        self.assertEqual(30, len(set(HOSTS) - ssd))
        self.assertEqual(theirs, theirs & zone)

    def test_expected_reasons(self):
        """The first request meets two of the obstacles, the second all."""
        def counted(request):
            return collections.Counter(request.expected(HOSTS).values())

        self.assertEqual({'acceptable': 240, 'aggregate': 30,
                          'forbidden': 30}, counted(explain.ACCEPTED))
        self.assertEqual(
            {'acceptable': 50, 'aggregate': 60, 'forbidden': 30,
             'resources': 100, 'disabled': 30, 'missing': 30},
            counted(explain.EXCLUDED))


class TestRows(testtools.TestCase):

    def rows(self, seconds, hosts=5000):
        return explain.rows('a', [figures.Pair(run(2.0), run(each))
                                  for each in seconds], hosts)

    def test_ratio_is_that_of_the_command(self):
        """How many times as long it takes, with a maximum."""
        lines, missed = self.rows([4.0, 6.0, 50.0])
        self.assertEqual([], missed)
        self.assertEqual(
            ['a: wall, s', '6.0 (4.0 to 50.0)', '2.0', '3.0 (2.0 to 25.0)',
             '5 or less: met'], lines[0])
        self.assertEqual(['a: peak RSS, MiB', '150', '', '', ''], lines[-1])

    def test_median_decides(self):
        """Other sizes have no target."""
        self.assertEqual(['a: wall, s'], self.rows([4.0, 11.0, 50.0])[1])
        self.assertEqual([], self.rows([50.0], hosts=200)[1])
