# SPDX-License-Identifier: Apache-2.0
"""The status command's checks of placement, step by step."""

import time
from typing import Any

from tests.functional import status_command
from tests.functional.status_command import FAILURE
from tests.functional.status_command import SUCCESS
from tests.functional.status_command import WARNING
from tests import placement_service
from tests.unit import servers

ROUTED = ('[scheduler]\nquery_placement_for_routed_network_aggregates = true\n'
          '%s')


class TestBeforePlacementRuns(status_command.StatusTest):
    """The states of a deployment, in order, until placement works."""

    def test_no_credentials(self):
        """A warning in this major release, with all lines to add."""
        self.write_conf('')
        self.assert_ends_at(
            'Placement credentials', WARNING, 'from version 2 of this package '
            'on nova-api does not start', '  [placement]\n'
            '  auth_type = password\n'
            '  auth_url = https://keystone.example.org/v3\n'
            '  username = placement\n  password = secret\n'
            '  project_name = service\n  user_domain_name = Default\n'
            '  project_domain_name = Default')

    def test_some_credentials_are_missing(self):
        """Only the missing options are printed."""
        self.write_conf('[placement]\nauth_type = password\n'
                        'username = nova\npassword = geheim\n')
        rows = self.assert_ends_at('Placement credentials', WARNING)
        self.assertEqual([
            '  [placement]', '  auth_url = https://keystone.example.org/v3',
            '  user_domain_name = Default',
        ], rows['Placement credentials'].details.splitlines()[1:])

    def test_credentials_of_another_section(self):
        """The section that auth_section names has to be completed."""
        self.write_conf('[placement]\nauth_section = shared\n'
                        '[shared]\nauth_type = v3applicationcredential\n'
                        'auth_url = http://keystone\n')
        self.assert_ends_at(
            'Placement credentials', WARNING, '  [shared]\n'
            '  application_credential_id = APPLICATION_CREDENTIAL_ID\n'
            '  application_credential_secret = APPLICATION_CREDENTIAL_SECRET')

    def test_missing_credentials_that_fail(self):
        """With missing_credentials = fail, it is a failure."""
        self.write_conf('', '[aggregate_mirror]\nmissing_credentials = fail\n')
        self.assertIn('nova-api does not start',
                      self.rows(FAILURE)['Placement credentials'].details)

    def test_unknown_auth_type(self):
        """It is reported like a missing auth_type."""
        self.write_conf('[placement]\nauth_type = pasword\n')
        self.assert_ends_at('Placement credentials', WARNING, 'pasword',
                            '  auth_type = password')

    def test_no_account(self):
        """Keystone rejects it; the commands that create it are printed."""
        keystone = self.keystone(self.cloud.placement.url)
        keystone.answers['/v3/auth/tokens'] = (401, {'error': {
            'code': 401, 'title': 'Unauthorized', 'message': 'Who are you?'}})
        self.assert_ends_at(
            'Placement authentication', FAILURE,
            '  openstack user create --domain Default --password-prompt '
            'mirror\n'
            '  openstack role add --project service --user mirror service\n'
            '  openstack user set --password-prompt mirror')

    def test_keystone_that_is_away(self):
        """The option to check is printed."""
        self.keystone()
        self.conf.write_text(self.conf.read_text().replace(
            'auth_url = http://', 'auth_url = http://127.0.0.1:1/'))
        self.assert_ends_at('Placement authentication', FAILURE,
                            '  [placement]\n  auth_url = ')

    def test_no_project(self):
        """A token without a project has no catalog."""
        self.keystone()
        keystone = self.keystone()
        answer = keystone.token()
        del answer['token']['catalog']
        keystone.answers['/v3/auth/tokens'] = (201, answer)
        self.assert_ends_at('Placement endpoint', FAILURE, 'no project',
                            '  [placement]\n  project_name = service\n')

    def test_no_endpoint(self):
        """The commands that register the service are printed."""
        self.keystone_without_placement()
        self.assert_ends_at(
            'Placement endpoint', FAILURE,
            '  openstack service create --name placement placement\n'
            '  openstack endpoint create --region RegionOne placement '
            'internal URL')

    def keystone_without_placement(self) -> None:
        keystone = self.keystone()
        answer = keystone.token()
        answer['token']['catalog'] = [service('identity', keystone.url)]
        keystone.answers['/v3/auth/tokens'] = (201, answer)

    def test_endpoint_of_another_region(self):
        """The printed lines have the region of the catalog."""
        self.keystone(self.cloud.placement.url)
        self.conf.write_text(self.conf.read_text().replace(
            '[placement]', '[placement]\nregion_name = RegionTwo'))
        self.assert_ends_at(
            'Placement endpoint', FAILURE, 'RegionTwo',
            '  [placement]\n  region_name = R\n  valid_interfaces = internal')

    def test_endpoint_that_does_not_answer(self):
        """Placement is in the catalog but does not run."""
        self.keystone(self.cloud.placement.url)
        self.cloud.placement.refuse()
        self.assert_ends_at('Placement endpoint', FAILURE,
                            '  systemctl restart placement-api')

    def test_endpoint_of_something_else(self):
        """The endpoint belongs to another service."""
        keystone = self.keystone()
        keystone.answers['/v3/auth/tokens'] = (
            201, keystone.token(keystone.url))
        keystone.answers['/'] = (200, {'versions': [{'id': 'v3.14'}]})
        self.assert_ends_at('Placement endpoint', FAILURE, 'microversions',
                            '  systemctl restart placement-api')

    def test_whole_way(self):
        """Keystone, the catalog and placement work; nova has no host."""
        self.keystone(self.cloud.placement.url)
        rows = self.rows(SUCCESS)
        self.assert_others_good(rows)
        self.assertIn(self.cloud.placement.url,
                      rows['Placement endpoint'].details)
        self.assertIn('1.36 is used', rows['Placement microversions'].details)
        self.assertIn('no compute node yet', rows['Drift'].details)


class TestRights(status_command.StatusTest):

    def test_nothing_is_allowed(self):
        """Placement's policy refuses; the role to grant is printed."""
        self.conf.write_text(self.conf.read_text().replace(
            'token = admin', 'token = another:user'))
        self.assert_ends_at(
            'Placement rights', FAILURE, 'may not list providers', '403',
            '  openstack role add --project service --user placement service')

    def test_writing_is_not_allowed(self):
        """Reading is allowed, and no other check finds the fault."""
        self.cloud.placement.fail_with(403, methods=('PUT',))
        self.assert_ends_at('Placement rights', FAILURE,
                            'may not write their aggregates')

    def test_nothing_is_written(self):
        """The test request is for a provider that does not exist."""
        host = self.cloud.create_host('h1')
        before = self.cloud.placement.generation(host.nodes[0])
        self.cloud.placement.requests.clear()
        self.rows(SUCCESS)
        self.assertEqual(before,
                         self.cloud.placement.generation(host.nodes[0]))
        put, = (request for request in self.cloud.placement.requests
                if request.method not in ('GET',))
        self.assertEqual('PUT', put.method)
        self.assertNotIn(host.nodes[0], put.path)

    def test_placement_that_fails(self):
        """Only its root responds: its database is at fault."""
        self.cloud.placement.fail_with(500, provider='resource_providers')
        self.assert_ends_at('Placement rights', FAILURE, '500',
                            '  placement-manage db sync\n')

    def test_placement_that_hangs(self):
        """The check does not exceed the timeout of a user's request."""
        self.conf.write_text(self.conf.read_text()
                             + '[aggregate_mirror]\ninline_timeout = 8\n')
        self.cloud.placement.hang(methods=('PUT',))
        began = time.monotonic()
        self.assert_ends_at('Placement rights', FAILURE,
                            'write their aggregates')
        self.assertGreater(placement_service.FOR_EVER,
                           time.monotonic() - began)


class TestNeutron(status_command.StatusTest):

    def setUp(self) -> None:
        super().setUp()
        self.server = self.keystone(self.cloud.placement.url)
        answer = self.server.token(self.cloud.placement.url)
        answer['token']['catalog'].append(
            service('network', 'http://neutron'))
        self.server.answers['/v3/auth/tokens'] = (201, answer)

    def configure(self, neutron: str) -> None:
        self.write_conf(self.account(self.server, 'placement'),
                        ROUTED % neutron)

    def test_routed_networks_need_credentials(self):
        """A warning first, then a failure, as for placement's."""
        self.configure('')
        rows = self.rows(WARNING)
        self.assert_row(
            WARNING, rows['Neutron credentials'], 'routed network',
            'from version 2 of this package on nova-scheduler does not start',
            '  [neutron]\n  auth_type = password\n', '  username = neutron\n')
        self.assert_others_good(rows, 'Neutron credentials', 'Segments')

    def test_credentials_that_work(self):
        """They get a token, and the catalog has neutron."""
        self.configure(self.account(self.server, 'neutron'))
        self.assert_others_good(self.rows(SUCCESS))

    def test_credentials_that_are_refused(self):
        """Unlike placement's, the account has to be an administrator's."""
        refusing = self.useFixture(servers.Cloud())
        refusing.answers['/v3/auth/tokens'] = (401, {'error': {
            'code': 401, 'title': 'Unauthorized', 'message': 'no'}})
        self.configure(self.account(refusing, 'neutron'))
        self.assert_row(
            FAILURE, self.rows(FAILURE)['Neutron credentials'],
            'keystone at http://', 'refused the credentials with 401',
            '  openstack role add --project service --user mirror admin\n')

    def test_neutron_not_in_the_catalog(self):
        """The option to correct is printed."""
        self.configure(self.account(self.server, 'neutron')
                       + 'region_name = RegionTwo\n')
        rows = self.rows(FAILURE)
        self.assert_row(FAILURE, rows['Neutron credentials'],
                        '  [neutron]\n  region_name = R\n')
        self.assert_others_good(rows, 'Neutron credentials', 'Segments')


def service(kind: str, url: str) -> dict[str, Any]:
    """Return a catalog entry of a service."""
    return {'type': kind, 'name': kind, 'id': kind, 'endpoints': [
        {'id': kind, 'interface': 'internal', 'region': 'R', 'region_id': 'R',
         'url': url}]}
