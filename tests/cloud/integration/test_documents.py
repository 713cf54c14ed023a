# SPDX-License-Identifier: Apache-2.0
"""Documents of the real services, compared with ``tests.documents``."""

import uuid

from tests.cloud import access
from tests.cloud.integration import base
from tests.cloud.situations import servers
from tests import documents

ANY = str(uuid.uuid4())
COUNTS = {'total_ips': 0, 'used_ips': 0, 'ip_availability_details': {}}


class TestKeys(base.TestCase):
    """What unit tests read has every key of what the real service answers."""

    def assert_keys(self, double, real):
        self.assertEqual(sorted(real), sorted(double))

    def read(self, service, url, **options):
        return self.cloud.rest(service).get(url, **options).json()

    def test_glance(self):
        self.assert_keys(documents.image(ANY), self.read(
            'image', '/v2/images/%s' % servers.image_of(self.scene)))

    def test_keystone(self):
        """A project, and the version that discovery reads."""
        identity = self.cloud.identity()
        project, *_others = identity.get('/projects').json()['projects']
        self.assert_keys(documents.project(ANY), project)
        self.assert_keys(documents.identity('http://keystone'), self.read(
            'identity', self.cloud.config.auth_url,
            authenticated=False)['version'])

    def test_token(self):
        """With its user, its project and an entry of its catalog."""
        project = {'name': 'admin', 'domain': {'id': 'default'}}
        user = {**project, 'password': self.cloud.config.password}
        login = {'auth': {
            'identity': {'methods': ['password'], 'password': {'user': user}},
            'scope': {'project': project}}}
        real = self.cloud.rest('identity').post(
            self.cloud.config.auth_url + '/auth/tokens', json=login,
            authenticated=False).json()['token']
        double = documents.token(
            [documents.service('placement', 'http://placement')], '')
        self.assert_keys(double, real)
        for name in 'user', 'project':
            self.assert_keys(double[name], real[name])
        ours, theirs = double['catalog'][0], real['catalog'][0]
        self.assert_keys(ours, theirs)
        self.assert_keys(ours['endpoints'][0], theirs['endpoints'][0])

    def test_placement(self):
        """Its version, and a provider in a list."""
        placement = self.cloud.placement()
        [version] = placement.get('/').json()['versions']
        self.assert_keys(documents.placement_version(), version)
        provider, *_others = placement.get(
            '/resource_providers').json()['resource_providers']
        self.assert_keys(documents.provider(ANY), provider)

    def test_neutron(self):
        """A network, its subnet, their counts, and a port."""
        network = servers.network_of(self.scene)
        networks = self.cloud.rest('network')
        port = access.create(networks, '/v2.0/ports',
                             port={'network_id': network})
        self.addCleanup(networks.delete, '/v2.0/ports/' + port['id'])
        self.assert_keys(documents.port(ANY), port)
        [counts] = self.read(
            'network', '/v2.0/network-ip-availabilities?network_id='
            + network)['network_ip_availabilities']
        self.assert_keys(documents.network_counts(ANY, [], **COUNTS), counts)
        self.assert_keys(documents.subnet_counts(ANY, **COUNTS),
                         counts['subnet_ip_availability'][0])
        self.assert_keys(documents.network(ANY), self.read(
            'network', '/v2.0/networks/' + network)['network'])
        [subnet] = self.read(
            'network', '/v2.0/subnets?network_id=' + network)['subnets']
        self.assert_keys(documents.subnet(ANY), subnet)
