# SPDX-License-Identifier: Apache-2.0
"""The wheel and the source distribution, installed next to nova alone."""

import configparser
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile

import testtools

ROOT = pathlib.Path(__file__).parents[3]
PACKAGE = 'nova-aggregate-mirror'
CONSTRAINTS = os.environ.get('TOX_CONSTRAINTS_FILE',
                             str(ROOT / 'constraints.txt'))
SHARED = {'aggregate-mirror.conf', 'kolla-agent.yml', 'kolla-build.conf',
          'kolla-nova-api.conf', 'kolla-template-override.j2',
          'nova-aggregate-mirror-agent.service',
          'nova-aggregate-mirror-agent.yaml', 'nova-aggregate-mirror.json',
          'nova-aggregate-mirror.rules.yaml', 'openstack-ansible-agent.yml',
          'openstack-helm-values.yaml', 'user_nova_aggregate_mirror.yml'}
# The part of nova-api's start that loads plugins.
LOAD = """
import logging
import sys
logging.basicConfig(stream=sys.stdout, level=logging.INFO)
from nova import config
config.parse_args(['nova-api'], default_config_files=[], init_rpc=False)
from nova.api.validation.extra_specs import validators
validators.load_validators()
"""
MIRRORS = 'Host aggregates are mirrored to placement by ' + PACKAGE


def run(*command, **variables):
    """Run a program that has to succeed; return its standard output."""
    done = subprocess.run(
        command, cwd=tempfile.gettempdir(), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, **variables})
    if done.returncode:
        raise AssertionError('%s\n%s%s' % (command, done.stdout, done.stderr))
    return done.stdout


def tracked(*paths):
    """List files of the repository; pbr asks git for them, too."""
    return set(run('git', '-C', str(ROOT), 'ls-files', '--', *paths
                   ).splitlines())


def copy_repository(target):
    """Copy the repository with its uncommitted changes.

    A source distribution is assembled in the directory that it is built in.
    Builds of other tests, which walk the same directory, would fail when it
    disappears.
    """
    run('git', 'clone', '--quiet', '--no-checkout', str(ROOT), str(target))
    for name in tracked():
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy)
    run('git', '-C', str(target), 'add', '--all')


@testtools.skipUnless((ROOT / '.git').exists(),
                      'this is no git clone: pbr cannot tell the version')
class TestInstallation(testtools.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        directory = tempfile.TemporaryDirectory(prefix='packaging-')
        cls.addClassCleanup(directory.cleanup)
        cls.built = pathlib.Path(directory.name) / 'dist'
        source = pathlib.Path(directory.name) / 'source'
        copy_repository(source)
        # The wheel is built from the source distribution.
        run(sys.executable, '-m', 'build', '--outdir', str(cls.built),
            str(source), PIP_CONSTRAINT=CONSTRAINTS)
        cls.wheel, = cls.built.glob('*.whl')
        cls.sdist, = cls.built.glob('*.tar.gz')
        cls.environment = pathlib.Path(directory.name) / 'nova'
        venv.create(cls.environment, with_pip=True)
        # As pip does, in a tenth of its time.
        run(sys.executable, '-m', 'uv', 'pip', 'install', '--python',
            str(cls.environment / 'bin' / 'python'), '-c', CONSTRAINTS, 'nova')

    @classmethod
    def pip(cls, command, *arguments):
        constraints = ('-c', CONSTRAINTS) if command == 'install' else ()
        return run(str(cls.environment / 'bin' / 'python'), '-m', 'pip',
                   command, *constraints, *arguments)

    def packages(self):
        """Return the installed packages: name to release."""
        return {package['name']: package['version'] for package in
                json.loads(self.pip('list', '--format', 'json'))}

    def load(self):
        """Return what nova-api logs while it loads its plugins."""
        return run(str(self.environment / 'bin' / 'python'), '-c', LOAD)

    def left(self):
        """List the files of the package in the environment."""
        return [str(path) for path in self.environment.rglob('*')
                if 'aggregate' in path.name and 'mirror' in path.name]

    def test_the_source_distribution_is_the_repository(self):
        with tarfile.open(self.sdist) as archive:
            names = {name.partition('/')[2] for name in archive.getnames()}
        # pbr leaves out files that only git reads.
        self.assertEqual({'.gitignore', '.gitreview'}, tracked() - names)

    def test_the_wheel_has_the_modules_and_what_operators_copy(self):
        with zipfile.ZipFile(self.wheel) as archive:
            names = {name for name in archive.namelist()
                     if '.dist-info/' not in name}
        modules = {name for name in names if '.data/' not in name}
        self.assertEqual(tracked('nova_aggregate_mirror'), modules)
        self.assertEqual(
            {'data/share/%s/%s' % (PACKAGE, name) for name in SHARED},
            {name.partition('.data/')[2] for name in names - modules})

    def check_installation(self, distribution):
        """Install, use and uninstall it; nova's packages stay unchanged."""
        before = self.packages()
        self.addCleanup(self.pip, 'uninstall', '--yes', PACKAGE)
        self.pip('install', '%s[agent,osc]' % distribution)
        after = self.packages()
        self.assertIn(PACKAGE, after)
        self.assertEqual(before, {name: after[name] for name in before})
        self.pip('check')
        self.assertIn(MIRRORS, self.load())
        for program in self.programs():
            said = run(str(self.environment / 'bin' / program), '--help')
            self.assertIn('usage: ' + program, said)
        said = run(str(self.environment / 'bin' / 'openstack'),
                   'aggregate', 'mirror', 'sync', '--help')
        self.assertIn('usage: openstack aggregate mirror sync', said)
        self.assertEqual(SHARED, {
            path.name for path in
            (self.environment / 'share' / PACKAGE).iterdir()})

        self.pip('uninstall', '--yes', PACKAGE)
        self.assertEqual([], self.left())
        self.assertNotIn(MIRRORS, self.load())

    def programs(self):
        setup = configparser.RawConfigParser()
        setup.read(ROOT / 'setup.cfg')
        lines = setup['entry_points']['console_scripts'].split('\n')
        return [line.partition(' =')[0] for line in lines if line]

    def test_the_wheel_comes_and_goes(self):
        self.check_installation(self.wheel)

    def test_the_source_distribution_comes_and_goes(self):
        self.check_installation(self.sdist)
