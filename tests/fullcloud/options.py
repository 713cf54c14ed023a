# SPDX-License-Identifier: Apache-2.0
"""The command line of tools/cloud, readable without its environment."""

import argparse
import pathlib
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
"""
_EPILOG = """\
exit status: 0 done, or all that should run runs; 1 it failed, or something
does not run; 2 the command line is wrong; 3 what the cloud needs cannot be
installed here; 130 interrupted; "exec" has that of its command
"""
MOST_HOSTS = 20


def parse(arguments: List[str]) -> argparse.Namespace:
    """Read the command line; ends this program when it is wrong."""
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
    chosen = parser.parse_args(arguments)
    if chosen.command is None:
        parser.error('say what to do: up, down, status or exec')
    if chosen.command == 'exec':
        chosen.argv = chosen.argv[chosen.argv[:1] == ['--']:]
        if not chosen.argv:
            run.error('say what to run, such as: openstack aggregate list')
    return chosen


def _directory(text: str) -> pathlib.Path:
    path = pathlib.Path(text).absolute()
    if path.exists() and not path.is_dir():
        raise argparse.ArgumentTypeError('%s is not a directory' % path)
    return path


def _hosts(text: str) -> int:
    # Two of one node, so that servers can move between them.
    if not text.isascii() or not text.isdigit() or not (
            3 <= int(text) <= MOST_HOSTS):
        raise argparse.ArgumentTypeError(
            '%r is not a number from 3 to %d' % (text, MOST_HOSTS))
    return int(text)
