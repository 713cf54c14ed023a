# SPDX-License-Identifier: Apache-2.0
"""What is read from a page, and what happens when an example goes wrong."""

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
        """Prompts go, and what a backslash continues stays together."""
        found, = parse(BLOCK)
        self.assertEqual(('one \\\n    --long', 'two > file'), found.commands)
        self.assertEqual(('Title', 7), (found.section, found.line))
        self.assertEqual(('', (0,)), (found.not_run, found.exits))

    def test_comments(self):
        """Each is about the block that follows it, and about no other."""
        text = BLOCK.replace('   .. code', '   .. %s\n\n   .. code')
        found = parse(text % 'not run: no time' + text % 'exits 0 or 7: ever'
                      + BLOCK)
        self.assertEqual(['no time', '', ''], [one.not_run for one in found])
        self.assertEqual([(0,), (0, 7), (0,)], [one.exits for one in found])

    def test_a_comment_without_a_block(self):
        """It was meant for one that somebody has taken away."""
        with self.assertRaisesRegex(ValueError, 'not followed'):
            parse('.. not run: no time\n\nText.\n')

    def test_a_line_without_a_prompt(self):
        """Nobody knows whether it is typed or printed."""
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
        """Variables stay, and ports and paths are the cloud's."""
        said = self.type('name=world', 'echo $GREETING, $name, 9184')
        self.assertIn('\nhello, world, 4711\n', said)

    def test_a_failure(self):
        """It ends the page, and says where and what was printed."""
        with self.assertRaisesRegex(
                shell.ExampleFailed,
                'no such(.|\n)*exit status 3, at somewhere.rst:7$'):
            self.type('(echo no such thing; exit 3)', 'echo never')

    def test_another_status(self):
        """One that the page speaks of is none."""
        self.assertIn('on', self.type('(exit 7)', 'echo on', exits=(0, 7)))

    def test_not_run(self):
        self.assertEqual('', self.type('exit 3', not_run='no time'))
