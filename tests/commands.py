# SPDX-License-Identifier: Apache-2.0
"""Commands in processes of their own, forked from one that has imported them.

A command needs two seconds of processor time to import nova or the openstack
client, and a tenth of that to run. The installed scripts themselves are
tested in ``tests.functional.test_record``.
"""

from collections import abc
import importlib
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from tests import patience

MANAGE = 'nova_aggregate_mirror.cmd.manage'
STATUS = 'nova_aggregate_mirror.cmd.status'
AGENT = 'nova_aggregate_mirror.cmd.agent'
OPENSTACK = 'openstackclient.shell'
PROGRAMS = {MANAGE: 'nova-aggregate-mirror-manage',
            STATUS: 'nova-aggregate-mirror-status',
            AGENT: 'nova-aggregate-mirror-agent', OPENSTACK: 'openstack'}
TIMEOUT = patience.seconds(300)

# Eventlet, which nova's fixtures want until nova 33, replaces what it needs.
_SERVER: Any = None
if 'forkserver' in multiprocessing.get_all_start_methods():
    _SERVER = multiprocessing.get_context('forkserver')
    _SERVER.set_forkserver_preload([
        # What the commands import when they need it.
        *PROGRAMS, 'alembic.command', 'alembic.config',
        'nova_aggregate_mirror.audit.readers',
        'nova_aggregate_mirror.explain.emptying',
        'nova_aggregate_mirror.html_report.page',
        'nova_aggregate_mirror.html_report.report',
        'nova_aggregate_mirror.osc.aggregates',
        'nova_aggregate_mirror.osc.servers', 'osc_placement.plugin',
        'pymysql', 'psycopg2', 'tests.preload_entry_points'])


def script(module: str) -> str:
    """The path of the installed script of a command."""
    return str(pathlib.Path(sys.executable).with_name(PROGRAMS[module]))


def run(module: str, argv: abc.Sequence[str],
        environment: abc.Mapping[str, str] | None = None,
        directory: pathlib.Path | None = None,
        ) -> 'subprocess.CompletedProcess[str]':
    """Run a command to its end."""
    if _SERVER is None:
        return subprocess.run([script(module), *argv], env=environment,
                              cwd=directory, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=TIMEOUT)
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ('stdout', 'stderr')]
        variables = dict(os.environ if environment is None else environment)
        place = str(directory or os.getcwd())
        process = _SERVER.Process(target=_main, args=(
            module, [PROGRAMS[module], *argv], variables, place, paths))
        process.start()
        process.join(TIMEOUT)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([module, *argv], TIMEOUT)
        texts = [pathlib.Path(path).read_text() for path in paths]
        return subprocess.CompletedProcess(
            [PROGRAMS[module], *argv], process.exitcode, *texts)


class Running:
    """A command that runs, as ``subprocess.Popen`` has it."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self.pid = process.pid

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(str(self._process), timeout or 0)
        return self._process.exitcode


def start(module: str, argv: abc.Sequence[str], log: str
          ) -> 'Running | subprocess.Popen[bytes]':
    """Start a command, whose output is appended to a file."""
    pathlib.Path(log).touch()
    if _SERVER is None:
        with open(log, 'ab') as output:
            return subprocess.Popen(
                [script(module), *argv], stdout=output, stderr=output)
    process = _SERVER.Process(target=_main, args=(
        module, [PROGRAMS[module], *argv], dict(os.environ), os.getcwd(),
        [log, log]))
    process.start()
    return Running(process)


def _main(module: str, argv: list[str], environment: dict[str, str],
          directory: str, paths: list[str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    for number, path in enumerate(paths, start=1):
        with open(path, 'a') as out:
            os.dup2(out.fileno(), number)
    if 'PYTHONIOENCODING' in environment:
        sys.stdout.reconfigure(encoding=environment['PYTHONIOENCODING'])
    sys.argv = argv
    sys.exit(importlib.import_module(module).main())
