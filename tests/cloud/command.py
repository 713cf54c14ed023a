# SPDX-License-Identifier: Apache-2.0
"""The commands of tools/cloud: their output and exit statuses."""

import argparse
from collections import abc
import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import sys

from tests.cloud import cloud
from tests.cloud.faults import command as faults_command
from tests.cloud import full
from tests.cloud import options
from tests.cloud import output
from tests.cloud import processes
from tests.cloud import servers
from tests.cloud.situations import command as situations_command
from tests.cloud import statefile
from tests import databases

FAILED = 1
UNAVAILABLE = 3
INTERRUPTED = 130
NOT_FOUND = 127

Command = abc.Callable[[argparse.Namespace], int]
Main = abc.Callable[[cloud.Cloud, argparse.Namespace], int]


@contextlib.contextmanager
def hold(directory: pathlib.Path) -> abc.Iterator[None]:
    """Hold a cloud's lock, which ends with this process, not its children."""
    with open(directory / 'run.lock', 'a') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise processes.CloudError(
                'another run uses this cloud; interrupt it, or wait until it '
                'has ended') from None
        yield


def up(chosen: argparse.Namespace) -> int:
    """Start the cloud, unless it is up."""
    tell = output.teller()
    with contextlib.suppress(statefile.NoCloud):
        if statefile.State.read(chosen.directory).runs():
            print('The cloud is up already.')
            _print_usage(chosen)
            return 0
        print('There is a cloud already, but some of its processes do not run:'
              ' see "%s status", or remove it with "%s down"'
              % (options.tool(chosen), options.tool(chosen)), file=sys.stderr)
        return FAILED

    servers.install()
    try:
        full.up(chosen.directory, chosen.hosts, tell)
    except FileExistsError as exc:
        print('%s is not empty: it contains %s. Choose another directory '
              'with --directory' % (chosen.directory, exc), file=sys.stderr)
        return FAILED
    tell('The cloud is up.')
    _print_usage(chosen)
    return 0


def down(chosen: argparse.Namespace) -> int:
    """Stop the cloud and remove it; no cloud is not an error."""
    statefile.State.read(chosen.directory)
    with hold(chosen.directory):
        # Read it again: a run of faults records the processes it starts.
        full.down(statefile.State.read(chosen.directory))
    print('The cloud is stopped and removed.')
    return 0


def status(chosen: argparse.Namespace) -> int:
    """Show the processes; return 1 if any does not run."""
    state = statefile.State.read(chosen.directory)
    rows: list[tuple[object, ...]] = [('name', 'pid', 'port', 'alive', 'log')]
    for process in state.processes:
        rows.append((process.name, process.pid, process.port or '-',
                     'yes' if process.alive() else 'NO', process.log))
    print(output.columns(rows))
    if not state.complete:
        print('The cloud is being started or stopped, or that was '
              'interrupted.')
    return 0 if state.runs() else FAILED


def execute(chosen: argparse.Namespace) -> int:
    """Replace this process by a command, as the cloud's administrator."""
    running = cloud.Cloud(_whole(chosen), chosen.controller)
    path = os.pathsep.join([str(running.programs),
                            os.environ.get('PATH', os.defpath)])
    program = shutil.which(chosen.argv[0], path=path)
    if program is None:
        print('Program %s was not found' % chosen.argv[0], file=sys.stderr)
        return NOT_FOUND
    # A program starts with these signals unblocked.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, processes.INTERRUPTIONS)
    os.execve(program, chosen.argv, {**processes.clean_environment(),
                                     **running.environment(), 'PATH': path})


def on_cloud(main: Main) -> Command:
    """Return a command that runs on the full cloud, as the only one."""
    def command(chosen: argparse.Namespace) -> int:
        _whole(chosen)
        with hold(chosen.directory):
            # It may have been stopped before the lock was acquired.
            return main(cloud.Cloud(_whole(chosen)), chosen)
    return command


def faults(chosen: argparse.Namespace) -> int:
    """Measure rows of the table of faults."""
    if any(row.is_random for row in chosen.rows):
        return on_cloud(faults_command.main)(chosen)
    return faults_command.main(None, chosen)


def _whole(chosen: argparse.Namespace) -> statefile.State:
    """Return the state of a cloud that has started completely."""
    state = statefile.State.read(chosen.directory)
    if not state.complete:
        raise processes.CloudError(
            'the cloud is not up; see "%s status"' % options.tool(chosen))
    return state


def _print_usage(chosen: argparse.Namespace) -> None:
    tool, directory = options.tool(chosen), pathlib.Path(chosen.directory)
    print('Command:        %s exec openstack aggregate list\n'
          'Processes:      %s status\n'
          'Configuration:  %s/nova.conf and others\n'
          'Logs:           %s/log\n'
          'Stop:           %s down' % (tool, tool, directory, directory, tool))


def main() -> int:
    """Run the command line; return the exit status."""
    commands = {'up': up, 'down': down, 'status': status, 'exec': execute,
                'situations': on_cloud(situations_command.main),
                'faults': faults}
    chosen = options.cloud(sys.argv[1:])
    try:
        # tools/cloud has blocked the signals until now.
        if chosen.command != 'exec':
            processes.interruptible()
        return commands[chosen.command](chosen)
    except KeyboardInterrupt:
        print('\nInterrupted; all %s' % (
            'started processes are stopped' if chosen.starts
            else 'processes of the cloud run'), file=sys.stderr)
        return INTERRUPTED
    except statefile.NoCloud:
        return options.without_cloud(chosen)
    except databases.Unavailable as exc:
        print(exc, file=sys.stderr)
        return UNAVAILABLE
    except cloud.ERRORS as exc:
        print('%s failed: %s' % (chosen.command, exc), file=sys.stderr)
        return FAILED


if __name__ == '__main__':
    sys.exit(main())
