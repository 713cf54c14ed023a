# SPDX-License-Identifier: Apache-2.0
"""Images, and names of projects, images and networks."""

from keystoneauth1 import loading
from nova.objects import image_meta
from oslo_utils.fixture import uuidsentinel as uuids

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.limits import deadline
from tests import documents
from tests.unit import servers


class ResourcesTest(servers.LoopbackTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(servers.Cloud())
        self.cloud.grant(others=[
            documents.service(kind, self.cloud.url + path)
            for kind, path in (('identity', '/v3'), ('image', ''),
                               ('network', ''))])
        self.conf = servers.make_conf(**self.cloud.account())
        for group, service_type in (('keystone', 'identity'),
                                    ('glance', 'image'),
                                    ('neutron', 'network')):
            loading.register_session_conf_options(self.conf, group)
            loading.register_adapter_conf_options(self.conf, group)
            self.conf.set_default('service_type', service_type, group)
            self.conf.set_default(
                'valid_interfaces', ['internal', 'public'], group)
        loading.register_auth_conf_options(self.conf, 'neutron')
        self.conf.set_override('auth_section', 'placement', 'neutron')


class TestImage(ResourcesTest):

    def read(self, status=200, **values):
        """Read an image of glance with these values."""
        self.cloud.answers['/v2/images/%s' % uuids.image] = (
            status, documents.image(uuids.image, **values))
        with deadline.within(servers.PATIENCE):
            return resources.read_image(self.conf, uuids.image)

    def test_image_of_nova(self):
        """Nova takes all but the properties as keywords."""
        image = self.read(hw_machine_type='q35', min_ram=64)
        self.assertEqual({'hw_machine_type': 'q35'}, image['properties'])
        self.assertLessEqual(set(image), set(image_meta.ImageMeta.fields))
        meta = image_meta.ImageMeta.from_dict(image)
        self.assertEqual(
            (uuids.image, 'demo', 64, 'q35'),
            (meta.id, meta.name, meta.min_ram,
             meta.properties.hw_machine_type))

    def test_attributes_of_other_glances(self):
        """An attribute that no nova has is none of the keywords.

        Those of an image that was not uploaded are null.
        """
        image = self.read(
            locations=[], direct_url='rbd://a', context='b', size=None,
            checksum=None, disk_format=None, container_format=None)
        self.assertEqual({'context': 'b'}, image['properties'])
        image_meta.ImageMeta.from_dict(image)

    def test_image_that_glance_does_not_have(self):
        self.assertRaises(exceptions.UnknownName, self.read, 404)
