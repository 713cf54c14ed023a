# SPDX-License-Identifier: Apache-2.0
"""Every operation on host aggregates by a client, and placement after it.

The operations are those of the aggregates page of nova's documentation. The
agents are stopped: they would repair what a call missed.
"""

import uuid

import testscenarios

from tests.cloud import cloud
from tests.cloud.integration import base
from tests.cloud.situations import servers

OPENSTACK = {
    'list': 'openstack aggregate list --long',
    'create': 'openstack aggregate create --zone {zone} {name}',
    'show': 'openstack aggregate show {name}',
    'rename': 'openstack aggregate set --name {new} {name}',
    'zone': 'openstack aggregate set --zone {zone} {name}',
    'tag': 'openstack aggregate set --property ssd=true {name}',
    'untag': 'openstack aggregate unset --property ssd {name}',
    'add': 'openstack aggregate add host {name} {host}',
    'remove': 'openstack aggregate remove host {name} {host}',
    'delete': 'openstack aggregate delete {name}',
    'images': 'openstack aggregate cache image {name} empty',
    'services': 'openstack compute service list --host {host}',
    'disable': 'openstack compute service set --disable '
               '--disable-reason test {host} nova-compute',
    'enable': 'openstack compute service set --enable {host} nova-compute'}
# The nova client no longer has the others.
NOVA = {**OPENSTACK,
        'list': 'nova aggregate-list',
        'create': 'nova aggregate-create {name} {zone}',
        'show': 'nova aggregate-show {name}',
        'rename': 'nova aggregate-update --name {new} {name}',
        'zone': 'nova aggregate-update --availability-zone {zone} {name}',
        'tag': 'nova aggregate-set-metadata {name} ssd=true',
        'untag': 'nova aggregate-set-metadata {name} ssd',
        'add': 'nova aggregate-add-host {name} {host}',
        'remove': 'nova aggregate-remove-host {name} {host}',
        'delete': 'nova aggregate-delete {name}',
        'images': 'nova aggregate-cache-images {name} {image}'}
NODES = {'compute-1': {'compute-1'},
         'ironic-1': {'ironic-1-node-1', 'ironic-1-node-2',
                      'ironic-1-node-3'}}


class TestLife(testscenarios.WithScenarios, base.TestCase):

    without_agents = True
    scenarios = [('openstack', {'commands': OPENSTACK, 'controller': 2}),
                 ('nova', {'commands': NOVA, 'controller': 1})]

    def do(self, operation, **names):
        """Run a command, compare, and return its output."""
        command = self.commands[operation].format(**self.names | names)
        output = self.run_client(*command.split())
        self.assert_equal()
        return output

    def assert_members(self, *hosts):
        """Check the aggregate's hosts in nova, and placement's."""
        name = self.names['name']
        members = self.cloud.aggregates()[name]['hosts']
        self.assertEqual(sorted(hosts), sorted(members))
        nodes = set().union(*(NODES[host] for host in hosts))
        self.assertEqual(nodes, self.placement_has(name))

    def test_life_of_an_aggregate(self):
        """Placement is in sync after each step from creation to deletion.

        A disabled host stays in its aggregate.
        """
        forked = self.cloud.forked
        self.cloud = cloud.Cloud(self.cloud.state, self.controller)
        self.cloud.forked = forked
        prefix = uuid.uuid4().hex[:8]
        self.names = {'name': prefix + '-first', 'new': prefix + '-second',
                      'zone': 'zone-a'}
        self.addCleanup(self.cloud.delete_aggregates, prefix)
        self.do('create')
        self.assertIn(self.names['name'], self.do('list'))
        self.do('add', host='ironic-1')
        self.assert_members('ironic-1')
        self.addCleanup(self.do, 'enable', host='ironic-1')
        for operation, check in (('disable', self.assertIn),
                                 ('enable', self.assertNotIn)):
            self.do(operation, host='ironic-1')
            check('disabled', self.do('services', host='ironic-1'))
            self.assert_members('ironic-1')
        self.do('rename')
        self.names['name'] = self.names['new']
        self.do('tag')
        self.do('images', image=servers.image_of(self.scene))
        self.do('zone', zone='zone-b')
        self.do('untag')
        self.do('add', host='compute-1')
        self.assert_members('ironic-1', 'compute-1')
        shown = self.do('show')
        self.assertIn('zone-b', shown)
        self.assertIn('compute-1', shown)
        self.do('remove', host='ironic-1')
        self.assert_members('compute-1')
        self.do('remove', host='compute-1')
        self.assert_members()
        self.do('delete')
        self.assertNotIn(self.names['name'], self.do('list'))


class TestNames(base.TestCase):

    without_agents = True

    def test_host_in_another_case(self):
        """MariaDB ignores the case: nova removes the host, and then fails."""
        name = self.aggregate()
        self.add_host(name, 'compute-1')
        url = '/os-aggregates/%s/action' % self.cloud.aggregates()[name]['id']
        self.cloud.nova().post(
            url, json={'remove_host': {'host': 'COMPUTE-1'}}, raise_exc=False)
        self.assertEqual([], self.cloud.aggregates()[name]['hosts'])
        self.assertEqual(frozenset(), self.placement_has(name))
