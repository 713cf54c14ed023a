# SPDX-License-Identifier: Apache-2.0
"""The status command: its output, and its checks of nova."""

import pathlib
import re

from nova_aggregate_mirror.cmd import status
from tests import fixtures
from tests.functional import status_command
from tests.functional.status_command import COULD_NOT_RUN
from tests.functional.status_command import FAILURE
from tests.functional.status_command import SUCCESS
from tests.functional.status_command import WARNING


class TestOutput(status_command.StatusTest):

    def test_everything_is_good(self):
        """It exits with 0, with a row per check, and creates no journal."""
        zone = self.cloud.create_aggregate('zone', 'az1')
        self.member(zone, 'h1', nodes=2)
        rows = self.rows(SUCCESS)
        self.assertEqual([check.name for check in status.CHECKS], list(rows))
        self.assert_others_good(rows)
        self.assertIn(str(self.conf), rows['Options'].details)
        self.assertIn('1 host aggregate.', rows['Drift'].details)
        self.assertEqual('', rows['Neutron credentials'].details)
        self.assertFalse(pathlib.Path(
            fixtures.CONF.state_path, 'aggregate_mirror').exists())

    def test_table_has_lines_to_copy(self):
        """Prose is wrapped; a command line never is."""
        self.write_conf(more='[aggregate_mirror_database]\n'
                             'connection = nonsense\n')
        done = self.run_command('upgrade', 'check')
        self.assertEqual(FAILURE, done.returncode)
        self.assertIn(
            '|   connection = mysql+pymysql://aggregate_mirror:PASSWORD@HOST/'
            'nova_aggregate_mirror |', re.sub(' +\\|', ' |', done.stdout))
        self.assertIn('| Check: Journal', done.stdout)
        self.assertIn('| Result: Failure', done.stdout)
        self.assertIn('Details: Not checked: resolve "Journal" first.',
                      done.stdout)
        prose = [line for line in done.stdout.splitlines()
                 if re.match(r'\| \S', line)]
        self.assertGreater(65, max(
            len(line.rstrip('| ')) for line in prose))

    def test_configuration_without_nova(self):
        """It exits with 255 and a line with the missing option."""
        self.conf.write_text('')
        done = self.run_command('upgrade', 'check')
        self.assertEqual((COULD_NOT_RUN, ''), (done.returncode, done.stdout))
        self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)
        self.assertIn('--config-file', done.stderr)

    def test_configuration_that_cannot_be_read(self):
        """It exits with 255 and names the file."""
        self.conf.unlink()
        done = self.run_command('upgrade', 'check')
        self.assertEqual(COULD_NOT_RUN, done.returncode)
        self.assertIn('nova.conf', done.stderr)

    def test_usage_error_is_no_failed_check(self):
        """A usage error exits with 255, since 2 is a failed check."""
        for argv in ((), ('upgrade',), ('upgrade', 'check', '--jason')):
            done = self.run_command(*argv)
            self.assertEqual(COULD_NOT_RUN, done.returncode)
            self.assertIn('usage:', done.stderr)
        self.assertEqual(0, self.run_command('--help').returncode)

    def test_later_file_overrides(self):
        """Files and directories are read as nova reads them."""
        folder = self.conf.with_name('nova.conf.d')
        folder.mkdir()
        folder.joinpath('mirror.conf').write_text(
            '[aggregate_mirror]\ninline_timeout = soon\n')
        done = self.run_command('--config-dir', str(folder), 'upgrade',
                                'check')
        self.assertEqual(FAILURE, done.returncode)
        self.assertIn('inline_timeout', done.stdout)


class TestNova(status_command.StatusTest):

    def test_invalid_options(self):
        """Each is named with its default; all other checks run."""
        self.write_conf(more='[aggregate_mirror]\ninline_timeout = soon\n'
                             'cell_timeout = -1\n')
        rows = self.rows(FAILURE)
        self.assert_row(
            FAILURE, rows['Options'],
            '  [aggregate_mirror]\n  inline_timeout = 5.0',
            '  [aggregate_mirror]\n  cell_timeout = 60.0')
        self.assert_others_good(rows, 'Options')

    def test_api_database_without_tables(self):
        """The check prints "nova-manage api_db sync"."""
        self.write_conf(api='sqlite:///%s' % self.conf.with_name('api.sqlite'))
        rows = self.rows(FAILURE)
        self.assert_row(FAILURE, rows['Nova\'s API database'],
                        '  nova-manage api_db sync')
        waiting = ('Galera', 'Journal of this nova', 'Drift',
                   'Availability zones', 'Allocation ratios')
        for name in waiting:
            self.assert_row(WARNING, rows[name],
                            'resolve "Nova\'s API database" first')
        self.assert_others_good(rows, 'Nova\'s API database', *waiting)

    def test_api_database_that_is_unavailable(self):
        """The reason is printed at once, without the password."""
        self.write_conf(api='mysql+pymysql://nova:%s@127.0.0.1:1/nova_api'
                            % status_command.PASSWORD)
        row = self.rows(FAILURE)['Nova\'s API database']
        self.assert_row(FAILURE, row, 'refused', '  [api_database]\n')

    def test_hook_that_is_unknown(self):
        """Nova-api would not load it; the correct line is printed."""
        self.write_conf(more='[aggregate_mirror]\nhooks = mirrow\n')
        rows = self.rows(FAILURE)
        self.assert_row(FAILURE, rows['Hook'], 'mirrow',
                        '  [aggregate_mirror]\n  hooks = mirror')
        self.assert_others_good(rows, 'Hook')

    def test_hook_that_is_switched_off(self):
        """It may be intended: a warning."""
        self.write_conf(more='[aggregate_mirror]\nhooks =\n')
        rows = self.rows(WARNING)
        self.assert_row(WARNING, rows['Hook'], 'switched off',
                        '  hooks = mirror')
        self.assert_others_good(rows, 'Hook')
