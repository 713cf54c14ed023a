# SPDX-License-Identifier: Apache-2.0
"""Hosts for a tenant, with the request filters of nova and this package."""

from tests.scheduling import cloud

FREE, OWN = 'free', 'own'


class TestTenants(cloud.CloudTest):
    """Nova confines a tenant, and this package keeps others out."""

    hosts = (FREE, OWN)
    host_filters = (cloud.GUARD,)
    request_filters = ('tenant_isolation',)

    def setUp(self):
        super().setUp()
        self.flags(limit_tenants_to_placement_aggregate=True,
                   group='scheduler')
        self.aggregate('own', [OWN], filter_tenant_id='listed')
        self.wanted = self.flavor()

    def boot_as(self, project):
        """Boot a server of a tenant; return its host, or None."""
        self.admin_api.project_id = project
        return self.boot(flavor_id=self.wanted)['OS-EXT-SRV-ATTR:host']

    def enable(self, host, status):
        service, = self.admin_api.get_services(binary='nova-compute',
                                               host=host)
        self.admin_api.put_service(service['id'], {'status': status})

    def test_tenant_has_its_hosts_and_no_others(self):
        """Even when only the hosts of other tenants have room."""
        self.assertEqual((OWN, FREE),
                         (self.boot_as('listed'), self.boot_as('other')))
        self.enable(FREE, 'disabled')
        self.assertEqual((OWN, None),
                         (self.boot_as('listed'), self.boot_as('other')))
        self.enable(FREE, 'enabled')
        self.enable(OWN, 'disabled')
        self.assertEqual((None, FREE),
                         (self.boot_as('listed'), self.boot_as('other')))
