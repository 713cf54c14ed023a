# SPDX-License-Identifier: Apache-2.0
"""The files that operators copy: systemd unit and configuration drop-in."""

import configparser
import pathlib
import re
import shutil
import subprocess

import fixtures
from oslo_config import cfg
import testtools

from nova_aggregate_mirror import conf
from tests.unit.repository import test_deployment_files

ROOT = pathlib.Path(__file__).parents[3]
UNIT = ROOT / 'etc' / 'systemd' / 'nova-aggregate-mirror-agent.service'
DROP_IN = ROOT / 'etc' / 'nova' / 'nova.conf.d' / 'aggregate-mirror.conf'
ANALYZE = shutil.which('systemd-analyze')


def read(path):
    """Return section to option to value, of a systemd or oslo.config file."""
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read(path)
    return parser


class TestUnit(testtools.TestCase):

    def test_it_starts_a_program_of_this_package(self):
        """With --config-file, nova.conf would override the drop-ins."""
        command = read(UNIT)['Service']['ExecStart']
        self.assertTrue(test_deployment_files.program(command))
        self.assertNotIn(' ', command)

    @testtools.skipUnless(ANALYZE, 'systemd-analyze is not installed')
    def test_systemd_understands_it(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        unit = directory / UNIT.name
        # The program or the user may not exist on this machine.
        unit.write_text(re.sub(
            '(?m)^(User|Group)=.*\n', '', re.sub(
                '(?m)^ExecStart=.*', 'ExecStart=/bin/true',
                UNIT.read_text())))
        done = subprocess.run(
            [ANALYZE, 'verify', '--man=no', unit], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        mine = [line for line in done.stdout.splitlines() if UNIT.name in line]
        self.assertEqual([], mine)


class TestDropIn(testtools.TestCase):

    def test_it_changes_nothing_as_it_is(self):
        drop_in = read(DROP_IN)
        self.assertEqual(
            [('aggregate_mirror', []), ('aggregate_mirror_database', [])],
            [(name, drop_in.items(name)) for name in drop_in.sections()])

    def test_every_line_of_it_can_be_used(self):
        """An operator will uncomment each of them."""
        text = re.sub('(?m)^#(?=[a-z_]+ = )', '', DROP_IN.read_text())
        options = test_deployment_files.load(self, text)
        used = configparser.RawConfigParser()
        used.read_string(text)
        for section in used.sections():
            self.assertTrue(used[section])
            for name in used[section]:
                where = options.get_location(name, section).location
                self.assertEqual(cfg.Locations.user, where)

    def test_defaults_are_told_as_they_are(self):
        text = DROP_IN.read_text()
        for option in conf.OPTS:
            said = re.search('(?m)^#%s = (.*)$' % option.name, text)
            if said and option.name != 'missing_credentials':
                self.assertEqual(str(option.default), said[1])
