# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks count, compare and render."""

import fixtures
import testtools

from benchmarks import figures
from benchmarks import fleet
from benchmarks import placing
from benchmarks import table
from benchmarks import traffic
from benchmarks import workload

PLACEMENT_LOG = """\
*** uWSGI is running in multiple interpreter mode ***
{0} 127.0.0.1 "GET /" status: 200 len: 136 microversion: 1.0
{0} 127.0.0.1 "GET /resource_providers" status: 200 len: 9 microversion: 1.36
{0} 127.0.0.1 "GET /resource_providers?member_of=a" status: 200 len: 9 -
{0} 127.0.0.1 "GET /resource_providers?member_of=in:a,b" status: 200 len: 9 -
{0} 127.0.0.1 "GET /resource_providers/p/aggregates" status: 200 len: 9 -
{0} 127.0.0.1 "PUT /resource_providers/p/aggregates" status: 409 len: 9 -
{0} 127.0.0.1 "POST /resource_providers" status: 200 len: 9 -
""".format('2026-11-21 07:25:05.1 16469 INFO placement.requestlog [req-1]')
KEYSTONE_LOG = """\
INFO something else
GET /v3
POST /v3/auth/tokens
GET /v3/auth/tokens
"""


def run(seconds, requests):
    kinds = {kind: 0 for kind in (*traffic.PLACEMENT, traffic.TOKEN,
                                  traffic.DISCOVERY)}
    return figures.Run(seconds, 1.0, 2.0, 100.0, {**kinds, **requests})


class TestTraffic(testtools.TestCase):

    def test_each_request_is_of_one_kind(self):
        """Token and discovery are separate; services' own are skipped."""
        self.assertEqual(
            {'GET providers': 1, 'GET member_of': 2, 'GET aggregates': 1,
             'PUT aggregates': 1, 'other': 1, 'token': 1, 'discovery': 2},
            traffic.count(PLACEMENT_LOG.splitlines(),
                          KEYSTONE_LOG.splitlines()))

    def test_lines_are_counted_once(self):
        """A command is charged with the requests made while it ran."""
        logs = []
        for name, text in (('placement', PLACEMENT_LOG), ('keystone', '')):
            path = self.useFixture(fixtures.TempDir()).join(name)
            with open(path, 'w') as log:
                log.write(text)
            logs.append(path)
        seen = traffic.Traffic(*logs)
        self.assertEqual({0}, set(seen.since().values()))
        with open(logs[1], 'a') as log:
            log.write(KEYSTONE_LOG)
        self.assertEqual(1, seen.since()['token'])


class TestFigures(testtools.TestCase):

    def pairs(self):
        return [figures.Pair(run(seconds, {'GET member_of': 2}),
                             run(30.0, {'GET aggregates': 500}))
                for seconds in (1.0, 2.0, 6.0)]

    def test_ratio_is_taken_pair_by_pair(self):
        """The median of all ratios is shown with their range."""
        rows, _missed = figures.rows(figures.WARM, self.pairs(), {})
        self.assertEqual(
            ['all in sync: wall, s', '30.0', '2.0 (1.0 to 6.0)',
             '15.0 (5.0 to 30.0)', ''], rows[0])

    def test_target_is_met_or_missed_by_the_median(self):
        """Machines are noisy: a single run does not decide."""
        names = figures.WALL.name, figures.REQUESTS.name
        rows, missed = figures.rows(figures.WARM, self.pairs(), {
            (figures.WARM, names[0]): 12, (figures.WARM, names[1]): 251})
        self.assertEqual(['all in sync: placement requests'], missed)
        self.assertEqual('12 or more: met', rows[0][-1])

    def test_kinds_that_nobody_asked_for_have_no_line(self):
        """The table has only requests that were made."""
        rows, _missed = figures.rows(figures.WARM, self.pairs(), {})
        self.assertEqual(
            ['GET member_of', 'GET aggregates'],
            [row[0].partition(': ')[2] for row in rows
             if ': GET' in row[0] or ': PUT' in row[0]])

    def test_ours_alone_has_no_ratio(self):
        """Without nova-manage there is no comparison."""
        alone = [figures.Pair(run(1.0, {}))]
        rows, missed = figures.rows(figures.COLD, alone, {
            (figures.COLD, figures.WALL.name): 10})
        self.assertEqual(
            ['nothing mirrored: wall, s', '', '1.0', '', ''], rows[0])
        self.assertEqual([], missed)


def answer(seconds, candidates, **stages):
    return {'seconds': seconds, 'cpu_seconds': 0.1, 'stages': stages,
            'candidates': candidates}


class TestPlacing(testtools.TestCase):

    def pair(self, ours=('a', 'b')):
        bound = frozenset('ab')
        return figures.Pair(
            placing.run([answer(0.2, ours, claim=0.05)], bound, 0.1, 1.0),
            placing.run([answer(seconds, ('b', 'c', 'd'), claim=0.5)
                         for seconds in (1.0, 2.0, 9.0)], bound, 0.9, 1.0))

    def test_median_call_decides(self):
        """Placement's processor time is divided by the calls."""
        stock = self.pair().theirs
        self.assertEqual((2.0, 3, 1), (
            stock.seconds, stock.candidates, stock.right))
        self.assertEqual(0.3, round(stock.placement_cpu_seconds, 9))

    def test_what_no_stage_explains_is_shown(self):
        """The stages of a call add up to the whole call."""
        self.assertEqual({'claim': 0.5, placing.REST: 1.5},
                         self.pair().theirs.stages)

    def test_ten_times_as_fast_is_wanted_of_2000_hosts(self):
        """Other numbers of hosts have no target."""
        rows, missed = placing.rows('big', [self.pair()], 2, 2000)
        self.assertEqual(['big: wall, ms', '2000', '200', '10.0',
                          '10 or more: met'], rows[0])
        self.assertEqual([], missed)
        rows, _missed = placing.rows('less', [self.pair()], 2, 1000)
        self.assertEqual('', rows[0][-1])

    def test_every_right_host_must_be_offered(self):
        """Speed alone does not meet the target."""
        rows, missed = placing.rows(
            'small', [self.pair(), self.pair(['a'])], 2, 200)
        self.assertEqual(['small: suitable hosts offered'], missed)
        self.assertIn(['small: suitable hosts offered', '1', '2 (1 to 2)',
                       '', 'all 2: MISSED'], rows)

    def test_every_lone_host_must_be_found(self):
        """Stock nova finds only some of them, by chance."""
        row, missed = placing.lone_row('big', 10, 20, 20)
        self.assertEqual(['10', '20', '', 'all 20: met'], row[1:])
        self.assertEqual([], missed)
        row, missed = placing.lone_row('big', 10, 19, 20)
        self.assertEqual('all 20: MISSED', row[-1])
        self.assertEqual([row[0]], missed)

    def test_stages_show_their_share_of_ours(self):
        """A stage that only one side has is included."""
        pair = self.pair()
        pair.ours.stages['our SQL query'] = 0.01
        rows = placing.stage_rows('big', [pair])
        self.assertEqual(
            [['big: claim, ms', '500.0', '50.0', '10.0', '25.0 %'],
             ['big: our SQL query, ms', '0.0', '10.0', '', '5.0 %'],
             ['big: other, ms', '1500.0', '150.0', '10.0',
              '75.0 %']], rows)

    def test_hosts_are_spread_evenly(self):
        """As many in the first half as in the second half."""
        self.assertEqual([1, 3, 5, 7], fleet.spread(range(8), 4))
        self.assertEqual([50, 150], fleet.spread(range(200), 2))


class TestTable(testtools.TestCase):

    table = table.Table('Title', ('', 'a'), [['one', ''], ['two', '2']])

    def test_text_is_aligned(self):
        """The columns are aligned."""
        self.assertEqual('Title\n     a\none\ntwo  2', self.table.text())

    def test_markdown(self):
        """The format for tables in an issue."""
        self.assertEqual('Title\n\n|  | a |\n| --- | --- |\n| one |  |\n'
                         '| two | 2 |\n', self.table.markdown())

    def test_rst(self):
        """The format for the documentation; a cell may be empty."""
        self.assertEqual(
            '.. list-table:: Title\n   :header-rows: 1\n\n'
            '   * -\n     - a\n   * - one\n     -\n   * - two\n     - 2\n',
            self.table.rst())


class TestSize(testtools.TestCase):

    def test_each_host_is_in_so_many_aggregates(self):
        """All aggregates have the same size."""
        members = workload.Size(40, 3, 20).members()
        self.assertEqual({6}, set(map(len, members.values())))
        hosts = [host for found in members.values() for host in set(found)]
        self.assertEqual({3}, {hosts.count(host) for host in hosts})
