# SPDX-License-Identifier: Apache-2.0
"""A shell that runs the examples of a page, as a reader would.

Commands are run as the page has them, except for the few ``SUBSTITUTIONS``.
The programs ``sudo`` and ``systemctl`` are those of
``tests/cloud/demo/terminal.py``.
"""

from collections import abc
import os
import pathlib
import shlex
import subprocess
import sys

from tests import patience
from tests.repository.docs import page

ROOT = pathlib.Path(__file__).parents[3]
# Other tests may have the processor.
TIMEOUT = patience.seconds(900)
TAIL = 60
TRACEBACK = 'Traceback (most recent call last)'

# Text of a page to its replacement: paths outside of the cloud's directory,
# and the locations of Python's environment and of this checkout.
SUBSTITUTIONS = {'/opt/nova': sys.prefix,
                 '~/admin-openrc': '$MIRROR_CLOUD/openrc',
                 '/opt/src/nova-aggregate-mirror': str(ROOT),
                 '/etc/nova': '$MIRROR_CLOUD',
                 '/etc/systemd/system': '$MIRROR_CLOUD',
                 '/var/lib/nova': '$MIRROR_CLOUD/state',
                 '/var/log/nova': '$MIRROR_CLOUD/log'}


class Shell:
    """A bash on the terminal of a cloud, whose agent has another port."""

    def __init__(self, openrc: pathlib.Path, metrics_port: int) -> None:
        self._openrc = openrc
        self._substitutions = SUBSTITUTIONS | {'9184': str(metrics_port)}
        self._home = openrc.parent / 'home'
        self._home.mkdir(exist_ok=True)

    def type(self, examples: abc.Sequence[page.Example]) -> str:
        """Run the examples not marked "not run"; return the output."""
        script = ['. %s' % self._openrc, 'cd %s' % ROOT]
        for example in examples:
            if not example.not_run:
                script += self._lines(example)
        done = subprocess.run(
            ['bash'], input='\n'.join(script), text=True, timeout=TIMEOUT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, env=self._environment())
        # An example may exit with 1, and so does Python after a traceback.
        if done.returncode or TRACEBACK in done.stdout:
            lines = done.stdout.splitlines()[-TAIL:]
            raise AssertionError('\n'.join(['', *lines]))
        return done.stdout

    def _lines(self, example: page.Example) -> list[str]:
        allowed = '|'.join(map(str, example.exits))
        lines = []
        for command in example.commands:
            for said, typed in self._substitutions.items():
                command = command.replace(said, typed)
            lines += [
                "printf '%%s\\n' %s" % shlex.quote('$ ' + command),
                # A command that reads its standard input must not read the
                # script.
                '{ ' + command + '\n} < /dev/null',
                'case $? in %s) ;; *) echo "exit status $?, at '
                '%s.rst:%s"; exit 1;; esac'
                % (allowed, example.page, example.line)]
        return lines

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(('OS_', 'PYTHONPATH'))}
        return {'XDG_CACHE_HOME': os.path.expanduser('~/.cache'), **kept,
                'HOME': str(self._home),
                # Building the package must leave nothing in the checkout.
                'DIST_EXTRA_CONFIG': str(build_options(self._home))}


def build_options(directory: pathlib.Path) -> pathlib.Path:
    """Write a file for DIST_EXTRA_CONFIG that builds in a directory."""
    options = directory / 'build.cfg'
    options.write_text('[build]\nbuild_base = %s/build\n'
                       '[egg_info]\negg_base = %s\n' % (directory, directory))
    return options
