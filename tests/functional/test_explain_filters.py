# SPDX-License-Identifier: Apache-2.0
"""Explanations of request groups, NUMA topologies, segments and cells.

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
from nova.tests.functional import test_routed_networks
from oslo_db import exception as db_exception

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.explain import host_states
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import workers
from tests.scheduling import cloud
from tests.scheduling import explaining
from tests import statements

CARD = 'CUSTOM_CARD'
FINDS_NONE = 'nova-scheduler finds 0 of 3 hosts: 3 '
FAST = 'CUSTOM_FAST'


class FiltersTest(explaining.ExplainingTest):

    def compute(self, host, **values):
        """Change what a nova-compute has reported about its host."""
        with nova_context.target_cell(
                self.context, self.cell_mappings['cell1']) as target:
            [node] = objects.ComputeNodeList.get_all_by_host(target, host)
            for name, value in values.items():
                setattr(node, name, value)
            node.save()

    def details(self, answer):
        return {host: verdict.reason.detail
                for host, verdict in explaining.named(answer).items()}

    def refused(self, **wanted):
        """Boot a server that must get NoValidHost."""
        server = self.boot(**wanted)
        self.assertEqual('ERROR', server['status'])
        self.assertIn('No valid host', server['fault']['message'])
        return server


class TestGroups(FiltersTest):
    """Providers below a host, and resources that one provider has to have."""

    hosts = ('good', 'plain', 'empty', 'apart')

    def setUp(self):
        super().setUp()
        for host in ('good', 'apart'):
            self.set_trait(host)
        self.create_child('apart', 'child')
        for provider in ('good', 'plain', 'child'):
            self.provide(provider, CARD, 2)

    def wanted(self, name='grouped', **extra_specs):
        return self._create_flavor(
            name=name, memory_mb=64, vcpu=1, disk=1, ephemeral=0,
            extra_spec=extra_specs)

    def test_resource_and_trait_in_one_provider(self):
        """A resource of a child and a trait of the root do not meet it."""
        wanted = self.wanted(**{'resources1:' + CARD: '1',
                                'trait1:' + FAST: 'required'})
        answer = self.compared_flavor(wanted)
        group = 'cannot meet request group 1'
        self.assertEqual({'good': 'acceptable', 'plain': group,
                          'empty': group, 'apart': group},
                         self.reasons(answer))
        self.assertEqual({
            'good': '', 'plain': 'required1=CUSTOM_FAST',
            'apart': 'required1=CUSTOM_FAST',
            'empty': 'resources1=CUSTOM_CARD:1'}, self.details(answer))
        self.reserve('good', CARD)
        self.assertEqual(
            'nova-scheduler finds 0 of 4 hosts: 4 cannot meet request group 1',
            explanation.sentence(self.compared_flavor(wanted)))
        self.refused(flavor_id=wanted)

    def test_figures_where_a_host_has_a_child(self):
        """A class that one provider of the tree has is that provider's."""
        self.reserve('plain', 'VCPU')
        wanted = self.wanted(**{'resources:' + CARD: '3'})
        answer = self.compared_flavor(wanted)
        most = 'allow at most 2 CUSTOM_CARD for a server'
        reasons = {'good': most, 'plain': most, 'apart': most,
                   'empty': 'have no CUSTOM_CARD'}
        self.assertEqual(reasons, self.reasons(answer))
        self.assertEqual('asked 3, free 2 of 2 x 1',
                         self.details(answer)['apart'])
        self.assertEqual({'plain': ['have too much VCPU reserved']}, {
            verdict.host: [reason.phrase for reason in verdict.also]
            for verdict in answer.verdicts if verdict.also})
        self.create_child('apart', 'sibling')
        self.provide('sibling', CARD, 1)
        answer = self.compared_flavor(wanted)
        self.assertEqual({**reasons, 'apart': 'cannot provide 3 CUSTOM_CARD'},
                         self.reasons(answer))


def topology(*cells, dedicated=False):
    """Return a NUMA topology; ``cells`` has the processors of each cell."""
    return objects.NUMATopology(cells=[
        objects.NUMACell(
            id=number, socket=0, memory=512, memory_usage=0, cpu_usage=0,
            cpuset=set() if dedicated else cpus, pinned_cpus=set(),
            pcpuset=cpus if dedicated else set(),
            siblings=[{one} for one in cpus],
            mempages=[objects.NUMAPagesTopology(
                size_kb=4, total=512 * 256, used=0)],
            network_metadata=objects.NetworkMetadata(
                physnets=set(), tunneled=False))
        for number, cpus in enumerate(cells)])._to_json()


class TestInstances(FiltersTest):
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


class TestNuma(FiltersTest):

    hosts = ('two', 'one', 'flat')
    host_filters = ('NUMATopologyFilter',)

    def test_topology_that_does_not_fit(self):
        """The detail distinguishes too few cells from none."""
        self.compute('two', numa_topology=topology({0, 1}, {2, 3}))
        self.compute('one', numa_topology=topology({0, 1, 2, 3}))
        wanted = self._create_flavor(
            memory_mb=64, vcpu=2, disk=1, ephemeral=0,
            extra_spec={'hw:numa_nodes': '2'})
        answer = self.compared_flavor(wanted)
        unable = 'unable to fit the NUMA topology'
        self.assertEqual({'two': 'acceptable', 'one': unable, 'flat': unable},
                         self.reasons(answer))
        self.assertIn('does not fit on this host', self.details(answer)['one'])
        self.assertIn('No host NUMA topology', self.details(answer)['flat'])
        self.compute('two', numa_topology=None)
        self.assertEqual(FINDS_NONE + unable, explanation.sentence(
            self.compared_flavor(wanted)))
        self.refused(flavor_id=wanted)

    def test_dedicated_processors(self):
        """Hosts without them are candidates of nova's second query."""
        self.provide('two', 'PCPU', 4)
        self.compute('two', numa_topology=topology(
            {0, 1, 2, 3}, dedicated=True))
        self.compute('one', numa_topology=topology({0, 1, 2, 3}))
        self.reserve('flat', 'VCPU')
        wanted = self._create_flavor(
            memory_mb=64, vcpu=2, disk=1, ephemeral=0,
            extra_spec={'hw:cpu_policy': 'dedicated'})
        self.assertEqual(
            {'two': 'acceptable', 'one': 'unable to fit the NUMA topology',
             'flat': 'have no PCPU'},
            self.reasons(self.compared_flavor(wanted)))


class TestSegments(FiltersTest):
    """A network of two segments, with the aggregates that neutron creates."""

    hosts = ('left', 'right', 'outside')

    def setUp(self):
        super().setUp()
        self.flags(query_placement_for_routed_network_aggregates=True,
                   group='scheduler')
        self.neutron = self.useFixture(
            test_routed_networks.NeutronRoutedNetworksFixture(self))
        for host, segment in zip(self.hosts, self.neutron.segments):
            aggregate = self.aggregate('segment of ' + host, [host])
            self.placement.post('/resource_providers', {
                'uuid': segment['id'], 'name': segment['id']}, version='1.20')
            self._providers['segment of ' + host] = segment['id']
            self.set_aggregates('segment of ' + host, self.uuid(aggregate))
        self.wanted = self.flavor()

    def test_port_with_an_address(self):
        """Its subnet determines the segment, whose only host is then full."""
        def request():
            return self.described(self.wanted, ports=[
                self.neutron.port_on_segment_id_2['id']])

        elsewhere = 'not in an aggregate for segments of the networks'
        self.assertEqual(
            {'right': 'acceptable', 'left': elsewhere, 'outside': elsewhere},
            self.reasons(self.compared(request)))
        self.reserve('right', 'VCPU')
        self.assertEqual(
            'nova-scheduler finds 0 of 3 hosts: 2 %s, 1 have too much VCPU '
            'reserved' % elsewhere,
            explanation.sentence(self.compared(request)))


class TestCells(FiltersTest):
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
        """Enabled again, as the step says, its hosts are used."""
        def set_disabled(disabled):
            cell = self.cell_mappings['cell2']
            # Nova's command would refuse the URLs of nova's fixtures.
            cell.disabled = disabled
            cell.save()
            return self.compared_flavor(self.wanted)

        self.assertEqual({
            'first': 'acceptable', 'second': 'acceptable',
            'far': 'in a disabled cell'}, self.reasons(set_disabled(True)))
        self.assertEqual(3, len(set_disabled(False).acceptable))

    def test_move_in_a_cell_that_is_disabled(self):
        """Only for a creation nova leaves the cell out."""
        server = self.boot(host='first')
        cell = self.cell_mappings['cell1']
        cell.disabled = True
        cell.save()
        self.assertEqual(
            'acceptable', self.reasons(
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

    def test_cell_that_is_down(self):
        """Its hosts are not explained, and a note names the cell.

        Nova ignores a cell whose database fails.
        """
        self.set_trait('far')
        wanted = self._create_flavor(
            memory_mb=64, vcpu=1, disk=1, ephemeral=0,
            extra_spec={'trait:' + FAST: 'required'})
        answer = self.compared_flavor(wanted)
        self.assertEqual(['far'], explaining.accepted(answer))
        self.rename('compute_nodes', 'unreadable')
        # Nova removes its services from the database at the end.
        self.addCleanup(self.rename, 'unreadable', 'compute_nodes')
        answer = self.compared_flavor(wanted)
        self.assertEqual(
            'nova-scheduler finds 0 of 2 hosts: 2 without trait CUSTOM_FAST',
            explanation.sentence(answer))
        [note] = answer.remarks
        self.assertIn('its hosts are not explained', note)
        self.assertTrue(answer.cells_down)
        self.assertTrue(
            note.startswith('the database of cell cell2 '), note)
        self.refused(flavor_id=wanted)

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

        manager = host_states.HostManager(workers.each(2))
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
