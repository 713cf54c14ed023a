# SPDX-License-Identifier: Apache-2.0
"""The output formats and the progress of a command."""

import contextlib
import csv
import io
import json
import os

from cliff import lister
import testtools
import yaml

from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror import printable
from tests.unit.test_printable import EVIL
from tests.unit.test_printable import SAFE


class TestFormats(testtools.TestCase):

    def show(self, form, columns=('Name', 'Count'),
             rows=(('a "b"\nc', 1), ('d', None))):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            cli.show(form, {'rows': [1, None]}, columns, rows)
        return out.getvalue()

    def test_they_are_those_of_the_openstack_client(self):
        """A script selects both in the same way."""
        class Command(lister.Lister):
            """A command of the openstack client."""

            def take_action(self, parsed_args):
                raise NotImplementedError

        found = Command(None, None).get_parser('')
        choices, = [action.choices for action in found._actions
                    if '-f' in action.option_strings]
        self.assertEqual(sorted(choices), sorted(cli.FORMATS))

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

    def test_text_that_controls_the_terminal(self):
        """It is escaped; a line break is part of a value in CSV."""
        for form, text in (
                ('value', SAFE.replace('\\r\\n', ' ') + '\n'),
                ('csv', '"Name"\n"%s"\n' % SAFE.replace('\\n', '\n'))):
            self.assertEqual(text, self.show(form, ['Name'], [[EVIL]]))

    def test_documents_have_escapes_of_their_own(self):
        """A terminal gets no control, and a program the exact text."""
        for text in EVIL, 'a\u0085b', 'a\u2028b':
            for form, load in ('json', json.loads), ('yaml', yaml.safe_load):
                document = cli.document(form, {text: [text, 'ä']})
                self.assertEqual(printable.lines(document), document)
                self.assertEqual({text: [text, 'ä']}, load(document))


class TestProgress(testtools.TestCase):

    def sync(self, providers):
        """Complete four providers, each in two seconds."""
        seconds = iter(range(0, 100, 2))
        output = io.StringIO()
        with contextlib.redirect_stderr(output):
            display = cli.ProgressLines(lambda: next(seconds))
            display.step('Reading', providers)
            for _provider in range(4):
                display.advance()
            display.step('Writing')
        return output.getvalue()

    def test_a_number_every_few_seconds(self):
        self.assertEqual('Reading\n2 of 4 providers done\n'
                         '4 of 4 providers done\nWriting\n',
                         self.sync(4))

    def test_reader_that_has_ended(self):
        """The command goes on."""
        reader, writer = os.pipe()
        os.close(reader)
        pipe = open(writer, 'w')
        with contextlib.redirect_stderr(pipe):
            cli.ProgressLines().step('Reading')
        # It may still have the line.
        with contextlib.suppress(BrokenPipeError):
            pipe.close()

    def test_without_a_number_nothing_is_counted(self):
        self.assertEqual('Reading\nWriting\n', self.sync(0))
