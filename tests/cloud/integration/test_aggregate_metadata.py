# SPDX-License-Identifier: Apache-2.0
"""What aggregates mean to nova: the page's examples, on hosts with servers."""

import os
import subprocess

from tests.cloud import clients
from tests.cloud.integration import appended
from tests.cloud.integration import base
from tests.cloud import processes
from tests.repository.docs import page

PAGE = 'admin/aggregate-metadata'
ISOLATE = '''
[scheduler]
enable_isolated_aggregate_filtering = True
'''
STATUS = 'nova-aggregate-mirror-status'


class ExamplesTest(base.TestCase):

    def type(self, section, **replaced):
        """Type the commands of a section's examples into a shell.

        :param replaced: words of the page that this cloud has other words for
        """
        script = '\n'.join(
            command for example in page.examples(PAGE)
            if example.section == section for command in example.commands)
        self.assertTrue(script)
        for word, other in replaced.items():
            script = script.replace(word.replace('_', '-'), other)
        done = subprocess.run(
            ['bash', '-e', '-x'], input=script, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=clients.TIMEOUT, start_new_session=True,
            cwd=self.cloud.config.directory,
            env={**processes.clean_environment(), **self.cloud.environment(),
                 'PATH': os.pathsep.join([
                     str(self.cloud.programs), os.environ['PATH']])})
        self.assertEqual(0, done.returncode, done.stdout)

    def node(self, host):
        """Return the provider of a host with one node."""
        node, = self.nodes(host)
        return node


@base.of_nova_alone
class TestIsolatedAggregates(ExamplesTest):

    def test_licensed_hosts(self):
        """A host for licensed servers has no others, until placement drifts.

        Nothing fails then; the status check reports it.
        """
        self.stop_agents()
        self.useFixture(appended.Appended(
            self.cloud, {'scheduler': 'nova.conf'}, ISOLATE))
        self.addCleanup(self.remove)
        self.type('Isolated aggregates', cmp_1='compute-1')

        server = self.boot(flavor='licensed')
        self.assertEqual('compute-1', server[base.HOST], server)
        self.delete_server(server)
        # The host is empty, and each other gets a server.
        others = [self.boot()[base.HOST]
                  for _node in self.cloud.nodes()]
        self.assertNotIn('compute-1', others)

        node = self.node('compute-1')
        self.move(node, remove=[self.uuid_of('licensed')])
        self.addCleanup(self.move, node, [self.uuid_of('licensed')])
        self.assertEqual('compute-1', self.boot()[base.HOST])
        status, out, err = self.cloud.run(
            STATUS, '--config-file', self.cloud.config.nova_conf, 'upgrade',
            'check')
        self.assertEqual(1, status, out + err)
        self.assertRegex(out, r'Check: Drift +\|\n\| Result: Warning')

    def remove(self):
        """Remove what the page has created."""
        self.delete_aggregate('licensed')
        nova, placement = self.cloud.nova(), self.cloud.placement()
        for each in nova.get('/flavors').json()['flavors']:
            if each['name'] == 'licensed':
                nova.delete('/flavors/%s' % each['id'])
        url = '/resource_providers/%s/traits' % self.node('compute-1')
        found = placement.get(url).json()
        placement.put(url, json={**found, 'traits': [
            each for each in found['traits'] if each != 'CUSTOM_LICENSED']})
        placement.delete('/traits/CUSTOM_LICENSED')


@base.of_nova_alone
class TestAllocationRatios(ExamplesTest):

    def test_ratio_of_an_aggregate(self):
        """It is set in placement for exactly the hosts of the aggregate."""
        name = self.aggregate()
        inside, outside = ['compute-1', 'compute-2'], 'compute-3'
        for host in inside:
            self.add_host(name, host)
        before = [self.inventory(host) for host in inside]
        for host, found in zip(inside, before):
            self.addCleanup(self.restore, host, found)
        self.type('Allocation ratios', rack_1=name)
        self.assertEqual(
            [2.5, 2.5, before[0]['allocation_ratio']],
            [self.inventory(host)['allocation_ratio']
             for host in (*inside, outside)])

    def inventory(self, host):
        return self.cloud.placement().get(self.url(host)).json()

    def restore(self, host, inventory):
        now = self.inventory(host)['resource_provider_generation']
        self.cloud.placement().put(self.url(host), json={
            **inventory, 'resource_provider_generation': now})

    def url(self, host):
        return '/resource_providers/%s/inventories/VCPU' % self.node(host)
