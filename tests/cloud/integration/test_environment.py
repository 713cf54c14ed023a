# SPDX-License-Identifier: Apache-2.0
"""The cloud's virtual environment, and the commands without it."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import zipfile

import fixtures
import testtools

from tests.cloud import environment


class TestEnvironment(testtools.TestCase):

    def test_environment_in_use_is_not_recreated(self):
        """It is kept, and the error names the cloud that uses it."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        made = environment.Environment(str(folder), 'nothing', (), False)
        (folder / 'bin').mkdir()
        for name in ('bin/python', 'cloud.stamp'):
            (folder / name).touch()
        (folder / 'cloud').mkdir()
        (folder / 'cloud' / 'state.json').touch()
        made.used_by(folder / 'cloud')
        error = self.assertRaises(environment.CannotInstall, made.make)
        self.assertIn(str(folder / 'cloud'), str(error))
        self.assertTrue((folder / 'cloud' / 'state.json').exists())

    def test_skipped_only_without_pip(self):
        """Tests are skipped only if pip cannot download any package."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        shelf = folder / 'shelf'
        shelf.mkdir()
        for name, value in (('PIP_NO_INDEX', '1'),
                            ('PIP_FIND_LINKS', str(shelf))):
            self.useFixture(fixtures.EnvironmentVariable(name, value))
        made = environment.Environment(
            str(folder / 'environment'), 'nothing', ('no-such-package',),
            False)
        error = self.assertRaises(environment.Unreachable, made.make)
        self.assertIn('no-such-package', str(error))
        with zipfile.ZipFile(shelf / 'pip-99-py3-none-any.whl', 'w') as wheel:
            for name, text in (
                    ('METADATA', 'Metadata-Version: 2.1\nName: pip\n'
                                 'Version: 99\n'),
                    ('WHEEL', 'Wheel-Version: 1.0\nTag: py3-none-any\n')):
                wheel.writestr('pip-99.dist-info/%s' % name, text)
        error = self.assertRaises(environment.CannotInstall, made.make)
        self.assertNotIsInstance(error, environment.Unreachable)
        self.assertIn('no-such-package', str(error))


class TestWithoutEnvironment(testtools.TestCase):

    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.cloud = folder / 'cloud'
        self.checkout = folder / 'checkout'
        for name in ('tests', 'tools'):
            # Other tests compile and remove these files meanwhile.
            shutil.copytree(environment.TOP / name, self.checkout / name,
                            ignore=shutil.ignore_patterns('__pycache__'))
        for name in ('constraints.txt', 'setup.cfg'):
            shutil.copy(environment.TOP / name, self.checkout)

    def start_tool(self, *argv):
        """Start tools/cloud of a checkout without .venv-cloud."""
        return subprocess.Popen(
            [sys.executable, str(self.checkout / 'tools' / 'cloud'),
             '--directory', str(self.cloud), *argv],
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Nothing can be installed.
            env={**os.environ, 'PIP_NO_INDEX': '1'})

    def tool(self, *argv):
        """Run it to its end."""
        process = self.start_tool(*argv)
        out, err = process.communicate()
        return subprocess.CompletedProcess(
            process.args, process.returncode, out, err)

    def test_missing_cloud_is_reported(self):
        """The absence of a cloud is reported without an environment."""
        done = self.tool('down')
        self.assertEqual(
            (0, 'There is no cloud in %s.\n' % self.cloud, ''),
            (done.returncode, done.stdout, done.stderr))
        for command in (['status'], ['exec', 'true'], ['chaos']):
            done = self.tool(*command)
            self.assertEqual(1, done.returncode)
            self.assertEqual(
                'There is no cloud in %s: ./tools/cloud '
                '--directory %s up\n' % (self.cloud, self.cloud), done.stderr)

    def test_missing_environment_is_reported(self):
        """Each command reports that the environment no longer exists."""
        self.cloud.mkdir()
        (self.cloud / 'state.json').touch()
        for command in (['up'], ['status'], ['exec', 'true'], ['chaos']):
            done = self.tool(*command)
            self.assertEqual(1, done.returncode)
            self.assertIn('.venv-cloud does not exist', done.stderr)
            self.assertIn('--directory %s down' % self.cloud, done.stderr)

    def test_down_recreates_it(self):
        """Down reinstalls an environment without Python, even if in use."""
        self.cloud.mkdir()
        (self.cloud / 'state.json').touch()
        there = self.checkout / '.venv-cloud'
        there.mkdir()
        (there / 'cloud.stamp').touch()
        (there / 'users').write_text('%s\n' % self.cloud)
        done = self.tool('down')
        self.assertIn('into %s' % there, done.stdout)
        self.assertEqual(3, done.returncode, done.stderr)

    def test_installations_take_turns(self):
        """A second cloud waits until the environment is complete."""
        made = environment.Environment(
            str(self.checkout / '.venv-cloud'), 'nothing', (), False)
        with made.locked():
            process = self.start_tool('up')
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            # The kernel lists who waits for a lock.
            while not re.search(r'-> FLOCK .* %s ' % process.pid,
                                pathlib.Path('/proc/locks').read_text()):
                self.assertIsNone(process.poll(), 'it did not wait')
                time.sleep(0.02)
            self.assertFalse(made.path.exists())
