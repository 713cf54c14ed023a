# SPDX-License-Identifier: Apache-2.0
"""The command lines of tools/demo and tools/cloud, readable without nova."""

import argparse
import pathlib
import sys
import textwrap
from typing import List

from tests.cloud import environment
from tests.cloud.faults import table

_DEMO_DESCRIPTION = """\
Start a real keystone, placement and nova with five compute hosts on the
loopback interface, and show where servers are created after placement failed
and after nova was killed. A virtual environment of 450 MB stays in this
checkout, besides what pip and uv keep in their caches.
"""
_DEMO_EPILOG = """\
exit status: 0 each step went as told: well, or with --stock wrong where this
package repairs it; 1 a step did not; 2 the demonstration could not run; 130
interrupted
"""
_DESCRIPTION = """\
A complete OpenStack of real processes on the loopback interface: MariaDB,
RabbitMQ, keystone, placement, glance, neutron, and nova with two
controllers and several compute hosts, one of them with three nodes. This
package and its agents are installed in it.
"""
_EPILOG = """\
exit status: 0 success, or all processes run; 1 failure, or a process does not
run; 2 invalid command line; 3 required packages cannot be installed; 130
interrupted; "exec" returns the exit status of its command
"""


def demo(arguments: List[str]) -> argparse.Namespace:
    """Parse the command line of tools/demo; exit if it is invalid."""
    parser = argparse.ArgumentParser(
        prog='demo', description=_DEMO_DESCRIPTION, epilog=_DEMO_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--stock', action='store_true',
        help='do not install this package: the same steps with stock nova, in '
             'a virtual environment of its own')
    parser.add_argument(
        '--keep', action='store_true',
        help='keep the cloud running after the last step, and print how to '
             'use it; Ctrl-C stops it')
    parser.add_argument('--verbose', action='store_true',
                        help='show the commands and their output')
    parser.add_argument(
        '--clean', action='store_true',
        help='only remove the virtual environments of this command')
    return parser.parse_args(arguments)


def cloud(arguments: List[str]) -> argparse.Namespace:
    """Parse the command line of tools/cloud; exit if it is invalid."""
    parser = argparse.ArgumentParser(
        prog='cloud', description=_DESCRIPTION, epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--directory', type=lambda text: pathlib.Path(text).absolute(),
        default=environment.TOP / '.cloud',
        help='directory of the cloud, which all commands on it have to name '
             '(default: .cloud in this checkout)')
    parser.set_defaults(verbose=False)
    commands = parser.add_subparsers(
        dest='command', metavar='COMMAND', required=True)
    up = commands.add_parser(
        'up', help='start the cloud; its packages are installed into '
        '.venv-cloud in this checkout, and root can install those of MariaDB '
        'and RabbitMQ')
    up.add_argument(
        '--hosts', type=int, choices=range(3, 21), default=4, metavar='N',
        help='number of compute hosts, at least 3; the last has three nodes '
             '(default: 4)')
    up.add_argument('--verbose', action='store_true',
                    help='show the output of the installation')
    commands.add_parser(
        'down', help='stop the cloud and remove everything that it created')
    commands.add_parser('status', help='show the processes of the cloud')
    run = commands.add_parser(
        'exec', help='run a command as administrator, with the programs of '
        'the cloud in the PATH')
    run.add_argument(
        '--controller', type=int, choices=(1, 2), default=1,
        help='controller whose nova-api the command uses (default: 1)')
    run.add_argument('argv', nargs=argparse.REMAINDER, metavar='PROGRAM ...',
                     help='command line, such as: openstack aggregate list')
    situations = _add(
        commands, 'situations', 'create servers that find no host, explain '
        'them, follow the step and create them again',
        'each explanation is as expected, and its step lets the request '
        'succeed')
    situations.add_argument(
        '--only', action='append', default=[], metavar='NAME',
        help='only this situation; may be repeated (default: all)')
    situations.add_argument(
        '--write', action='store_true',
        help='replace the rows of these situations in the documentation')
    faults = _add_faults(commands)
    chosen = parser.parse_args(arguments)
    # Whether it starts a cloud.
    chosen.starts = chosen.command == 'up'
    if chosen.command == 'faults':
        chosen.rows = table.select(chosen.select or ['*'])
        if not chosen.rows:
            faults.error('no row matches; see --list')
        if chosen.write and not {*table.outages()} <= {*chosen.rows}:
            faults.error('--write requires all outages')
        chosen.starts = not all(row.is_random for row in chosen.rows)
    if chosen.command == 'exec':
        chosen.argv = chosen.argv[chosen.argv[:1] == ['--']:]
        if not chosen.argv:
            run.error(
                'a program is required, such as: openstack aggregate list')
    return chosen


def tool(chosen: argparse.Namespace) -> str:
    """Return the command prefix for the same cloud."""
    if chosen.directory == environment.TOP / '.cloud':
        return './tools/cloud'
    return './tools/cloud --directory %s' % chosen.directory


def without_cloud(chosen: argparse.Namespace) -> int:
    """Report that there is no cloud; return the exit status."""
    if chosen.command == 'down':
        print('There is no cloud in %s.' % chosen.directory)
        return 0
    print('There is no cloud in %s: %s up' % (
        chosen.directory, tool(chosen)), file=sys.stderr)
    return 1


def _add(commands: argparse._SubParsersAction, name: str, purpose: str,
         success: str, details: str = '') -> argparse.ArgumentParser:
    """Add a command, which exits with 0 after ``success``, or with 1."""
    text = '%s. Exit status: 0 %s; 1 otherwise.' % (
        purpose.capitalize(), success)
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=purpose, description='\n'.join(textwrap.wrap(text)),
        epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter)
    return parser


def _add_faults(commands: argparse._SubParsersAction
                ) -> argparse.ArgumentParser:
    faults = _add(
        commands, 'faults', 'make each party and each part of a nova bad in '
        'each way, at each moment, and measure what this package then does',
        'each row of the table keeps the promise',
        'selections of rows: %s;\nchaos and observe need "up", the others '
        'start clouds of their own' % ', '.join(table.SELECTIONS))
    faults.add_argument(
        '--select', action='append', default=[], metavar='NAME',
        help='only the rows of this selection, or whose names match this '
             'pattern, such as "cell * begin add"; may be repeated (default: '
             'the whole table)')
    faults.add_argument(
        '--list', action='store_true', help='only print the names of the rows')
    faults.add_argument(
        '--jobs', type=int, choices=range(1, 17), default=4, metavar='N',
        help='number of measurements in parallel (default: 4)')
    faults.add_argument(
        '--seconds', type=int, metavar='N',
        help='duration of random faults (default: 120), and up to three times '
             'as long until each kind has occurred; of each long silence '
             '(default: 3600)')
    faults.add_argument(
        '--seed', default='', metavar='TEXT',
        help='repeat the random choices of the run that printed this seed')
    faults.add_argument(
        '--without', choices=('agents', 'mirror'), action='append',
        default=[],
        help='random faults without the agents, or without this package\'s '
             'mirroring, to show what then differs')
    faults.add_argument('--write', action='store_true',
                        help='write the table of outages of the documentation')
    return faults
