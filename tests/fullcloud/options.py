# SPDX-License-Identifier: Apache-2.0
"""The command line of tools/cloud, readable without its environment."""

import argparse
import pathlib
import sys
from typing import List

TOP = pathlib.Path(__file__).resolve().parent.parent.parent

_DESCRIPTION = """\
A whole OpenStack on the loopback interface, of real processes: MariaDB,
RabbitMQ, keystone, placement, glance, neutron, and nova with two controllers
and several compute hosts, one of them with three nodes. This package and its
agents are part of it.

  up      start it; what it needs is installed into .venv-cloud beside this
          checkout's files, and without a MariaDB or RabbitMQ on this machine
          private ones are started, for which root installs the packages
  down    stop it and remove everything that it made
  status  show its processes
  exec    run a command as its administrator, with its programs in the PATH
  chaos   work on host aggregates while its parts fail, and compare placement
          with nova
"""
_EPILOG = """\
exit status: 0 done, or all that should run runs; 1 it failed, or something
does not run; 2 the command line is wrong; 3 packages that it needs cannot be
had here; 130 interrupted; "exec" has that of its command
"""
MOST_HOSTS = 20
FAULTS = {
    'worker': 'one process of a REST API is killed',
    'kill': 'a REST API or an agent is killed',
    'pause': 'placement or an agent hangs',
    'refuse': 'connections of a nova-api are reset and refused',
    'swallow': 'packets of a nova-api are swallowed',
    'mariadb': 'MariaDB is killed', 'rabbitmq': 'RabbitMQ is killed'}
LONGEST = 24 * 3600


def parse(arguments: List[str]) -> argparse.Namespace:
    """Parse the command line; exit if it is invalid."""
    parser = argparse.ArgumentParser(
        prog='cloud', description=_DESCRIPTION, epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--directory', type=_directory, default=str(TOP / '.cloud'),
        help='what the cloud writes is below it, and its commands find the '
             'cloud by it (.cloud beside this checkout\'s files)')
    parser.set_defaults(verbose=False)
    commands = parser.add_subparsers(dest='command', metavar='COMMAND')
    up = commands.add_parser('up', help='start the cloud')
    up.add_argument(
        '--hosts', type=_hosts, default=4, metavar='N',
        help='how many compute hosts there are; the last has three nodes (4)')
    up.add_argument(
        '--private', action='store_true',
        help='start a MariaDB and a RabbitMQ of its own even if this machine '
             'has some')
    up.add_argument(
        '--verbose', action='store_true', help='show what pip prints')
    commands.add_parser('down', help='stop the cloud and remove it')
    commands.add_parser('status', help='show its processes')
    run = commands.add_parser('exec', help='run a command in it')
    run.add_argument(
        '--controller', type=int, choices=(1, 2), default=1,
        help='whose nova-api the command uses (1)')
    run.add_argument('argv', nargs=argparse.REMAINDER, metavar='PROGRAM ...',
                     help='the command, such as: openstack aggregate list')
    _add_chaos(commands)
    chosen = parser.parse_args(arguments)
    if chosen.command is None:
        parser.error('say what to do: up, down, status, exec or chaos')
    if chosen.command == 'exec':
        chosen.argv = chosen.argv[chosen.argv[:1] == ['--']:]
        if not chosen.argv:
            run.error('say what to run, such as: openstack aggregate list')
    return chosen


def tool(chosen: argparse.Namespace) -> str:
    """Return the command prefix for the same cloud."""
    if chosen.directory == TOP / '.cloud':
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


def _add_chaos(commands: argparse._SubParsersAction) -> None:
    chaos = commands.add_parser(
        'chaos', help='make it fail at random, and see whether it heals',
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='faults:\n' + '\n'.join(
            '  %-9s %s' % each for each in FAULTS.items())
        + '\n\nexit status: 0 placement equals nova and every answer was one '
        'of nova\'s; 1 not so')
    chaos.add_argument(
        '--seconds', type=_seconds, default=120, metavar='N',
        help='how long operations and faults go on (120); up to three times '
             'as long until each kind of fault has come')
    chaos.add_argument(
        '--hour', action='store_const', const=3600, dest='seconds',
        help='the same as --seconds 3600')
    chaos.add_argument(
        '--seed', default='', metavar='TEXT',
        help='makes the same random choices as the run that has printed it')
    chaos.add_argument(
        '--faults', type=_faults, default=list(FAULTS), metavar='LIST',
        help='which faults, joined with commas, or none (all)')
    chaos.add_argument(
        '--without', choices=('agents', 'mirror'), action='append',
        default=[],
        help='leave out what heals, to see that it is missed: the agents, or '
             'the whole mirror, so that nova does what it does by itself')


def _seconds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not (
            1 <= int(text) <= LONGEST):
        raise argparse.ArgumentTypeError(
            '%r is not a number from 1 to %d' % (text, LONGEST))
    return int(text)


def _faults(text: str) -> List[str]:
    names = [] if text == 'none' else text.split(',')
    unknown = sorted(set(names) - set(FAULTS))
    if unknown:
        raise argparse.ArgumentTypeError(
            'there is no fault %r; there are %s' % (
                unknown[0], ', '.join(FAULTS)))
    return names


def _directory(text: str) -> pathlib.Path:
    path = pathlib.Path(text).absolute()
    try:
        # Every command looks for its cloud with this file.
        (path / 'state.json').stat()
    except FileNotFoundError:
        pass
    except OSError as exc:
        raise argparse.ArgumentTypeError('%s cannot have a cloud: %s' % (
            path, exc.strerror))
    return path


def _hosts(text: str) -> int:
    # At least two have a single node, so that servers can move between them.
    if not text.isascii() or not text.isdigit() or not (
            3 <= int(text) <= MOST_HOSTS):
        raise argparse.ArgumentTypeError(
            '%r is not a number from 3 to %d' % (text, MOST_HOSTS))
    return int(text)
