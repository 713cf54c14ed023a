# SPDX-License-Identifier: Apache-2.0
"""What all commands do when output, arguments or journal cannot be used."""

import argparse
import ast
import contextlib
import io
import logging
import os
import pathlib
import subprocess
import sys
import textwrap

import fixtures
from oslo_config import cfg
from oslo_log import formatters
from oslo_log import handlers
from oslo_log import log as oslo_log
import testtools

import nova_aggregate_mirror
from nova_aggregate_mirror.cmd import manage
from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror import exceptions
from tests.unit.test_printable import EVIL
from tests.unit.test_printable import SAFE

PACKAGE = pathlib.Path(nova_aggregate_mirror.__file__).parent
# They escape the text that they return.
ESCAPING = ('document(results) if CONF.command.json else text(results)',
            'auditor.table', 'cli.document', 'printable.line',
            'printable.lines', 'terminal_tables.render', 'view.text')

SCRIPT = textwrap.dedent('''
    from nova_aggregate_mirror.cmd import program
    import sys
    def command():
        %s
        return 7
    sys.exit(program.run('mirror', command))
    ''')
FAILING = ('from nova_aggregate_mirror import exceptions; '
           'raise exceptions.UnknownName("no such host")')
NOBODY = 65534
RED, BLUE, RESET = '\x1b[01;31m', '\x1b[00;34m', '\x1b[00m'
OWN, NOVA = 'nova_aggregate_mirror.agent', 'nova.compute'
SHORT, LONG = 'print("text")', 'print("text" * 100000)'


class TestProgram(testtools.TestCase):

    def run_command(self, command, *argv, stdout=subprocess.PIPE, **options):
        done = subprocess.run(
            [sys.executable, '-c', SCRIPT % command, *argv],
            stdout=stdout, stderr=subprocess.PIPE, **options)
        return done.returncode, done.stderr.decode()

    def test_disk_that_is_full(self):
        """It ends with 255 and one line, whatever the length of the text."""
        for command in SHORT, LONG:
            with open('/dev/full', 'w') as full:
                status, said = self.run_command(command, stdout=full)
            self.assertEqual(
                (255, 'mirror: the output could not be written: [Errno 28] No '
                      'space left on device\n'), (status, said))

    def test_reader_that_ends_first(self):
        """It ends with 141 and without a line, like --help."""
        # Otherwise text is already written by print().
        self.useFixture(fixtures.EnvironmentVariable('PYTHONUNBUFFERED'))
        for command in SHORT, LONG, 'print("text"); sys.exit()':
            reader, writer = os.pipe()
            os.close(reader)
            with open(writer, 'w') as pipe:
                self.assertEqual((141, ''), self.run_command(
                    command, stdout=pipe))

    def test_reader_of_the_error_that_ends_first(self):
        """As with ``2>&1 | head``; 1 would be a result of some commands."""
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, 'w') as pipe:
            done = subprocess.run(
                [sys.executable, '-c', SCRIPT % FAILING], stdout=pipe,
                stderr=pipe)
        self.assertEqual(141, done.returncode)

    def test_other_error_of_the_system(self):
        """A defect of a command is still reported with its traceback."""
        status, said = self.run_command('open("/none/none")')
        self.assertEqual(1, status)
        self.assertIn('FileNotFoundError', said)

    def test_output_that_is_closed(self):
        """The command runs, and its output is discarded."""
        for descriptor in 1, 2:
            for command in SHORT, 'print("text", file=sys.stderr)':
                status, said = self.run_command(
                    command, preexec_fn=lambda: os.close(descriptor))
                self.assertEqual(7, status, said)
                self.assertNotIn('Error', said)

    def test_argument_that_is_not_text(self):
        """It ends with 255, before the command compares it."""
        status, said = self.run_command(SHORT, '--host', b'h\xe9')
        self.assertEqual(255, status)
        self.assertEqual(
            "mirror: the argument 'h\\udce9' is not text in the encoding of "
            'the locale, such as UTF-8\n', said)

    def test_argument_that_is_empty(self):
        """A variable that a script has not set does not select everything."""
        for arguments, name in ((['--project', ''], 'after --project'),
                                (['--zone='], '--zone')):
            self.assertEqual(
                (255, 'mirror: the argument %s has no value\n' % name),
                self.run_command(SHORT, *arguments))
        self.assertEqual((7, ''), self.run_command(
            SHORT, '--image-property', 'hw_machine_type='))


class TestUnreadable(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'nova')
        self.folder.mkdir()
        self.file = self.folder / 'nova.conf'
        self.file.write_text('[DEFAULT]\n')
        # Whatever the umask is.
        self.file.chmod(0o644)
        for folder in self.folder, self.folder.parent:
            folder.chmod(0o755)

    @contextlib.contextmanager
    def other_user(self):
        """Become a user who is not root."""
        if os.geteuid():
            yield
            return
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)

    def refusal(self, path):
        with self.other_user():
            return str(self.assertRaises(
                exceptions.InvalidConfiguration, program.check_readable,
                [path], 'mirror'))

    def test_file_of_another_user(self):
        """The step is the user of nova-api, not root."""
        self.file.chmod(0)
        said = self.refusal(self.file)
        self.assertIn(' may not read %s, which belongs to user ' % self.file,
                      said)
        self.assertTrue(said.endswith(
            ': run the program as the user of nova-api, such as with '
            '"sudo -u nova mirror ..."'), said)

    def test_folder_that_may_only_be_entered(self):
        """The right that is missing decides, not that of reading."""
        self.folder.chmod(0o711)
        self.assertIn('%s, which' % self.folder, self.refusal(self.folder))
        with self.other_user():
            program.check_readable([self.file], 'mirror')

    def test_folder_of_the_configuration(self):
        """Oslo.config would find no file in it, and the checks pass."""
        conf = cfg.ConfigOpts()
        conf.register_opt(cfg.StrOpt('state_path'))
        self.folder.chmod(0o711)
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.cmd.program.CONF', conf))
        self.useFixture(fixtures.MonkeyPatch('sys.argv', [
            'mirror', '--config-file', str(self.file),
            '--config-dir', str(self.folder)]))
        with self.other_user():
            error = self.assertRaises(
                exceptions.InvalidConfiguration,
                program.read_configuration, 'mirror', '')
        self.assertIn('may not read %s' % self.folder, str(error))

    def test_folder(self):
        """Files in a folder that cannot be entered appear not to exist."""
        self.folder.chmod(0o600)
        self.assertIn('%s, which' % self.folder, self.refusal(self.file))
        self.folder.chmod(0o755)
        with self.other_user():
            program.check_readable(
                [self.file, self.folder, '/none/none'], 'mirror')

    def test_program(self):
        """It prints this line, and exits with 255."""
        self.file.chmod(0)

        def command():
            raise cfg.ConfigFilesPermissionDeniedError([str(self.file)])

        errors = io.StringIO()
        with self.other_user(), contextlib.redirect_stderr(errors):
            self.assertEqual(255, program.run('mirror', command))
        self.assertEqual(1, errors.getvalue().count('\n'))
        self.assertIn('mirror: user ', errors.getvalue())


class TestLog(testtools.TestCase):

    def set_up(self, kind=logging.StreamHandler, line='%(message)s'):
        """Set up the log of a process; return what it has written."""
        conf = cfg.ConfigOpts()
        oslo_log.register_options(conf)
        conf([])
        for name in 'context', 'default':
            conf.set_override('logging_%s_format_string' % name, line)
        out = io.StringIO()
        handler = kind(out)
        handler.setFormatter(formatters.ContextFormatter(config=conf))
        self.useFixture(fixtures.MonkeyPatch(
            'logging.root.handlers', [handler]))
        program.escape_controls()
        return out

    def test_text_that_controls_the_terminal(self):
        """It is escaped in each message; one of this package is one line."""
        for name, text in ((OWN, SAFE), (NOVA, SAFE.replace('\\n', '\n'))):
            out = self.set_up()
            logging.getLogger(name).warning('Host %s 100%%', EVIL)
            self.assertEqual('Host %s 100%%\n' % text, out.getvalue())

    def test_line_that_is_no_text(self):
        """As a formatter for fluentd returns: the message is escaped in it."""
        lines = []
        handler = logging.Handler()
        handler.emit = lambda record: lines.append(handler.format(record))
        handler.setFormatter(formatters.FluentFormatter())
        self.useFixture(fixtures.MonkeyPatch(
            'logging.root.handlers', [handler]))
        program.escape_controls()
        logging.getLogger(OWN).warning('Host %s', EVIL)
        self.assertEqual('Host ' + SAFE, lines[0]['message'])

    def test_exceptions(self):
        """Their text is escaped in traceback and summary; lines are kept."""
        for name in OWN, NOVA, 'keystoneauth.session':
            out = self.set_up()
            try:
                raise RuntimeError(EVIL)
            except RuntimeError:
                logging.getLogger(name).exception('Failed')
            text = out.getvalue()
            self.assertIn('\n', text.partition('Traceback')[2])
            self.assertTrue(text.replace('\n', '').isprintable(), repr(text))

    def test_summary_of_the_exception_that_is_handled(self):
        """Oslo.log appends it to each warning."""
        out = self.set_up()
        try:
            raise RuntimeError(EVIL)
        except RuntimeError:
            logging.getLogger(OWN).warning('Failed')
        self.assertEqual(
            'Failed: RuntimeError: a\\x1b[2J\\x9b2J\\x1b]0;b\\x07\\r\n',
            out.getvalue())

    def test_colors(self):
        """Those of level and format are kept, others are escaped."""
        out = self.set_up(handlers.ColorHandler, (
            '%(color)s' + BLUE + '%(name)s' + RESET + '%(message)s'))
        logging.getLogger(OWN).error('a\x1b[01;32mb' + RED + 'c')
        self.assertEqual(
            RED + BLUE + OWN + RESET + 'a\\x1b[01;32mb\\x1b[01;31mc' + RESET
            + '\n', out.getvalue())


class TestPrinting(testtools.TestCase):

    def test_text_that_controls_the_terminal(self):
        """What others may have written is escaped before it is printed."""
        unknown = []
        for path in sorted(PACKAGE.rglob('*.py')):
            # These print errors, which are escaped, and texts of their own.
            if path.parts[-2:] in (('cmd', 'program.py'), ('cmd', 'start.py')):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call) or (
                        ast.unparse(node.func) != 'print'):
                    continue
                text = node.args[0]
                if isinstance(text, ast.Call):
                    text = text.func
                if not isinstance(text, ast.Constant) and (
                        ast.unparse(text) not in ESCAPING):
                    unknown.append('%s:%d' % (path.name, node.lineno))
        self.assertEqual([], unknown)


class TestCommands(testtools.TestCase):

    def test_every_example_is_accepted(self):
        """The parser of its command takes the arguments, and prints them."""
        parser = argparse.ArgumentParser(prog='manage')
        manage.add_commands(parser.add_subparsers(required=True))
        for command in manage.COMMANDS:
            words = [*command.words.split(), *command.example.split()]
            self.assertEqual(command.run, parser.parse_args(words).run)
