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
        cloud = self.useFixture(fixtures.NovaAndPlacement({
            name: databases.create(self, 'mysql')
            for name in ('api', 'cell1')}))
        aggregate = cloud.create_aggregate('rack 1')
        host = cloud.create_host('compute-2')
        cloud.nova.add_member(aggregate.uuid, 'COMPUTE-2')
        self.useFixture(fixtures.MirroredNova())
        [problem] = cloud.sync().problems
        self.assertIn('Host COMPUTE-2: nova has this member as host compute-2',
                      str(problem))
        acts = {'add': cloud.add_host, 'remove': cloud.remove_host}
        for command in re.findall('"(openstack .*?)"', str(problem)):
            _client, _noun, action, _host, *names = shlex.split(command)
            member = dataclasses.replace(host, name=names.pop())
            self.assertEqual(['rack 1'], names)
            self.assertEqual(200, acts[action](aggregate, member).status)
        self.assertEqual([], [*cloud.sync().problems])
        self.assertEqual({aggregate.uuid},
                         cloud.placement.aggregates(host.nodes[0]))
