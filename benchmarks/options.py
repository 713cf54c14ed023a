# SPDX-License-Identifier: Apache-2.0
"""Command line of benchmarks/run; needs no installed packages."""

import argparse

from benchmarks import arguments
from benchmarks import parts

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


def parse(argv: list[str]) -> argparse.Namespace:
    """Parse a command line; ``parts`` is in the order of the report."""
    parser = argparse.ArgumentParser(
        prog='run', description=_DESCRIPTION, epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [part.name for part in parts.PARTS]
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
    arguments.add_outputs(parser)
    options = parser.parse_args(argv)
    options.parts = [part for part in parts.PARTS
                     if part.name in options.parts]
    return options
