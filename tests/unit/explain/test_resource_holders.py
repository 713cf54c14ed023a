# SPDX-License-Identifier: Apache-2.0
"""Who holds the resources of a host, and what frees them."""

from unittest import mock

import testtools

from nova_aggregate_mirror.explain import resource_holders
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror.source import database_servers
from tests.unit import doubles

Consumer = database_servers.Consumer


class TestHolders(testtools.TestCase):

    def read(self, consumers, cells_down=()):
        """Read the holders of a host, each of one VCPU more."""
        reader = mock.Mock(spec=['allocations'])
        reader.allocations.return_value = {
            uuid: {'VCPU': number}
            for number, uuid in enumerate(consumers, start=1)}
        servers = mock.Mock(spec=['consumers', 'cells_down'])
        servers.consumers.return_value = {
            uuid: consumer for uuid, consumer in consumers.items() if consumer}
        servers.cells_down = dict.fromkeys(cells_down, doubles.SILENT)
        return resource_holders.read(
            reader, workers.in_threads(), servers, {'n1': 'n1'},
            {'n1': 'h1'})['n1']

    def test_server_of_another_host(self):
        """The cause is not known; nova's audit removes what is left."""
        for host in 'h2', '':
            consumer = Consumer('s', 'web', host, evacuated=frozenset({'h0'}))
            [holder] = self.read({'s': consumer})
            self.assertIn('which is on ', holder.subject)
            self.assertIn('nova-manage placement audit', holder.step)

    def test_cell_that_is_silent(self):
        """What may be there is no orphan, which an audit would delete."""
        [holder] = self.read({'s': None}, ['cell2'])
        self.assertIn('may be in a cell that did not answer', holder.subject)
        self.assertEqual('', holder.step)

    def test_move_that_has_ended(self):
        """Nova's audit takes what it left for an orphan."""
        [holder] = self.read({'m': Consumer(
            's', move='live-migration', status='error')})
        self.assertIn('nova-manage placement audit', holder.step)

    def test_server_that_is_being_created(self):
        """Its resources are claimed before a cell has it."""
        [holder] = self.read({'s': Consumer('s', task='scheduling')})
        self.assertEqual('', holder.step)

    def test_those_that_can_be_freed_come_first(self):
        """Then the largest; a host names three of them."""
        read = self.read({
            **{name: Consumer(name, name, 'h1') for name in 'abcd'},
            'e': Consumer('e', 'e', 'h2'), 'f': Consumer('f', 'f', 'h1')})
        self.assertEqual(['e', 'f', 'd'], [
            holder.subject[-2:-1] if holder.subject.endswith(')')
            else 'e' for holder in resource_holders.largest(read, 'VCPU')])
        self.assertEqual([], resource_holders.largest(read, 'DISK_GB'))
