# SPDX-License-Identifier: Apache-2.0
"""A member whose name differs from that of the host in upper and lower case.

MySQL takes both for one name, and so does nova-api; nova-scheduler does not.
"""

import dataclasses
import re
import shlex

import testtools

from tests import databases
from tests import fixtures


class TestSpellings(testtools.TestCase):

    def test_step_for_a_member_in_another_case(self):
        """Nova-api removes it and adds the host, which is then mirrored."""
        self.cloud = self.useFixture(fixtures.NovaAndPlacement({
            name: databases.create(self, 'mysql')
            for name in ('api', 'cell1')}))
        self.aggregate = self.cloud.create_aggregate('rack 1')
        self.host = self.cloud.create_host('compute-2')
        self.cloud.nova.add_member(self.aggregate.uuid, 'COMPUTE-2')
        self.useFixture(fixtures.MirroredNova())
        [line] = self.lines()
        self.assertIn('Host COMPUTE-2: nova has this member as host compute-2',
                      line)
        for command in re.findall('"(openstack .*?)"', line):
            self.assertEqual(200, self.status(shlex.split(command)))
        self.assertEqual([], self.lines())
        self.assertEqual({self.aggregate.uuid},
                         self.cloud.placement.aggregates(self.host.nodes[0]))

    def lines(self):
        return list(map(str, self.cloud.sync().problems))

    def status(self, argv):
        """Do what a command of the openstack client does."""
        _client, _noun, action, _host, name, host = argv
        self.assertEqual('rack 1', name)
        act = {'add': self.cloud.add_host, 'remove': self.cloud.remove_host}
        return act[action](self.aggregate, dataclasses.replace(
            self.host, name=host)).status
