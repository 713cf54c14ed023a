# SPDX-License-Identifier: Apache-2.0
"""What every command of ``nova-aggregate-mirror-manage`` does first."""

import json
import pathlib
import subprocess
import sys

import fixtures
import testtools

COMMANDS = (
    ['placement', 'sync_aggregates'], ['placement', 'wait', '--host', 'h1'],
    ['placement', 'audit_servers'], ['report', '--html', '-'],
    ['scheduling', 'explain', '--flavor', 'm1.small'], ['db', 'sync'],
    ['journal', 'list'], ['journal', 'forget', '1'])

# Each process would import nova, which takes a second.
SCRIPT = """
import json, os, sys
from nova_aggregate_mirror.cmd import manage
answers = []
for argv in json.loads(sys.argv[1]):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(writer, 1), os.dup2(writer, 2)
        os._exit(manage.main(argv))
    os.close(writer)
    with open(reader) as stderr:
        text = stderr.read()
    answers.append((os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text))
print(json.dumps(answers))
"""


class TestManage(testtools.TestCase):

    def test_options_that_cannot_be_used(self):
        """No command begins, and each names the option or the file.

        Without a check, nan would switch off the limit of removals.
        """
        for option, text in (
                ('[aggregate_mirror]\nmax_removed_share = nan',
                 'manage: [aggregate_mirror] max_removed_share: '),
                ('[DEFAULT]\nlog_file = /none/log', 'manage: the log cannot '
                 'be set up: [Errno 2] No such file or directory: '
                 '\'/none/log\'; run the command as the user of nova-api, ')):
            self.check(option, text)

    def check(self, option, text):
        """Assert that each command refuses an option with this text."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        file = folder / 'nova.conf'
        file.write_text('[DEFAULT]\nstate_path = %s\n'
                        '[api_database]\nconnection = sqlite://\n'
                        '%s\n' % (folder, option))
        ended = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', SCRIPT, json.dumps(
                [['--config-file', str(file), *command]
                 for command in COMMANDS])],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, check=True)
        answers = json.loads(ended.stdout)
        self.assertEqual(len(COMMANDS), len(answers))
        for status, line in answers:
            self.assertEqual(255, status, line)
            self.assertIn(text, line)
        self.assertEqual([file], [*folder.iterdir()])
