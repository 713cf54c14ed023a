# SPDX-License-Identifier: Apache-2.0
"""The command lines of tools/demo and tools/cloud, readable without nova."""

import argparse
import pathlib
import sys
from typing import List

from tests.cloud import environment
from tests.cloud.outages import cases
from tests.cloud.parts import situations

_DEMO_DESCRIPTION = """\
Start a real keystone, placement and nova-api on the loopback interface, change
a few host aggregates with the real clients, and compare nova's aggregates with
placement's after each step. Only the virtual environment remains, in this
checkout.
"""
_DEMO_EPILOG = """\
exit status: 0 placement was correct after each step, 1 it was not, 2 the
demonstration could not run, 130 interrupted
"""
_DESCRIPTION = """\
A complete OpenStack of real processes on the loopback interface: MariaDB,
RabbitMQ, keystone, placement, glance, neutron, and nova with two
controllers and several compute hosts, one of them with three nodes. This
package and its agents are installed in it.

  up      start the cloud; its packages are installed into .venv-cloud in this
          checkout, and root can install those of MariaDB and RabbitMQ
  down    stop the cloud and remove everything that it created
  status  show its processes
  exec    run a command as administrator, with the cloud's programs in the PATH
  chaos   change host aggregates at random while parts of the cloud fail, and
          compare placement with nova
  situations
          create servers that find no host, explain them, follow the advice
          and create them again
  outages compare stock nova with this package during each outage of each party
          that a call depends on, on a cloud of its own
  parts   measure how soon healthy hosts are mirrored while one part, such as
          a cell, a row or a provider, is bad, on such a cloud
  endure  silence a party for an hour, and see that nova-api and the agent use
          no more memory, threads or connections at its end, on such a cloud
"""
_EPILOG = """\
exit status: 0 success, or all processes run; 1 failure, or a process does not
run; 2 invalid command line; 3 required packages cannot be installed; 130
interrupted; "exec" returns the exit status of its command
"""
SILENT = ('keystone', 'placement', 'journal', 'cell')
FAULTS = {
    'worker': 'one process of a REST API is killed',
    'kill': 'a REST API or an agent is killed',
    'pause': 'placement or an agent hangs',
    'refuse': 'connections of a nova-api are reset and refused',
    'swallow': 'packets of a nova-api are swallowed',
    'mariadb': 'MariaDB is killed', 'rabbitmq': 'RabbitMQ is killed'}


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
    parser.add_argument(
        '--verbose', action='store_true',
        help='show the output of the commands')
    return parser.parse_args(arguments)


def cloud(arguments: List[str]) -> argparse.Namespace:
    """Parse the command line of tools/cloud; exit if it is invalid."""
    parser = argparse.ArgumentParser(
        prog='cloud', description=_DESCRIPTION, epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--directory', type=_directory,
        default=str(environment.TOP / '.cloud'),
        help='directory of the cloud, which all commands on it have to name '
             '(default: .cloud in this checkout)')
    parser.set_defaults(verbose=False)
    commands = parser.add_subparsers(dest='command', metavar='COMMAND')
    up = commands.add_parser('up', help='start the cloud')
    up.add_argument(
        '--hosts', type=int, choices=range(3, 21), default=4, metavar='N',
        help='number of compute hosts, at least 3; the last has three nodes '
             '(default: 4)')
    up.add_argument(
        '--verbose', action='store_true',
        help='show the output of the installation')
    commands.add_parser('down', help='stop the cloud and remove it')
    commands.add_parser('status', help='show the processes of the cloud')
    run = commands.add_parser('exec', help='run a command in the cloud')
    run.add_argument(
        '--controller', type=int, choices=(1, 2), default=1,
        help='controller whose nova-api the command uses (default: 1)')
    run.add_argument('argv', nargs=argparse.REMAINDER, metavar='PROGRAM ...',
                     help='command line, such as: openstack aggregate list')
    _add_chaos(commands)
    _add_situations(commands)
    outages = _add_outages(commands)
    parts = _add_parts(commands)
    _add_endure(commands)
    chosen = parser.parse_args(arguments)
    if chosen.command is None:
        parser.error('a command is required: up, down, status, exec, chaos, '
                     'situations, outages, parts or endure')
    if chosen.command == 'outages' and chosen.write and (
            chosen.pairs or chosen.party or chosen.fault or chosen.moment
            or chosen.call):
        outages.error('--write requires the whole table')
    if chosen.command == 'parts' and chosen.write and (
            chosen.selection or chosen.only):
        parts.error('--write requires the whole table')
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


def _add_chaos(commands: argparse._SubParsersAction) -> None:
    chaos = commands.add_parser(
        'chaos', help='test the cloud with random faults',
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='faults:\n' + '\n'.join(
            '  %-10s %s' % each for each in FAULTS.items())
        + '\n\nexit status: 0 placement equals nova, and nova gave only '
        'answers that it\ngives without faults; 1 otherwise')
    chaos.add_argument(
        '--seconds', type=int, default=120, metavar='N',
        help='duration in seconds; up to three times as long until each kind '
             'of fault has occurred (default: 120)')
    chaos.add_argument(
        '--seed', default='', metavar='TEXT',
        help='repeat the random choices of the run that printed this seed')
    chaos.add_argument(
        '--faults', type=_faults, default=list(FAULTS), metavar='LIST',
        help='comma-separated kinds of faults, or "none" (default: all)')
    chaos.add_argument(
        '--without', choices=('agents', 'mirror'), action='append',
        default=[],
        help='run without the agents, or without this package\'s mirroring, '
             'to show what then differs')


def _add_situations(commands: argparse._SubParsersAction) -> None:
    situations = commands.add_parser(
        'situations', help='explain requests that find no host',
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='exit status: 0 each explanation is as expected, and its '
        'advice lets the request\nsucceed; 1 otherwise')
    situations.add_argument(
        '--only', action='append', default=[], metavar='NAME',
        help='only this situation; may be repeated (default: all)')
    situations.add_argument(
        '--write', action='store_true',
        help='replace the rows of these situations in the documentation')


def _add_outages(commands: argparse._SubParsersAction
                 ) -> argparse.ArgumentParser:
    outages: argparse.ArgumentParser = commands.add_parser(
        'outages', help='measure nova\'s answers during each outage',
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='exit status: 0 each case keeps the promise, 1 otherwise')
    for name, values in (('party', cases.PARTIES), ('fault', cases.FAULTS),
                         ('moment', cases.MOMENTS), ('call', cases.CALLS)):
        outages.add_argument(
            '--%s' % name, action='append', choices=tuple(values), default=[],
            help='only this %s; may be repeated (default: all)' % name)
    outages.add_argument(
        '--pairs', action='store_true',
        help='only a selection in which every pair of values occurs, but for '
             'the other cell, with an inline_timeout of 2.5 seconds')
    outages.add_argument(
        '--jobs', type=int, choices=range(1, 17), default=4, metavar='N',
        help='number of cases that are measured in parallel (default: 4)')
    outages.add_argument(
        '--write', action='store_true',
        help='write the tables of the documentation')
    return outages


def _add_parts(commands: argparse._SubParsersAction
               ) -> argparse.ArgumentParser:
    parts: argparse.ArgumentParser = commands.add_parser(
        'parts', help='measure healthy hosts while one part is bad',
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='lines: %s\n\nexit status: 0 no healthy host is mirrored too '
        'late, 1 otherwise' % '\n       '.join(
            map(str, situations.table())))
    lines = parts.add_mutually_exclusive_group()
    lines.add_argument(
        '--only', action='append', metavar='NAME', default=[],
        choices=[str(line) for line in situations.table()],
        help='only this line of the table; may be repeated (default: all)')
    lines.add_argument(
        '--selection', action='store_true',
        help='only the lines of ./tools/test')
    parts.add_argument(
        '--jobs', type=int, choices=range(1, 17), default=4, metavar='N',
        help='number of lines that are measured in parallel (default: 4)')
    parts.add_argument(
        '--write', action='store_true',
        help='write the table of the documentation')
    return parts


def _add_endure(commands: argparse._SubParsersAction) -> None:
    endure = commands.add_parser(
        'endure', help='silence a party for long under load',
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='exit status: 0 each call was answered 200, placement equals '
        'nova afterwards,\nand no process uses more at the end; 1 otherwise')
    endure.add_argument(
        '--party', action='append', choices=SILENT, default=[],
        help='only this party; may be repeated. All are silenced at the same '
             'time, each on a nova of its own (default: all)')
    endure.add_argument(
        '--seconds', type=int, default=3600, metavar='N',
        help='duration of the silence (default: 3600)')


def _faults(text: str) -> List[str]:
    names = [] if text == 'none' else text.split(',')
    unknown = sorted(set(names) - set(FAULTS))
    if unknown:
        raise argparse.ArgumentTypeError(
            'fault %r does not exist; faults: %s' % (
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
        raise argparse.ArgumentTypeError(
            'no cloud can be created in %s: %s' % (path, exc.strerror))
    return path
