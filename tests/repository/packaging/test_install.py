# SPDX-License-Identifier: Apache-2.0
"""The wheel and the source distribution, installed next to nova alone."""

import calendar
import configparser
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile

import testtools

ROOT = pathlib.Path(__file__).parents[3]
PACKAGE = 'nova-aggregate-mirror'
CONSTRAINTS = os.environ.get('TOX_CONSTRAINTS_FILE',
                             str(ROOT / 'constraints.txt'))
SHARED = {'aggregate-mirror.conf', 'kolla-agent.yml', 'kolla-build.conf',
          'kolla-nova-api.conf', 'kolla-proxysql-user.yaml',
          'kolla-template-override.j2',
          'nova-aggregate-mirror-agent.service',
          'nova-aggregate-mirror-agent.yaml', 'nova-aggregate-mirror.json',
          'nova-aggregate-mirror.rules.yaml', 'openstack-ansible-agent.yml',
          'openstack-helm-values.yaml', 'rhoso-sync.yaml',
          'user_nova_aggregate_mirror.yml'}
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
# The time of the commit that is built, in the past and in even seconds, which
# is the resolution of a wheel.
COMMITTED = time.struct_time((2026, 2, 3, 4, 5, 6, 1, 34, 0))
SETUP = configparser.RawConfigParser()
SETUP.read(ROOT / 'setup.cfg')
ATTACHED = 'Attached to nova\'s aggregate operations'


def run(*command, cwd=tempfile.gettempdir(), **variables):
    """Run a program that has to succeed; return its standard output."""
    done = subprocess.run(
        command, cwd=cwd, text=True, stdin=subprocess.DEVNULL,
        capture_output=True, env={**os.environ, **variables})
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
    git = ('git', '-C', str(target), '-c', 'user.name=test',
           '-c', 'user.email=test@localhost')
    run(*git, 'add', '--all')
    run(*git, 'commit', '--quiet', '--allow-empty', '--message', 'Test',
        GIT_COMMITTER_DATE=time.strftime('%FT%TZ', COMMITTED))


def build(source, target):
    """Build the distributions with the packages of this environment."""
    run(sys.executable, str(source / 'tools' / 'build'), '--installed',
        '--outdir', str(target))


def refusal(source):
    """Return the message with which a build fails."""
    done = subprocess.run(
        [sys.executable, str(source / 'tools/build'), '--installed'],
        text=True, stderr=subprocess.PIPE)
    return done.returncode, done.stderr


@testtools.skipUnless((ROOT / '.git').exists(),
                      'this is no git clone: pbr cannot tell the version')
@testtools.skipIf((ROOT / '.git' / 'shallow').exists(),
                  'this clone is shallow: tools/build needs the history')
class TestInstallation(testtools.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        directory = tempfile.TemporaryDirectory(prefix='packaging-')
        cls.addClassCleanup(directory.cleanup)
        cls.built = pathlib.Path(directory.name) / 'dist'
        cls.source = pathlib.Path(directory.name) / 'source'
        copy_repository(cls.source)
        build(cls.source, cls.built)
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

    def test_the_readme_has_absolute_links(self):
        """A package index has no other files; each is in the commit."""
        with zipfile.ZipFile(self.wheel) as archive:
            name, = (name for name in archive.namelist()
                     if name.endswith('.dist-info/METADATA'))
            text = archive.read(name).decode()
        commit = run('git', '-C', str(self.source), 'rev-parse', 'HEAD')
        tree = r'https://opendev.org/openstack/%s/(?:raw|src)/commit/%s/' % (
            PACKAGE, commit.strip())
        targets = re.findall(r'(?:image:: |<)([^\s>]+)(?:>`_|$)', text,
                             re.MULTILINE)
        paths = set(re.findall(tree + r'([^\s>]+)', text))
        files = [path for path in paths
                 if path.endswith(('.svg', '.png', '.rst'))]
        self.assertLess(3, len(files))
        self.assertEqual(set(), paths - tracked())
        self.assertEqual([], [target for target in targets
                              if not target.startswith('https://')])

    def test_the_check_of_a_release(self):
        """It builds twice, and leaves nothing."""
        source = self.clone()
        said = run(sys.executable, str(source / 'tools' / 'build'),
                   '--installed', '--check')
        self.assertIn('two builds are the same', said)
        self.assertFalse((source / 'dist').exists())

    def clone(self, *options):
        """Clone the repository that was built into another directory."""
        directory = tempfile.TemporaryDirectory(prefix='another-')
        self.addCleanup(directory.cleanup)
        target = pathlib.Path(directory.name) / 'clone'
        run('git', 'clone', '--quiet', *options, self.source.as_uri(),
            str(target))
        return target

    def test_a_second_build_has_the_same_digests(self):
        self.addCleanup(os.umask, os.umask(0o077))
        source = self.clone()
        build(source, source / 'dist')
        sums, = self.built.glob('SHA256SUMS')
        self.assertEqual(sums.read_text(),
                         (source / 'dist' / 'SHA256SUMS').read_text())
        self.assertEqual(3, run('sha256sum', '--check', str(sums),
                                cwd=self.built).count(': OK'))

    def test_all_times_are_that_of_the_commit(self):
        with zipfile.ZipFile(self.wheel) as archive:
            self.assertEqual({COMMITTED[:6]}, {
                member.date_time for member in archive.infolist()})
        with tarfile.open(self.sdist) as archive:
            self.assertEqual({calendar.timegm(COMMITTED)}, {
                member.mtime for member in archive})

    def test_the_sbom_lists_what_an_installation_requires(self):
        sbom, = self.built.glob('*.cdx.json')
        content = json.loads(sbom.read_text())
        package = content['metadata']['component']
        self.assertEqual(PACKAGE, package['name'])
        self.assertEqual(hashlib.sha256(self.wheel.read_bytes()).hexdigest(),
                         package['hashes'][0]['content'])
        texts = [(ROOT / 'requirements.txt').read_text(),
                 *SETUP['extras'].values()]
        declared = re.findall(
            r'^[\w.-]+>=[\d.]+', '\n'.join(texts), re.MULTILINE)
        listed = {component['description'].partition(';')[0]
                  for component in content['components']}
        self.assertEqual(set(declared), listed)

    def test_uncommitted_changes_are_refused(self):
        source = self.clone()
        (source / 'new').touch()
        self.assertEqual(
            (1, 'tools/build: these changes are not committed, and would not '
             'be in the files; commit or stash them:\n?? new\n'),
            refusal(source))

    def test_a_shallow_clone_is_refused(self):
        status, message = refusal(self.clone('--depth', '1'))
        self.assertEqual(1, status)
        self.assertIn('git fetch --unshallow', message)

    def test_the_distributions_come_and_go(self):
        """Each is used and uninstalled; nova's packages stay unchanged."""
        for distribution in self.wheel, self.sdist:
            self.check_installation(distribution)

    def check_installation(self, distribution):
        before = self.packages()
        self.addCleanup(self.pip, 'uninstall', '--yes', PACKAGE)
        self.pip('install', '%s[agent,osc]' % distribution)
        after = self.packages()
        self.assertIn(PACKAGE, after)
        self.assertEqual(before, {name: after[name] for name in before})
        self.pip('check')
        self.assertIn(ATTACHED, self.load())
        lines = SETUP['entry_points']['console_scripts'].split('\n')
        for program in [line.partition(' =')[0] for line in lines if line]:
            said = run(str(self.environment / 'bin' / program), '--help')
            self.assertIn('usage: ' + program, said)
        said = run(str(self.environment / 'bin' / 'openstack'),
                   'aggregate', 'mirror', 'sync', '--help')
        self.assertIn('usage: openstack aggregate mirror sync', said)
        shared = self.environment / 'share' / PACKAGE
        self.assertEqual(SHARED, {path.name for path in shared.iterdir()})

        self.pip('uninstall', '--yes', PACKAGE)
        self.assertEqual([], [
            path for path in self.environment.rglob('*')
            if 'aggregate' in path.name and 'mirror' in path.name])
        self.assertNotIn(ATTACHED, self.load())
