# SPDX-License-Identifier: Apache-2.0
"""A folder that stands for DevStack's machine, and its command record."""

import dataclasses
import pathlib
import re
import shlex
import shutil
import subprocess

import fixtures

from tests import patience

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
PLUGIN = 'nova-aggregate-mirror'
PATIENCE = patience.seconds(600)

# Programs that DevStack's functions may really run: they work on files.
TOOLS = ('awk', 'basename', 'bash', 'cat', 'chmod', 'cmp', 'cp', 'cut', 'date',
         'dirname', 'env', 'grep', 'head', 'hostname', 'install', 'kill', 'ls',
         'mkdir', 'mkfifo', 'mktemp', 'mv', 'nproc', 'python3', 'rm', 'sed',
         'seq', 'sort', 'tail', 'tee', 'timeout', 'touch', 'tr', 'uname', 'wc',
         'which', 'whoami', 'xargs')
# Programs that would change the machine. Any other program is not found.
PROGRAMS = (
    'a2dissite', 'a2ensite', 'curl', 'id', 'ip', 'iptables', 'iscsi-iname',
    'iscsiadm', 'lsb_release', 'mount', 'mysql', 'mysqldump', 'nvme', 'sleep',
    'sysctl', 'systemctl', 'systemd-tmpfiles', 'uwsgi', 'virsh')
# Programs that pip installs next to nova.
INSTALLED = ('nova-aggregate-mirror-agent', 'nova-aggregate-mirror-manage',
             'nova-aggregate-mirror-status', 'nova-manage', 'pip')
ANSWERS = {
    'curl': 'echo 200',
    'id': 'echo stack',
    'lsb_release': 'case $1 in -i) echo Ubuntu;; -r) echo 24.04;; '
                   '-c) echo noble;; esac'}
LOCALRC = """\
ADMIN_PASSWORD=secret
DATABASE_PASSWORD=secret
RABBIT_PASSWORD=secret
SERVICE_PASSWORD=secret
HOST_IP=192.0.2.1
DEST=%(dest)s
DATA_DIR=%(dest)s/data
CELLSV2_SETUP=singleconductor
ENABLED_SERVICES=key,n-api,n-sch,n-cond,placement-api,mysql,rabbit
enable_plugin nova-aggregate-mirror https://example.org/nova-aggregate-mirror
%(more)s
"""


@dataclasses.dataclass(frozen=True)
class Played:
    """The outcome of one of DevStack's scripts."""

    returncode: int
    output: str
    phases: dict[str, list[list[str]]]
    """Phase of the plugin to the commands that it ran, with their arguments;
    '' has the commands of DevStack itself."""


class Sandbox(fixtures.Fixture):
    """A copy of DevStack that uses a folder as the whole machine.

    DevStack's definitions are unchanged. Its paths lead into the folder, and
    programs that would change the machine are recorders.
    """

    def __init__(self, devstack: str) -> None:
        super().__init__()
        self._devstack = pathlib.Path(devstack)

    def _setUp(self) -> None:
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.dest = self.path / 'opt' / 'stack'
        self.etc = self.path / 'etc'
        self.nova_conf = self.etc / 'nova/nova.conf'
        self.drop_in = self.etc / 'nova/nova.conf.d/aggregate-mirror.conf'
        self.unit = (self.etc / 'systemd/system'
                     / 'devstack@aggregate-mirror.service')
        self.completion = self.etc / 'bash_completion.d/osc.bash_completion'
        self.plugin = self.dest / PLUGIN
        self._copy_devstack()
        self._copy_plugin()
        self._make_sources()
        self.record(self.path / 'bin', *PROGRAMS)
        for tool in TOOLS:
            (self.path / 'bin' / tool).symlink_to(shutil.which(tool))
        for directory in ('usr/local/bin', 'opt/stack/data/venv/bin',
                          'opt/stack/nova.venv/bin'):
            self.record(self.path / directory, *INSTALLED)
        shutil.copy(HERE / 'sudo', self.path / 'bin')
        for program, script in ANSWERS.items():
            self.answer(program, script)

    def record(self, directory: pathlib.Path, *programs: str) -> None:
        """Put recorders into a directory."""
        directory.mkdir(parents=True, exist_ok=True)
        for program in programs:
            (directory / program).unlink(missing_ok=True)
            (directory / program).symlink_to(HERE / 'recorder')

    def answer(self, program: str, script: str) -> None:
        """Give a recorder a script to run."""
        path = self.path / 'answers' / program
        path.parent.mkdir(exist_ok=True)
        path.write_text('#!/bin/bash\n%s\n' % script)
        path.chmod(0o755)

    def play(self, script: str, localrc: str = '') -> Played:
        """Play a script's parts of nova and the plugin, such as ``stack``."""
        return self.run([HERE / 'phases.sh', script], localrc)

    def run(self, command: list, localrc: str = '', **variables: str
            ) -> Played:
        """Run a bash script in the sandbox."""
        top, commands = self.path / 'devstack', self.path / 'commands'
        (top / 'localrc').write_text(
            LOCALRC % {'dest': self.dest, 'more': localrc})
        commands.write_text('')
        done = subprocess.run(
            ['bash', *command], cwd=top, env={
                'PATH': str(self.path / 'bin'), 'SANDBOX': str(self.path),
                'TOP_DIR': str(top), 'HOME': str(self.path / 'home'),
                **variables},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        return Played(done.returncode, done.stdout,
                      _phases(commands.read_text()))

    def _copy_devstack(self) -> None:
        top = self.path / 'devstack'
        shutil.copytree(self._devstack, top,
                        ignore=shutil.ignore_patterns('.git', 'doc', 'tests'))
        self._keep_inside(top / 'stackrc', *top.glob('functions*'),
                          *(top / 'inc').rglob('*'), *(top / 'lib').rglob('*'))

    def _keep_inside(self, *paths: pathlib.Path) -> None:
        """Make the paths in scripts lead into the folder."""
        for path in paths:
            if path.is_file():
                # Not paths that follow a variable.
                path.write_text(re.sub(
                    r'(?<![\w.}/])'
                    r'(?=/(etc|usr/local/bin|var/run|bin/systemctl)\b)',
                    str(self.path), path.read_text()))

    def _copy_plugin(self) -> None:
        shutil.copytree(ROOT / 'devstack', self.plugin / 'devstack')
        self._keep_inside(*(self.plugin / 'devstack/lib').iterdir())
        shutil.copy(ROOT / 'setup.cfg', self.plugin)
        self.record(self.plugin / 'devstack', 'smoke')

    def _make_sources(self) -> None:
        etc = self.dest / 'nova/etc/nova'
        (etc / 'rootwrap.d').mkdir(parents=True)
        for name in ('api-paste.ini', 'rootwrap.conf',
                     'rootwrap.d/compute.filters'):
            (etc / name).touch()
        self.record(self.dest / 'requirements/.venv/bin', 'edit-constraints')
        for name in ('home', 'etc/iscsi', 'etc/sudoers.d',
                     'etc/apache2/sites-available'):
            (self.path / name).mkdir(parents=True)
        (self.etc / 'os-release').write_text('ID=ubuntu\n')


def _phases(text: str) -> dict[str, list[list[str]]]:
    phases: dict[str, list[list[str]]] = {'': []}
    current = ''
    for line in text.splitlines():
        command = shlex.split(line)
        if command[0] == 'phase':
            current = ' '.join(command[1:])
            phases.setdefault(current, [])
        else:
            command[0] = command[0].removeprefix('bin/')
            phases[current].append(command)
    return phases
