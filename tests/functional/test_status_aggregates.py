# SPDX-License-Identifier: Apache-2.0
"""The status command on the metadata of host aggregates."""

from tests.functional import status_command
from tests.functional.status_command import SUCCESS
from tests.functional.status_command import WARNING

ISOLATES = '[scheduler]\nenable_isolated_aggregate_filtering = true\n'


class TestMetadata(status_command.StatusTest):

    def test_zone_of_nothing(self):
        """Its row is the only one that does not succeed."""
        self.member(self.cloud.create_aggregate('rack', 'az1'), 'h1')
        self.assert_others_good(self.rows(SUCCESS))
        self.cloud.create_aggregate('empty', 'az2')
        rows = self.rows(WARNING)
        self.assert_row(
            WARNING, rows['Availability zones'],
            'No host can serve availability zone az2.',
            '  openstack aggregate unset --property availability_zone empty')
        self.assert_others_good(rows, 'Availability zones')

    def test_keys_that_mean_nothing(self):
        """Each row is read from nova's database."""
        self.write_conf(more=ISOLATES)
        licensed = self.cloud.create_aggregate('licensed')
        self.member(licensed, 'h1')
        self.assertEqual(200, self.cloud.nova.request(
            'POST', '/os-aggregates/%d/action' % licensed.id, {
                'set_metadata': {'metadata': {
                    'cpu_allocation_ratio': '2.0',
                    'trait:CUSTOM_LICENSED': 'yes'}}}).status_int)
        rows = self.rows(WARNING)
        self.assert_row(WARNING, rows['Allocation ratios'],
                        '--resource VCPU:allocation_ratio=2.0')
        self.assert_row(
            WARNING, rows['Isolated aggregates'], '  openstack aggregate set '
            '--property trait:CUSTOM_LICENSED=required licensed')
        self.assert_others_good(
            rows, 'Allocation ratios', 'Isolated aggregates')
