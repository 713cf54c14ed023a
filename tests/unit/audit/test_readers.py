# SPDX-License-Identifier: Apache-2.0
"""Stored requests, texts in their table that are none, and segments."""

import json

import fixtures
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids
from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror.audit import readers
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.scheduler import request_spec
from tests import neutron_service
from tests import patience
from tests.scheduling import worlds
from tests.unit import servers

SPEC = ('{"nova_object.name": "RequestSpec", "nova_object.version": "1.14", '
        '"nova_object.namespace": "nova", "nova_object.data": %s}')


class TestParse(testtools.TestCase):

    def test_text_that_is_no_request(self):
        """Whatever a row contains, the other rows are still audited."""
        objects.register_all()
        for text in (
                '', 'null', '[]', '1', '"text"', '{}', '{', '1e999',
                '[' * 100000, '{"":' * 100000, SPEC % '[]',
                SPEC % '{"num_instances": 1e999}',
                SPEC % '{"num_instances": NaN}',
                SPEC.replace('1.14', '9.0') % '{}',
                SPEC.replace('RequestSpec', 'NoSuchObject') % '{}'):
            self.assertRaises(request_spec.UNREADABLE, readers.parse, text)


class TestRequests(testtools.TestCase):

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.requests = readers.RequestCache()
        self.parsed = 0

        def parse(text):
            self.parsed += 1
            return loads(text)

        loads = json.loads
        self.useFixture(fixtures.MonkeyPatch('json.loads', parse))

    def stored(self, server, **requested):
        """Return a request as nova stores it."""
        spec = worlds.request_spec(**requested)
        spec.instance_uuid = server
        # Nova stores the server here, too.
        spec.pci_requests = objects.InstancePCIRequests(
            instance_uuid=server, requests=[])
        return json.dumps(spec.obj_to_primitive())

    def request(self, server='', **requested):
        server = server or uuidutils.generate_uuid()
        return self.requests.parse(self.stored(server, **requested), server)

    def test_servers_that_share_a_request(self):
        """It is parsed once, and others are not mistaken for it.

        Only the fields that name the server are left out.
        """
        for _server in range(10):
            shared = self.request(zone='east', image={'hw_machine_type': 'pc'})
            self.assertEqual(
                ('east', 'tenant-a', {'hw_machine_type': 'pc'}),
                (shared.zone, shared.project, shared.image))
        self.assertEqual(1, self.parsed)
        server = uuidutils.generate_uuid()
        for zone in 'west', 'other', server:
            self.assertEqual(zone, self.request(server, zone=zone).zone)
        self.assertEqual('other', self.request(zone='other').zone)
        self.assertEqual('tenant-b', self.request(project='tenant-b').project)

    def test_memory_is_bounded(self):
        """Neither many requests nor long ones are kept."""
        stored = self.stored('', zone='ZONE')
        for number in range(readers.CACHE_SIZE + 1):
            self.requests.parse(stored.replace('ZONE', str(number)), '')
        self.parsed = 0
        self.requests.parse(stored.replace('ZONE', '0'), '')
        self.assertEqual(1, self.parsed)
        for _server in range(2):
            self.request(zone='z' * readers.MAX_LENGTH)
        self.assertEqual(3, self.parsed)

    def test_image_of_many_possible_fields(self):
        """Only those that are set are asked for."""
        asked, is_set = [], objects.ImageMetaProps.obj_attr_is_set

        def count(image, name):
            asked.append(name)
            return is_set(image, name)

        stored = self.stored('', image={'hw_machine_type': 'pc'})
        self.useFixture(fixtures.MonkeyPatch(
            'nova.objects.ImageMetaProps.obj_attr_is_set', count))
        readers.parse(stored)
        self.assertLess(len(asked), 5)


class TestSegments(servers.LoopbackTestCase):

    def test_neutron_that_does_not_answer(self):
        """A request ends after ``request_timeout``."""
        server = self.useFixture(servers.Server(servers.say_nothing))
        conf = servers.make_conf()
        neutron_service.NeutronService().configure(conf, server.url)
        conf.set_override(
            'request_timeout', patience.seconds(1), 'aggregate_mirror')
        reader = readers.SegmentReader(conf, client.Client(conf), [])
        self.assertRaises(exceptions.DeadlineExceeded,
                          reader.read, [uuids.server])
        self.assertTrue(server.closed.wait(servers.PATIENCE))
