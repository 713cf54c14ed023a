# SPDX-License-Identifier: Apache-2.0
"""Tempest's tests of aggregates, with and without this package."""

import collections
import json
import pathlib
import sys

import fixtures

from tests.cloud.integration import base
from tests.cloud.integration import pages
from tests.cloud.integration import stock
from tests.cloud import tempest

ALL_NODES = {'ironic-1-node-1', 'ironic-1-node-2', 'ironic-1-node-3'}


@base.of_nova_alone
class TestTempest(base.TestCase):

    without_agents = True

    def test_every_test_ends_as_without_the_package(self):
        """Outcomes are the same, none fails, and placement equals nova."""
        without = self._without()
        self.assert_equal()
        with_it = self._run('with this package', self.cloud)
        self.assert_equal()
        self.assertEqual({'success', 'skip'},
                         {*with_it.outcomes.values(), 'skip'}, with_it.output)
        self.assertEqual(without.outcomes, with_it.outcomes,
                         '%s\n%s' % (without.output, with_it.output))
        self.assertEqual('', pages.difference('tempest', _table(
            without.outcomes, with_it.outcomes)))

    def _without(self):
        """Run it with a nova-api that does not have the package."""
        with stock.StockNova(self.cloud) as nova:
            self.assertFalse(nova.has_package())
            # Nova mirrors only one node of a host.
            self.assertEqual(1, len(self._mirrored(nova.cloud) & ALL_NODES))
            # The agents are stopped: it is the other nova-api that mirrors
            # here.
            self.assertTrue(stock.has_package(self.cloud.programs / 'python'))
            self.assertEqual(ALL_NODES, self._mirrored(self.cloud))
            return self._run('without', nova.cloud, stock.REGION)

    def _run(self, name, running, *region):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        result = tempest.run(running, tempest.configure(
            running, folder, *region))
        print('tempest %s: %s' % (name, result), file=sys.stderr, flush=True)
        return result

    def _mirrored(self, running):
        """Return placement's members after adding a host with three nodes."""
        name = self.aggregate()
        status, out, err = running.run(
            'openstack', 'aggregate', 'add', 'host', '-f', 'json', name,
            'ironic-1')
        self.assertEqual(0, status, err)
        self.assertEqual(['ironic-1'], json.loads(out)['hosts'])
        found = self.placement_has(name)
        self.delete_aggregate(name)
        return found


def _table(*runs):
    """Render the number of passed tests per module in each run."""
    passed = [collections.Counter(_module(test) for test in outcomes
                                  if outcomes[test] == 'success')
              for outcomes in runs]
    ran = collections.Counter(map(_module, runs[0]))
    total = [sum(each.values()) for each in (ran, *passed)]
    return pages.figures(
        'Tests, and how many passed',
        ('Module', 'Tests', 'Nova alone', 'This package'), (70, 10, 10, 10),
        [*((name, ran[name], *(each[name] for each in passed))
           for name in sorted(ran)), ('All', *total)])


def _module(test):
    # The last two parts of its name are the class and the method.
    return test.partition('[')[0].rpartition('.')[0].rpartition('.')[0]
