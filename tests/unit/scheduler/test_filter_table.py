# SPDX-License-Identifier: Apache-2.0
"""The table of request filters, against all that a filter needs."""

import configparser
import importlib
import pathlib

from nova.scheduler import filters as nova_filters
import testtools

from nova_aggregate_mirror import conf
from nova_aggregate_mirror.scheduler import filter_table

ROOT = pathlib.Path(__file__).parents[3]


class TestFilterTable(testtools.TestCase):

    def test_entry_points(self):
        """A filter has a line in the table and an entry point.

        That leads to a class with rules, or to a query filter.
        """
        setup = configparser.ConfigParser()
        setup.read(ROOT / 'setup.cfg')
        text = setup['entry_points'][filter_table.NAMESPACE].strip()
        entry_points = dict(line.split(' = ') for line in text.splitlines())
        self.assertEqual({row.name for row in filter_table.FILTERS},
                         entry_points.keys())
        for row in filter_table.FILTERS:
            module, _colon, name = entry_points[row.name].partition(':')
            plugin = getattr(importlib.import_module(module), name)
            self.assertTrue(hasattr(plugin, 'change')
                            or plugin.keys and plugin.rules)

    def test_host_filters(self):
        """Nova has them, and something is said of the hosts they reject."""
        novas = {plugin.__name__ for plugin in nova_filters.all_filters()}
        for row in filter_table.FILTERS:
            if row.host_filter:
                self.assertIn(row.host_filter, novas)
                self.assertTrue(row.metadata and row.phrase)
            else:
                # Only a host filter makes a check look for unread keys.
                self.assertFalse(row.keys)

    def test_texts(self):
        """The option's help has every filter."""
        [option] = [option for option in conf.OPTS
                    if option.name == 'request_filters']
        for row in filter_table.FILTERS:
            self.assertIn('``%s``' % row.name, option.help)
