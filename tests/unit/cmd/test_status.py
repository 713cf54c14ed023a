# SPDX-License-Identifier: Apache-2.0
"""How the status command prints the results."""

import io

import fixtures
import testtools

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import runner
from nova_aggregate_mirror.cmd import status


class TestText(testtools.TestCase):

    def test_commands_keep_their_lines(self):
        """Prose is wrapped between words; a command is below, as it is."""
        words = 'nova-aggregate-mirror-status ' * 5
        command = 'nova-aggregate-mirror-manage db sync; ' * 3
        results = {
            'Good': runner.Result([]),
            'Bad': runner.Result([
                *checks.failure(words + 'fails. Run:', command),
                *checks.warning('Odd. Set:', '[DEFAULT]', 'a = b')])}
        for columns in 60, 80:
            self.useFixture(fixtures.EnvironmentVariable(
                'COLUMNS', str(columns)))
            *table, name, last, odd, group, option = status.text(
                results).splitlines()
            self.assertEqual(
                ['Bad:', '  ' + command, 'Bad:', '  [DEFAULT]', '  a = b'],
                [name, last, odd, group, option])
            self.assertEqual({len(table[0])}, set(map(len, table)))
            self.assertLessEqual(len(table[0]), columns)
            cells = [line.strip('| ') for line in table]
            for line in ('Check: Good', 'Result: Success', 'Details: None',
                         'Check: Bad', 'Result: Failure', 'Odd. Set:'):
                self.assertIn(line, cells)
            self.assertEqual(
                words.split(), [word for word in ' '.join(cells).split()
                                if word == words.split()[0]])

    def test_colours_on_a_terminal(self):
        """They reach it; what another service says does not control it."""
        terminal = io.StringIO()
        terminal.isatty = lambda: True
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', terminal))
        text = status.text({'Bad': runner.Result(
            checks.failure('\x1b[2J. Run:', 'rm \x1b[1mx'))})
        self.assertIn('\x1b[31mResult: Failure\x1b[0m', text)
        self.assertEqual(2, text.count('\x1b'))
        self.assertIn('\\x1b[2J. Run:', text)
        self.assertIn('rm \\x1b[1mx', text)
