# SPDX-License-Identifier: Apache-2.0
"""The samples on the mirroring page are the requests that placement gets."""

import json
import pathlib
import re

import testtools

from tests import fixtures

PAGE = (pathlib.Path(__file__).parent.parent.parent / 'doc' / 'source'
        / 'user' / 'mirroring.rst')
UUID = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
BLOCK = re.compile(r'\.\. code-block:: http\n\n((?:   .*\n|\n)+)')
OURS = 'OpenStack-API-Version'


def samples():
    """Yield method, path, headers and body of each of our samples."""
    for text in BLOCK.findall(PAGE.read_text()):
        head, _empty, body = '\n'.join(
            line.strip() for line in text.splitlines()).strip().partition(
                '\n\n')
        first, *lines = head.splitlines()
        headers = dict(line.split(': ', 1) for line in lines)
        if OURS in headers:
            method, path, _version = first.split()
            yield method, path, headers, body and json.loads(body)


class TestMirroringPage(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        self.useFixture(fixtures.MirroredNova())
        aggregate = self.cloud.create_aggregate('rack-7', 'east')
        gone = self.cloud.create_aggregate('gone', 'east')
        host = self.cloud.create_host('compute-12')
        # The first call of a process also reads the versions.
        self.cloud.add_host(aggregate, host)
        self.cloud.remove_host(aggregate, host)
        self.cloud.placement.requests.clear()
        self.cloud.add_host(aggregate, host)
        self.cloud.delete_aggregate(gone)
        self.sent = self.cloud.placement.requests

    def test_requests(self):
        """The same requests are sent, in this order."""
        self.assertEqual(
            [(sent.method, UUID.sub('UUID', sent.path)) for sent in self.sent],
            [(method, UUID.sub('UUID', path))
             for method, path, _headers, _body in samples()])

    def test_headers_and_bodies(self):
        """They have the headers and the body length of the sample."""
        for sent, sample in zip(self.sent, samples(), strict=True):
            received = {name.lower(): value
                        for name, value in sent.headers.items()}
            _method, _path, headers, body = sample
            for name, value in headers.items():
                if name != 'X-Openstack-Request-Id':
                    self.assertEqual(value, received[name.lower()])
            self.assertRegex(received['x-openstack-request-id'], '^req-')
            if body:
                self.assertEqual(len(json.dumps(body)),
                                 int(received['content-length']))
