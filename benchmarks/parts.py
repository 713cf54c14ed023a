# SPDX-License-Identifier: Apache-2.0
"""Parts of a report, and the command line; needs no installed packages."""

import argparse
from collections import abc
import dataclasses
import os
import pathlib
from typing import Any

_DESCRIPTION = """\
Compare this package with stock nova, and write a report: the environment, the
load before and after each part, medians with their ranges, and ratios per
pair. A complete run takes 45 minutes on an idle machine with two cores.
--quick takes a few minutes, and only verifies that the benchmarks work.
"""
_EPILOG = """\
exit status: 0 all parts were measured, 2 the command line is invalid or a part
could not be measured, 3 a package or the database server is not available, 130
interrupted
"""


@dataclasses.dataclass(frozen=True)
class Part:
    """A benchmark with its size.

    :param module: has the function, which returns a table
    :param quick: those that ``--quick`` replaces
    :param reported: whether the part is in a report by default
    """

    name: str
    title: str
    module: str
    sizes: abc.Mapping[str, Any]
    quick: abc.Mapping[str, Any]
    reported: bool = True
    function: str = 'measure'


_PAIR = {'pairs': 1}
PARTS = (
    Part('add-host', 'add-host and remove-host through nova-api', 'add_host',
         {'pairs': 4, 'calls': 40}, {**_PAIR, 'calls': 5}),
    Part('sync', 'Full sync compared with nova-manage, cold and warm', 'sync',
         {'hosts': 1000, 'pairs': 2}, {**_PAIR, 'hosts': 100}),
    Part('agent', 'Full sync of the agent with many hosts', 'sync',
         {'hosts': 5000, 'pairs': 1, 'ours_only': True}, {'hosts': 200}),
    Part('edge', 'Full sync of an edge site with more aggregates than hosts',
         'sync', {'compute_nodes': 6, 'used': 203, 'aggregates': 400,
                  'pairs': 2}, {**_PAIR, 'used': 23, 'aggregates': 40},
         function='measure_edge'),
    Part('scheduler', 'Scheduling a server', 'scheduler',
         {'sizes': (200, 1000, 2000), 'pairs': 3, 'calls': 3},
         {**_PAIR, 'sizes': (100,), 'calls': 1}),
    Part('explain', 'Explaining a request', 'explain',
         {'sizes': (200, 1000, 5000), 'pairs': 3, 'servers': 2000},
         {**_PAIR, 'sizes': (100,), 'servers': 200}),
    Part('audit', 'Auditing the servers', 'audit',
         {'sizes': (1000, 10000, 100000), 'runs': 3},
         {'sizes': (500, 5000), 'runs': 1}),
    Part('recovery', 'Recovery after an outage of placement', 'recovery',
         {'hosts': 1000, 'pairs': 2}, {**_PAIR, 'hosts': 50}),
    Part('sync-5000', 'Full sync of 5000 hosts compared with nova-manage',
         'sync', {'hosts': 5000, 'pairs': 1}, {'hosts': 200}, reported=False),
    Part('sync-20000', 'Full sync of 20,000 hosts', 'sync',
         {'hosts': 20000, 'pairs': 1, 'ours_only': True}, {'hosts': 200},
         reported=False))


def _output(text: str) -> pathlib.Path:
    """Return the path of a writable file, to fail before the benchmark."""
    path = pathlib.Path(text).absolute()
    if path.is_dir() or not os.access(
            path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError('%s cannot be written' % text)
    return path


def parse(argv: list[str]) -> argparse.Namespace:
    """Parse a command line; ``parts`` is in the order of the report."""
    parser = argparse.ArgumentParser(
        prog='run', description=_DESCRIPTION, epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--parts', nargs='+', choices=[part.name for part in PARTS],
        default=[part.name for part in PARTS if part.reported],
        metavar='PART', help='parts to measure: ' + '; '.join(
            '%s: %s%s' % (part.name, part.title, '' if part.reported
                          else ' (only on request)') for part in PARTS))
    parser.add_argument('--quick', action='store_true',
                        help='use the smallest sizes')
    parser.add_argument('--verbose', action='store_true',
                        help='show the output of the installation')
    parser.add_argument('--write', type=_output, metavar='FILE',
                        help='write the results to this file, too')
    options = parser.parse_args(argv)
    options.parts = [part for part in PARTS if part.name in options.parts]
    return options
