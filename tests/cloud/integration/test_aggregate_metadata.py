# SPDX-License-Identifier: Apache-2.0
"""What aggregates mean to nova: the page's examples, on hosts with servers."""

import os
import subprocess

from tests.cloud import clients
from tests.cloud.integration import base
from tests.cloud import processes
from tests.cloud.situations import schedulers
from tests.repository.docs import page

PAGE = 'admin/aggregate-metadata'


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

    def set(self, what, values):
        """Replace traits or an inventory of a provider."""
        placement = self.cloud.placement()
        generation = placement.get(what).json()['resource_provider_generation']
        placement.put(what, json={
            **values, 'resource_provider_generation': generation})


@base.of_nova_alone
class TestIsolatedAggregates(ExamplesTest):

    def delete_flavor(self):
        nova = self.cloud.nova()
        for flavor in nova.get('/flavors').json()['flavors']:
            if flavor['name'] == 'licensed':
                nova.delete('/flavors/%s' % flavor['id'])

    def test_licensed_hosts(self):
        """A host for licensed servers has no others, unless there is drift."""
        self.stop_agents()
        self.use_scheduler(schedulers.STOCK)
        traits = '/resource_providers/%s/traits' % self.node('compute-1')
        before = self.cloud.placement().get(traits).json()
        self.addCleanup(self.set, traits, before)
        self.addCleanup(self.delete_flavor)
        self.addCleanup(self.delete_aggregate, 'licensed')
        self.type('Isolated aggregates', cmp_1='compute-1')

        server = self.boot(flavor='licensed')
        self.assertEqual('compute-1', server[base.HOST], server)
        self.delete_server(server)
        # The host is empty, and each other gets a server.
        others = [self.boot()[base.HOST] for _node in self.cloud.nodes()]
        self.assertNotIn('compute-1', others)
        licensed = [self.uuid_of('licensed')]
        self.move(self.node('compute-1'), remove=licensed)
        self.addCleanup(self.move, self.node('compute-1'), licensed)
        self.assertEqual('compute-1', self.boot()[base.HOST])


@base.of_nova_alone
class TestAllocationRatios(ExamplesTest):

    def test_ratio_of_an_aggregate(self):
        """It is set in placement for exactly the hosts of the aggregate."""
        name, placement = self.aggregate(), self.cloud.placement()
        urls = ['/resource_providers/%s/inventories/VCPU' % self.node(host)
                for host in ('compute-1', 'compute-2', 'compute-3')]
        for host in ('compute-1', 'compute-2'):
            self.add_host(name, host)
        before = [placement.get(url).json() for url in urls]
        for url, inventory in zip(urls, before):
            self.addCleanup(self.set, url, inventory)
        self.type('Allocation ratios', rack_1=name)
        self.assertEqual(
            [2.5, 2.5, before[2]['allocation_ratio']],
            [placement.get(url).json()['allocation_ratio'] for url in urls])
