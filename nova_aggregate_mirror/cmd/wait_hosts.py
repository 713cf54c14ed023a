# SPDX-License-Identifier: Apache-2.0
"""Wait until placement has hosts in all their aggregates.

Every compute node of the host must have a resource provider that is in each
aggregate that nova has for the host. Add the host to its aggregates first, and
enable its compute service afterwards. Nothing is changed, neither in nova and
placement nor in the journal.

Exit status:
    0  placement has each host in all its aggregates
  130  interrupted by Ctrl-C
  255  the host is in no aggregate, or the configuration could not be used
and after the timeout, the lowest that applies:
    2  placement could not be read
    3  nova has a compute node on several hosts with different aggregates, or
       no UUID of an aggregate
    4  the host has no host mapping
    5  the host has no compute node, or its cell did not answer
    6  a compute node has no resource provider yet
    7  a provider is not in an aggregate
  255  nova's database could not be read
"""

import argparse
import sys

from oslo_config import cfg

from nova_aggregate_mirror.cmd import components
from nova_aggregate_mirror.console import arguments
from nova_aggregate_mirror.console import readiness
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        # Nova has an option named host.
        '--host', action='append', required=True, metavar='HOST',
        dest='hosts', help='host to wait for; may be repeated')
    parser.add_argument(
        '--timeout', type=arguments.number(arguments.LONGEST),
        default=readiness.TIMEOUT, metavar='SECONDS',
        help='maximum time to wait in seconds, from 1 to %d; the default is '
             '%d' % (arguments.LONGEST, readiness.TIMEOUT))


def run(conf: cfg.ConfigOpts) -> int:
    """Wait, print what is missing and the result; return the exit status."""
    components.check_configuration()
    nova, placement = components.source(), components.placement()
    try:
        result = readiness.until_mirrored(
            nova, placement, frozenset(conf.command.hosts),
            conf.command.timeout, _tell)
    except exceptions.MirrorError as exc:
        _tell(exc)
        return exit_status.of(exc)
    for line in result.summary():
        print(line)
    for line in result.faults():
        _tell(line)
    return result.status()


def _tell(text: object) -> None:
    print(text, file=sys.stderr, flush=True)
