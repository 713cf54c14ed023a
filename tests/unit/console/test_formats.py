# SPDX-License-Identifier: Apache-2.0
"""The output formats."""

import csv
import io
import json

from cliff import lister
import fixtures
import testtools
import yaml

from nova_aggregate_mirror.console import formats
from nova_aggregate_mirror import printable
from tests.unit.test_printable import EVIL


class TestFormats(testtools.TestCase):

    def show(self, form):
        out = self.useFixture(fixtures.StringStream('out')).stream
        with fixtures.MonkeyPatch('sys.stdout', out):
            formats.show(form, {'rows': [1, None]}, ('Name', 'Count'),
                         [('a "b"\nc', 1), ('d', None)])
        out.seek(0)
        return out.read()

    def test_they_are_those_of_the_openstack_client(self):
        """A script selects both in the same way."""
        class Command(lister.Lister):
            """A command of the openstack client."""

            def take_action(self, parsed_args):
                raise NotImplementedError

        found = Command(None, None).get_parser('')
        choices, = [action.choices for action in found._actions
                    if '-f' in action.option_strings]
        self.assertEqual(sorted(choices), sorted(formats.FORMATS))

    def test_documents(self):
        self.assertEqual({'rows': [1, None]}, json.loads(self.show('json')))
        self.assertEqual({'rows': [1, None]},
                         yaml.safe_load(self.show('yaml')))
        self.assertTrue(self.show('json').endswith('}\n'))

    def test_values_have_a_line_for_each_row(self):
        self.assertEqual('a "b" c 1\nd \n', self.show('value'))

    def test_csv_has_a_header(self):
        self.assertEqual(
            [['Name', 'Count'], ['a "b"\nc', '1'], ['d', '']],
            list(csv.reader(io.StringIO(self.show('csv')))))

    def test_documents_have_escapes_of_their_own(self):
        """A terminal gets no control, and a program the exact text."""
        for text in EVIL, 'a\u0085b', 'a\u2028b':
            for form, load in ('json', json.loads), ('yaml', yaml.safe_load):
                document = formats.document(form, {text: [text, 'ä']})
                self.assertEqual(printable.lines(document), document)
                self.assertEqual({text: [text, 'ä']}, load(document))
