# SPDX-License-Identifier: Apache-2.0
"""The virtual environment of a cloud, created once in the checkout."""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import typing

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
OLDEST = (3, 11)
PACKAGE = 'nova-aggregate-mirror'
SOURCES = ('setup.py', 'setup.cfg', 'pyproject.toml', 'requirements.txt',
           'etc', 'nova_aggregate_mirror')
TAIL = 30
# Monotonic time at which the program began, perhaps as another module.
BEGAN = float(os.environ.get('MIRROR_CLOUD_BEGAN', time.monotonic()))
DEMONSTRATION = ('nova==34.0.0', 'openstack-placement==16.0.0',
                 'keystone==30.0.0', 'waitress', 'python-openstackclient',
                 'osc-placement', 'python-novaclient')

# Annotations that Python 3.6 cannot evaluate are quoted: it has to reach the
# message that it is too old.


class CannotInstall(Exception):
    """The environment cannot be created; the text has reason and log."""


class Unreachable(CannotInstall):
    """The environment cannot be created: pip cannot download even itself."""


def check_python(program: str) -> None:
    """Exit with a message if Python is too old for the cloud."""
    if sys.version_info < OLDEST:
        sys.exit('{} requires Python {}.{} or later, and this is {}.{}; use a '
                 'newer Python: "python3.12 {}"'.format(
                     program, *OLDEST, *sys.version_info[:2], sys.argv[0]))


def tell(text: str) -> None:
    """Print a line of progress, with the seconds since the program began."""
    seconds = time.monotonic() - BEGAN
    print('%5.0f s  %s' % (seconds, text), flush=True)


class Environment:
    """A virtual environment in a folder of the checkout."""

    def __init__(self, name: str, content: str, services: 'tuple[str, ...]',
                 verbose: bool) -> None:
        self.path = TOP / name
        self._content = content
        self._services = services
        self._verbose = verbose
        self._lock = self.path.with_name(self.path.name + '.lock')
        self._log = self.path / 'install.log'
        self._python = self.path / 'bin' / 'python'

    def exists(self) -> bool:
        """Check whether its creation was ever completed."""
        return self._python.exists() and self._stamp('cloud') is not None

    @contextlib.contextmanager
    def locked(self) -> 'typing.Iterator[None]':
        """Wait until no other process installs into it."""
        with open(self._lock, 'w') as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                tell('Waiting for another process that installs into %s'
                     % self.path)
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def remove(self) -> None:
        """Remove it from the disk."""
        with self.locked():
            if self.path.exists():
                shutil.rmtree(self.path)
                print('Removed %s' % self.path)
            self._lock.unlink()

    def make(self) -> None:
        """Create the environment, unless it is up to date."""
        # It can neither be moved nor be used with another Python.
        wanted = _digest([sys.version, str(self.path), *self._services],
                         [TOP / 'constraints.txt', TOP / 'setup.cfg'])
        exists = self.exists()
        if exists and self._stamp('cloud') == wanted:
            return
        users = self._users()
        # Without its Python, the running processes could not be stopped.
        if exists and users:
            raise CannotInstall(
                '%s is outdated, and is used by the clouds in these '
                'directories: stop them first: %s'
                % (self.path, ', '.join(users)))
        if importlib.util.find_spec('ensurepip') is None:
            raise CannotInstall(
                'This Python cannot create a virtual environment: on Debian '
                'and Ubuntu, install the package python3-venv')
        tell('Installing %s into %s; this is done once and takes a minute or '
             'two' % (self._content, self.path))
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir()
        # Keep the folder out of git, whatever the checkout's own rules are.
        (self.path / '.gitignore').write_text('*\n')
        self._run([sys.executable, '-m', 'venv', str(self.path)],
                  'Python cannot create a virtual environment')
        self._install(*self._services)
        self._stamp('cloud', wanted)

    def install_requirements(self, path: 'pathlib.Path') -> None:
        """Install the additional packages of a requirements file."""
        wanted = _digest([], [TOP / 'constraints.txt', path])
        if self._stamp('requirements') == wanted:
            return
        tell('Installing the packages of %s' % path.relative_to(TOP))
        self._install('-r', str(path))
        self._stamp('requirements', wanted)

    def install_package(self) -> None:
        """Install this package in its current state."""
        wanted = _digest([], [TOP / name for name in SOURCES])
        if self._stamp('package') == wanted:
            return
        tell('Installing %s' % PACKAGE)
        # An old build folder would bring back deleted modules.
        build = self.path / 'build'
        shutil.rmtree(build, ignore_errors=True)
        extra = self.path / 'build.cfg'
        extra.write_text('[build]\nbuild_base = %s\n' % build)
        self._pip('install', '-c', str(TOP / 'constraints.txt'),
                  '%s[agent]' % TOP,
                  DIST_EXTRA_CONFIG=str(extra))
        self._stamp('package', wanted)

    def remove_package(self) -> None:
        """Remove the package that a user installed into the stock cloud."""
        if any(self.path.glob('lib/python*/site-packages/'
                              'nova_aggregate_mirror*')):
            self._pip('uninstall', '--yes', PACKAGE)

    def used_by(self, directory: 'pathlib.Path') -> None:
        """Record a directory that uses it while its state file exists."""
        with open(self.path / 'users', 'a') as users:
            users.write('%s\n' % directory)

    def _users(self) -> 'list[str]':
        users = self.path / 'users'
        if not users.exists():
            return []
        directories = sorted(set(users.read_text().splitlines()))
        return [directory for directory in directories
                if pathlib.Path(directory, 'state.json').exists()]

    def become(self, module: str, arguments: 'list[str]') -> None:
        """Replace this process by a program of this checkout."""
        # An interrupt during Python's start would print a traceback: the
        # program unblocks the signals when it can handle them.
        signal.pthread_sigmask(
            signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        # -P: no file in the current directory hides a module.
        os.execve(self._python,
                  [str(self._python), '-P', '-m', module, *arguments],
                  {**os.environ, 'PYTHONPATH': str(TOP),
                   'MIRROR_CLOUD_BEGAN': str(BEGAN)})

    def _install(self, *requirements: str) -> None:
        """Install packages with uv, which takes a tenth of pip's time."""
        options = ('install', '-c', str(TOP / 'constraints.txt'),
                   *requirements)
        self._pip(*options[:3], 'uv')
        try:
            self._run([str(self._python), '-m', 'uv', 'pip', *options,
                       '--python', str(self._python)], '')
            # Unlike pip, uv leaves this to the first processes, which start at
            # the same time and would compile the same modules.
            tell('Compiling their modules')
            self._run([str(self._python), '-m', 'compileall', '-q', '-j', '0',
                       '-x', 'site-packages/.*/tests?/',
                       str(self.path / 'lib')], '')
        except CannotInstall:
            # uv does not read pip's configuration, which may name an index.
            self._pip(*options)

    def _pip(self, *arguments: str, **variables: str) -> None:
        try:
            self._run([str(self._python), '-m', 'pip', *arguments],
                      'pip could not install', **variables)
        except CannotInstall:
            # A broken package, or a pin to a version that does not exist, is
            # an error and not an unreachable index.
            self._check_index()
            raise

    def _check_index(self) -> None:
        """Check that pip can download something, for instance itself."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [str(self._python), '-m', 'pip', 'download', '-vv',
                 '--retries', '0', '--no-cache-dir', '--no-deps', '--dest',
                 folder, 'pip'], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if not done.returncode:
            return
        if 'CERTIFICATE_VERIFY_FAILED' in done.stdout:
            raise Unreachable(
                'pip does not trust the certificate of the package index, as '
                'behind a proxy that intercepts TLS: set PIP_CERT and '
                'SSL_CERT_FILE to the file with the proxy\'s CA certificate')
        reason = re.search(
            r"Could not fetch URL (\S+): .*?([^:']+)'\)\) - skipping",
            done.stdout)
        lines = done.stdout.strip().splitlines()
        text = ': '.join(reason.groups()) if reason else lines[-1]
        raise Unreachable('pip cannot reach the package index: %s' % text)

    def _run(self, command: 'list[str]', failure: str,
             **variables: str) -> None:
        environment = {**os.environ, 'PIP_DISABLE_PIP_VERSION_CHECK': '1',
                       **variables}
        with open(self._log, 'ab') as log:
            output = None if self._verbose else log
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, env=environment)
        if done.returncode:
            tail = self._log.read_text(errors='replace').splitlines()[-TAIL:]
            tail.append('%s; see %s' % (failure, self._log))
            raise CannotInstall('\n'.join(tail))

    def _stamp(self, name: str, written: 'str | None' = None) -> 'str | None':
        stamp = self.path / ('%s.stamp' % name)
        if written is not None:
            stamp.write_text(written)
        return stamp.read_text() if stamp.exists() else None


def demonstration(verbose: bool, stock: bool = False) -> Environment:
    """Return the environment of the demonstration; stock nova has its own."""
    return Environment('.venv-demo-stock' if stock else '.venv-demo',
                       'nova, placement and keystone', DEMONSTRATION, verbose)


def _digest(texts: 'list[str]', paths: 'list[pathlib.Path]') -> str:
    digest = hashlib.sha256(repr(texts).encode())
    for path in paths:
        files = [path] if path.is_file() else sorted(path.rglob('*'))
        for each in files:
            # Running tests create and delete compiled files.
            if '__pycache__' not in each.parts and each.is_file():
                digest.update(str(each.relative_to(TOP)).encode())
                digest.update(each.read_bytes())
    return digest.hexdigest()
