# SPDX-License-Identifier: Apache-2.0
"""Parsing of a page, and the failure of examples."""

import pathlib
import tempfile
import unittest

from tests.repository.docs import page
from tests.repository.docs import shell

BLOCK = '''
Title
=====

#. A step:

   .. code-block:: console

      $ one \\
          --long
      # two > file

More text.
'''


def parse(text):
    return list(page.parse('somewhere', text))


class TestParse(unittest.TestCase):

    def test_a_block(self):
        """Prompts are removed, and continuation lines are kept together."""
        found, = parse(BLOCK)
        self.assertEqual(('one \\\n    --long', 'two > file'), found.commands)
        self.assertEqual(('Title', 7), (found.section, found.line))
        self.assertEqual(('', (0,)), (found.not_run, found.exits))

    def test_comments(self):
        """A comment applies only to the block that follows it."""
        text = BLOCK.replace('   .. code', '   .. %s\n\n   .. code')
        found = parse(text % 'not run: no time' + text % 'exits 0 or 7: ever'
                      + BLOCK)
        self.assertEqual(['no time', '', ''], [one.not_run for one in found])
        self.assertEqual([(0,), (0, 7), (0,)], [one.exits for one in found])

    def test_a_comment_without_a_block(self):
        """The comment's block may have been deleted by mistake."""
        with self.assertRaisesRegex(ValueError, 'not followed'):
            parse('.. not run: no time\n\nText.\n')

    def test_a_line_without_a_prompt(self):
        """It could be a command or output."""
        with self.assertRaisesRegex(ValueError, "'one .*' has no prompt"):
            parse(BLOCK.replace('$ one', 'one'))


class TestShell(unittest.TestCase):

    def setUp(self):
        super().setUp()
        directory = self.enterContext(tempfile.TemporaryDirectory())
        openrc = pathlib.Path(directory) / 'openrc'
        openrc.write_text('export GREETING=hello\n')
        self.shell = shell.Shell(openrc, {'9184': '4711'})

    def type(self, *commands, **more):
        return self.shell.type([
            page.Example('somewhere', 7, 'Title', commands, **more)])

    def test_one_shell_for_all(self):
        """Variables persist; ports and paths are replaced by the cloud's."""
        said = self.type('name=world', 'echo $GREETING, $name, 9184')
        self.assertIn('\nhello, world, 4711\n', said)

    def test_a_failure(self):
        """A failure ends the page; the error has the place and the output."""
        with self.assertRaisesRegex(
                shell.ExampleFailed,
                'no such(.|\n)*exit status 3, at somewhere.rst:7$'):
            self.type('(echo no such thing; exit 3)', 'echo never')

    def test_another_status(self):
        """An exit status that the page mentions is not a failure."""
        self.assertIn('on', self.type('(exit 7)', 'echo on', exits=(0, 7)))

    def test_not_run(self):
        self.assertEqual('', self.type('exit 3', not_run='no time'))
