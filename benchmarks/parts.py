# SPDX-License-Identifier: Apache-2.0
"""Parts of a report, and the command line; needs no installed packages."""

import argparse
from collections.abc import Sequence
import dataclasses

from benchmarks import arguments

_DESCRIPTION = """\
Compare this package with stock nova, and write a report: the environment, the
load before and after each part, medians with their ranges, ratios per pair,
and the targets, met or missed. A complete run takes 25 minutes on an idle
machine with two cores and a MySQL server. --quick takes a few minutes, and
only verifies that the benchmarks work.
"""
_EPILOG = """\
exit status: 0 all targets are met, 1 a target is missed, 2 the command line is
invalid or a part could not be measured, 3 the requirements cannot be
installed, 130 interrupted
"""


@dataclasses.dataclass(frozen=True)
class Part:
    """A benchmark with its size."""

    name: str
    title: str
    """Description of the comparison."""
    module: str
    """Module with ``parse`` and ``measure``, see ``program.Measure``."""
    arguments: Sequence[str]
    quick: Sequence[str]
    """Arguments for ``--quick``."""


PARTS = (
    Part('add-host', 'add-host and remove-host through nova-api',
         'benchmarks.add_host', ['--pairs', '4'],
         ['--pairs', '1', '--calls', '5']),
    Part('sync', 'Full sync compared with nova-manage, cold and warm',
         'benchmarks.sync', [
             '--hosts', '1000', '--pairs', '2', '--agent-pass'],
         ['--hosts', '100', '--pairs', '1', '--agent-pass']),
    Part('agent', 'Full sync of the agent with many hosts',
         'benchmarks.sync', [
             '--hosts', '5000', '--pairs', '1', '--ours-only', '--agent-pass'],
         ['--hosts', '200', '--pairs', '1', '--ours-only', '--agent-pass']),
    Part('scheduler', 'Scheduling a server',
         'benchmarks.scheduler', ['--pairs', '3', '--calls', '3'],
         ['--hosts', '100', '--pairs', '1', '--calls', '1']),
    Part('explain', 'Explaining a request',
         'benchmarks.explain', ['--pairs', '3'],
         ['--hosts', '100', '--pairs', '1']),
    Part('audit', 'Auditing the servers',
         'benchmarks.audit', ['--runs', '3'],
         ['--servers', '500', '5000', '--runs', '1']),
    Part('recovery', 'Recovery after an outage of placement',
         'benchmarks.recovery', ['--hosts', '1000', '--pairs', '2'],
         ['--hosts', '50', '--pairs', '1']))


def parse(argv: list[str]) -> argparse.Namespace:
    """Parse a command line; ``parts`` is in the order of the report."""
    parser = argparse.ArgumentParser(
        prog='run', description=_DESCRIPTION, epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [part.name for part in PARTS]
    parser.add_argument(
        '--parts', nargs='+', choices=names, default=names, metavar='PART',
        help='parts to measure, of ' + ', '.join(names))
    parser.add_argument(
        '--quick', action='store_true',
        help='use the smallest sizes, most of which have no targets')
    parser.add_argument(
        '--verbose', action='store_true',
        help='show the output of the installation')
    arguments.add_database(parser)
    arguments.add_output(parser)
    options = parser.parse_args(argv)
    options.parts = [part for part in PARTS
                     if part.name in options.parts]
    return options
