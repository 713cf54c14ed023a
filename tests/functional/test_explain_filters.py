# SPDX-License-Identifier: Apache-2.0
"""Explanations of instances, NUMA topologies and cells.

Nova chooses exactly the hosts that are explained as acceptable.
"""

import contextlib
import threading

import fixtures
from nova.cmd import manage
from nova.compute import instance_actions
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from oslo_db import exception as db_exception

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import workers
from tests.scheduling import cloud
from tests.scheduling import explaining
from tests import statements


def topology(*cells):
    """Return a NUMA topology; ``cells`` has the processors of each cell."""
    pages = objects.NUMAPagesTopology(size_kb=4, total=512 * 256, used=0)
    metadata = objects.NetworkMetadata(physnets=set(), tunneled=False)
    return objects.NUMATopology(cells=[
        objects.NUMACell(
            id=number, socket=0, memory=512, memory_usage=0, cpu_usage=0,
            cpuset=cpus, pinned_cpus=set(), pcpuset=set(),
            siblings=[{one} for one in cpus], mempages=[pages],
            network_metadata=metadata)
        for number, cpus in enumerate(cells)])._to_json()


class TestInstances(explaining.ExplainingTest):
    """Those of a cell are read if a filter needs them, and only then."""

    hosts = ('h1',)
    host_filters = ('DifferentHostFilter',)

    def test_instances_of_a_cell(self):
        server, flavor = self.boot(), self.flavor()
        sent = self.useFixture(statements.Statements())
        for hints, expected in (({}, 'acceptable'), (
                {'different_host': [server['id']]},
                'with a server to keep apart from')):
            sent.seen.clear()
            self.assertEqual({'h1': expected}, self.reasons(
                self.explain_flavor(flavor, hints=hints)))
            self.assertEqual(bool(hints), bool(sent.about('FROM instances')))


class TestNuma(explaining.ExplainingTest):

    hosts = ('two', 'one', 'flat')
    host_filters = ('NUMATopologyFilter',)

    def report(self, host, numa_topology):
        """Change what a nova-compute has reported about its host."""
        with nova_context.target_cell(
                self.context, self.cell_mappings['cell1']) as target:
            [node] = objects.ComputeNodeList.get_all_by_host(target, host)
            node.numa_topology = numa_topology
            node.save()

    def test_topology_that_does_not_fit(self):
        """The detail distinguishes too few cells from none."""
        self.report('two', topology({0, 1}, {2, 3}))
        self.report('one', topology({0, 1, 2, 3}))
        wanted = self.flavor(vcpus=2, **{'hw:numa_nodes': '2'})
        answer = self.compared_flavor(wanted)
        unable = 'unable to fit the NUMA topology'
        self.assertEqual({'two': 'acceptable', 'one': unable, 'flat': unable},
                         self.reasons(answer))
        verdicts = explaining.named(answer)
        for host, text in (('one', 'does not fit on this host'),
                           ('flat', 'No host NUMA topology')):
            self.assertIn(text, verdicts[host].reason.detail)
        self.report('two', None)
        self.assertEqual(dict.fromkeys(self.hosts, unable),
                         self.reasons(self.compared_flavor(wanted)))


class TestCells(explaining.ExplainingTest):
    """A host in a second cell."""

    NUMBER_OF_CELLS = 2
    hosts = ('first', 'second', 'far')
    cells = {'far': 'cell2'}

    def setUp(self):
        super().setUp()
        self.wanted = self.flavor()

    def test_migration_stays_in_its_cell(self):
        """And fails if only a host in another cell is left."""
        answer = self.compared_flavor(self.wanted)
        self.assertEqual({*self.hosts}, {*explaining.accepted(answer)})
        server = self.boot(flavor_id=self.wanted)
        for operation in ('migrate', 'live-migrate', 'evacuate'):
            self.admin_api.put_service_force_down(
                self.service('first'), operation == 'evacuate')
            self.assertEqual(
                {'first': 'the host to leave', 'second': 'acceptable',
                 'far': 'in another cell than the server'},
                self.reasons(self.compared_server(server, operation)),
                operation)
        self.admin_api.put_service_force_down(self.service('first'), False)
        self.reserve('second', 'VCPU')
        self.assertEqual(
            'nova-scheduler finds 0 of 3 hosts: 1 have too much VCPU '
            'reserved, 1 in another cell than the server, 1 the host to leave',
            explanation.sentence(self.compared_server(server, 'migrate')))
        self.admin_api.post_server_action(server['id'], {'migrate': None})
        self._wait_for_action_fail_completion(
            server, instance_actions.MIGRATE, 'cold_migrate')

    def test_cell_that_is_disabled(self):
        """Nova leaves it out for creations, but not for moves.

        Enabled again, as the step says, its hosts are used.
        """
        server = self.boot(host='first')
        cell = self.cell_mappings['cell1']
        for disabled, reason in ((True, 'in a disabled cell'),
                                 (False, 'acceptable')):
            # Nova's command would refuse the URLs of nova's fixtures.
            cell.disabled = disabled
            cell.save()
            self.assertEqual(
                {'first': reason, 'second': reason, 'far': 'acceptable'},
                self.reasons(self.compared_flavor(self.wanted)))
            self.assertEqual('acceptable', self.reasons(
                self.compared_server(server, 'migrate'))['second'])

    def test_placement_that_fails_a_request_filter(self):
        """Nova takes no answer for one without aggregates."""
        def fail(_context, _spec):
            raise nova_exception.RequestFilterFailed(
                reason='Aggregates not found')

        server = self.boot(host='first')
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.request_filter.ALL_REQUEST_FILTERS', [fail]))
        self.assertEqual('Aggregates not found', self.explain_flavor(
            self.wanted).failure)
        answer = self.explain_server(server, 'migrate')
        self.assertEqual('Aggregates not found', answer.failure)
        [(nodes, hosts, *_others, also)] = explanation.rows(answer)
        self.assertEqual((3, 'far, first, second', ''), (nodes, hosts, also))
        self.useFixture(fixtures.MockPatchObject(
            client.Client, 'probe', side_effect=(
                exceptions.ServiceUnreachable('refused', 'placement'))))
        self.assertRaises(exceptions.ServiceUnreachable,
                          self.explain_flavor, self.wanted)

    def test_host_that_is_mapped_to_no_cell(self):
        """Nova-scheduler finds it, and nova-conductor fails the creation.

        A server moves there: nova then knows its cell.
        """
        server = self.boot(host='second')
        objects.HostMapping.get_by_host(self.context, 'first').destroy()
        for zone in '', 'nova:first':
            first = explaining.named(self.explain_flavor(
                self.wanted, zone))['first'].reason
            self.assertEqual('acceptable', first.kind)
            self.assertIn('mapped to no cell', first.detail)
            self.assertIn('discover_hosts', first.step)
        for zone in None, 'nova:first':
            failed = self.boot(flavor_id=self.wanted, az=zone)
            self.assertIn("Host 'first' is not mapped to any cell",
                          failed['fault']['message'])
        self.assertEqual('acceptable', self.reasons(
            self.explain_server(server, 'migrate'))['first'])
        self.admin_api.post_server_action(server['id'], {'migrate': None})
        self.become(server, status='VERIFY_RESIZE',
                    **{'OS-EXT-SRV-ATTR:host': 'first'})
        manage.CellV2Commands().discover_hosts(by_service=True)
        self.assertEqual(3, len(self.explain_flavor(self.wanted).acceptable))

    def test_host_without_a_service(self):
        """Nova-compute creates it when it is started again."""
        self.execute('cell1', "DELETE FROM services WHERE host = 'second'")
        [verdict] = [
            verdict for verdict in self.compared_flavor(self.wanted).verdicts
            if verdict.host == 'second']
        self.assertEqual('no_service', verdict.reason.kind)
        self.restart_compute_service(self.computes['second'])
        self.assertEqual(3, len(self.compared_flavor(self.wanted).acceptable))

    def test_cell_that_fails_while_it_is_explained(self):
        """A note names it, as if it had failed before.

        Its hosts are not explained as if they had no nova-compute, or no
        mapping, which nova-conductor needs for a creation.
        """
        objects.HostMapping.get_by_host(self.context, 'far').destroy()
        self.rename('services', 'unreadable')
        self.addCleanup(self.rename, 'unreadable', 'services')
        answer = self.compared_flavor(self.wanted)
        self.assertEqual({'first': 'acceptable', 'second': 'acceptable'},
                         self.reasons(answer))
        [note] = answer.remarks
        self.assertIn('its hosts are not explained', note)
        self.assertTrue(
            note.startswith('the database of cell cell2 '), note)

    def test_cell_that_is_silent_while_it_is_explained(self):
        """No other cell waits for it, nor for another one that is silent.

        Nor is a cell left out whose UUID is in the name of the silent one.
        """
        answered = threading.Event()
        silent, healthy = (
            self.cell_mappings[name].uuid for name in ('cell1', 'cell2'))

        def get_all(_class, cell):
            if cell.is_cell0():
                return []
            if cell.uuid == healthy:
                answered.set()
                return []
            self.assertTrue(answered.wait(cloud.PATIENCE), 'read in turn')
            raise db_exception.DBConnectionError()

        manager = host_states.HostManager(workers.in_threads(2))
        manager.cells[silent].name = 'beside ' + healthy
        # Nova's fixture targets one cell at a time.
        with fixtures.MonkeyPatch(
                'nova.context.target_cell',
                lambda _context, cell: contextlib.nullcontext(cell)
        ), fixtures.MonkeyPatch(
                'nova.objects.ServiceList.get_all', get_all):
            manager.read_services(self.context, {})
        [name] = manager.cells_down
        self.assertEqual('beside %s (%s)' % (healthy, silent), name)
        self.assertEqual({}, manager.services[healthy])
        self.assertTrue(manager.is_partial)
        self.assertIn(healthy, manager.cells)
        self.assertNotIn(silent, manager.cells)

    def test_cell_that_fails_while_a_host_is_looked_up(self):
        """It is not said that there is no such host."""
        manager = host_states.HostManager()
        self.rename('compute_nodes', 'unreadable')
        self.addCleanup(self.rename, 'unreadable', 'compute_nodes')
        self.assertRaises(
            exceptions.CellUnavailable,
            manager.get_compute_nodes_by_host_or_node,
            self.context, 'far', None)

    def rename(self, table, name):
        """Rename a table of the second cell's database."""
        self.execute('cell2', 'ALTER TABLE %s RENAME TO %s' % (table, name))
