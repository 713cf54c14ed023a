# SPDX-License-Identifier: Apache-2.0
"""The role that each command needs, with the policy defaults of the services.

The account has this role in a single project, and no other.
"""

import json

import testscenarios

from tests.cloud import config_files
from tests.cloud.integration import base
from tests.cloud.integration import routed
from tests.cloud.situations import furnish
from tests.cloud.situations import hosts
from tests.cloud.situations import schedulers
from tests.cloud.situations import servers

MANAGE = 'nova-aggregate-mirror-manage'
STATUS = 'nova-aggregate-mirror-status'
ACCOUNT = '''
[placement]
username = %(name)s
project_name = %(name)s
'''


class RightsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.name = furnish.account(self.scene, self.role)
        account = {'username': self.name, 'project_name': self.name}
        config_files.write_file(self.cloud.config, 'limited.conf', {
            'placement': account, 'neutron': account})

    def run_limited(self, program, *argv):
        return self.cloud.run(
            program, '--config-file', self.cloud.config.nova_conf,
            '--config-file', self.cloud.config.path('limited.conf'), *argv)


class TestService(RightsTest):
    """What runs with nova.conf needs the role ``service``, and no other."""

    role = 'service'

    def test_commands(self):
        """They do everything that they do for an administrator."""
        self.add_host(self.aggregate(), 'compute-1')
        for argv in (
                (STATUS, 'upgrade', 'check'),
                (MANAGE, 'placement', 'sync_aggregates', '--prune'),
                (MANAGE, 'placement', 'wait', '--host', 'compute-1'),
                (MANAGE, 'placement', 'audit_servers'),
                (MANAGE, 'report', '--html', 'report.html'),
                (MANAGE, 'scheduling', 'explain', '--flavor', 'tiny',
                 '--network', servers.network_of(self.scene))):
            status, out, err = self.run_limited(*argv)
            # The status check may have a warning.
            self.assertIn(status, (0, int(STATUS in argv)), out + err)
            for word in 'answered 40', 'may not', 'refused':
                self.assertNotIn(word, out + err)

    def test_call_and_repair(self):
        """Nova-api and the agent mirror with such an account."""
        # After the account of the configuration is that of nova again.
        self.addCleanup(self.cloud.restart, 'agent-1')
        self.stop_agents()
        self.use('nova-api-1')
        name = self.aggregate()
        self.add_host(name, 'compute-1')
        self.assertEqual({'compute-1'}, self.placement_has(name))
        self.use('agent-1')
        hosts.member(self.scene, 'compute-1',
                     furnish.uuid(self.scene, name), False)
        self.scene.wait_until(lambda: self.placement_has(name),
                              'the agent has repaired the association')

    def use(self, process):
        """Restart a process of the first controller with the account."""
        self.append_options(
            {process: 'controller-1.conf'}, ACCOUNT % {'name': self.name})


class TestSegments(testscenarios.WithScenarios, RightsTest):
    """Neutron shows subnets of other projects to administrators only.

    To any other role a routed network has no segments, for nova as well.
    """

    scenarios = [(role, {'role': role}) for role in ('admin', 'service')]

    def test_full_segment(self):
        network = self.useFixture(routed.RoutedNetwork(self.scene, (30, 30)))
        network.fill(network.segments[1])
        with open(self.cloud.config.path('limited.conf'), 'a') as conf:
            conf.write(schedulers.OPTIONS[schedulers.OURS])
        status, out, err = self.run_limited(
            MANAGE, 'scheduling', 'explain', '--flavor', 'tiny', '--network',
            network.id, '--format', 'json')
        self.assertEqual(0, status, out + err)
        self.assertNotIn('is not narrowed', err)
        asked = {one['asked_by'] for one in json.loads(out)['conditions']}
        self.assertEqual(self.role == 'admin',
                         'segments with free addresses' in asked)
        status, out, err = self.run_limited(STATUS, 'upgrade', 'check')
        self.assertIn(status, (0, 1), out + err)
        self.assertEqual(
            self.role == 'service',
            'openstack role add --project %s --user %s admin' % (
                self.name, self.name) in out, out)
