# SPDX-License-Identifier: Apache-2.0
"""Tables that fit a terminal."""

from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import display
from nova_aggregate_mirror.console import sync_result
from nova_aggregate_mirror.explain import rendering
from nova_aggregate_mirror import source
from nova_aggregate_mirror import tables
from tests.unit.test_printable import EVIL

UUID = uuidutils.generate_uuid()
HOST = 'compute-17.rack-3.example'
TEXT = ('placement at http://10.0.0.5:8778 refused the connection. Start it, '
        'or correct the URL in the catalog')


def widest(table):
    return max(map(len, table.splitlines()))


class TestTables(testtools.TestCase):

    def test_text_is_wrapped_between_words(self):
        """A UUID can be copied, as long as another column gives way."""
        table = tables.render(('A', 'B', 'C'), [(UUID, 'compute-17', TEXT)])
        self.assertEqual(80, widest(table))
        self.assertIn(UUID, table)
        self.assertIn('compute-17', table)

    def test_name_is_divided_after_an_underscore(self):
        """If the table is too wide otherwise."""
        row = 'foreign_aggregate', UUID, HOST
        self.assertIn('| foreign_ ', tables.render(('A', 'B', 'C'), [row]))
        row = 'the foreign_aggregate', UUID, HOST
        self.assertIn('| foreign_ ', tables.render(('A', 'B', 'C'), [row]))
        row = 'foreign_aggregate', UUID
        self.assertIn('| foreign_aggregate |',
                      tables.render(('A', 'B'), [row[:2]]))

    def test_words_that_do_not_fit(self):
        self.assertEqual(80, widest(tables.render(
            ('A', 'B', 'C'), [(UUID, UUID, UUID)])))

    def test_lines(self):
        """A tuple has a line for each value; a control is none."""
        table = tables.render(('A',), [((1, EVIL),)], divider=True)
        self.assertEqual(6, len(table.splitlines()))
        self.assertNotIn('\x1b', table)


class TestUsualRows(testtools.TestCase):
    """With a host name of 25 characters, and UUIDs that can be copied."""

    def assert_fits(self, table, *words):
        self.assertThat(widest(table), testtools.matchers.LessThan(81), table)
        for word in words:
            self.assertIn(word, table)

    def test_sync(self):
        for name, uuid in ('zone-of-the-best-customer', UUID), ('', UUID):
            self.assert_fits(tables.render(
                sync_result.IN_TABLE, sync_result.in_table([
                    ('foreign_aggregate', HOST, UUID, name, uuid)])),
                HOST, UUID)

    def test_audit(self):
        table = display.table([audit.Misplacement(
            source.PlacedServer(
                UUID, 'web-1', HOST, UUID.replace('-', ''), 'active', 50.0),
            'zone', 'availability zone zone-of-the-best-customer',
            'host in availability zone of-another-customer',
            audit.Cause(audit.FORCED, 'the host was forced', 1.0))])
        self.assert_fits(table, HOST, UUID)

    def test_explain(self):
        hosts = rendering.in_table([
            (1, HOST, 'not in the requested zone', TEXT,
             'nova-aggregate-mirror-manage placement sync_aggregates',
             'the compute service is disabled')])
        self.assert_fits(tables.render(rendering.IN_TABLE, hosts), HOST)
        self.assert_fits(tables.render(rendering.FUNNEL, [
            ('in availability zone zone-of-the-best-customer',
             'nova-scheduler: AvailabilityZoneFilter', 12345, 12345)]))
