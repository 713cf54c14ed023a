# SPDX-License-Identifier: Apache-2.0
"""The command line of benchmarks/run, readable without its environment."""

import argparse

from benchmarks import arguments
from benchmarks import parts

_DESCRIPTION = """\
Measure this package beside stock nova, and write one report: what the figures
depend on, the load before and after each part, medians, from which to which
they go, ratios that are taken pair by pair, and the targets, met or missed.
The whole takes a quarter of an hour on a quiet machine with four cores and a
MySQL server; --quick takes minutes and says nothing but that all works.
"""
_EPILOG = """\
exit status: 0 no target is missed, 1 one is, 2 the command line is wrong or a
part could not be measured, 3 what it needs cannot be installed, 130
interrupted
"""


def parse(argv: list[str]) -> argparse.Namespace:
    """Read a command line; ``parts`` is in the order of a report."""
    parser = argparse.ArgumentParser(
        prog='run', description=_DESCRIPTION, epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [part.name for part in parts.PARTS]
    parser.add_argument(
        '--parts', nargs='+', choices=names, default=names, metavar='PART',
        help='measure these only, of ' + ', '.join(names))
    parser.add_argument(
        '--quick', action='store_true',
        help='the smallest sizes, for which there are hardly any targets')
    parser.add_argument(
        '--verbose', action='store_true',
        help='show what is installed into the environment')
    arguments.add_database(parser)
    arguments.add_outputs(parser)
    options = parser.parse_args(argv)
    options.parts = [part for part in parts.PARTS
                     if part.name in options.parts]
    return options
