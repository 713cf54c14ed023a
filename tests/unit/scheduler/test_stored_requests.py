# SPDX-License-Identifier: Apache-2.0
"""Texts in the table of requests that are no requests."""

from nova import objects
import testtools

from nova_aggregate_mirror.scheduler import stored_requests

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
            self.assertRaises(stored_requests.Unreadable,
                              stored_requests.parse, text)
