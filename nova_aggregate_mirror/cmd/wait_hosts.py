# SPDX-License-Identifier: Apache-2.0
"""Wait until placement has hosts in all their aggregates.

Every compute node of the host must have a resource provider that is in each
aggregate that nova has for the host. Add the host to its aggregates first, and
enable its compute service afterwards. Nothing is changed, neither in nova and
placement nor in the journal.
"""

import argparse
import shlex
import sys

from oslo_config import cfg

from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror import commands
from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror.console import wait_run
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.limits import engines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        # Not as ``host``, which is an option of nova.
        '--host', action='append', required=True, metavar='HOST',
        dest='hosts', help='host to wait for; may be repeated')
    wait_run.add_timeout(parser, 'SECONDS')


def run(conf: cfg.ConfigOpts) -> int:
    """Wait, print what is missing or comes next; return the exit status."""
    program.check_configuration()
    options = conf.command
    # An attempt has a deadline, like a call of nova-api.
    limits = engines.Limits.of_call(options.timeout, inline_backoff=0.0)
    nova, placement = program.source(limits.timeout), program.placement()
    status = wait_run.run(
        nova, placement, frozenset(options.hosts), options.timeout,
        commands.SYNC + ' --host')
    if status == exit_status.OK:
        cli.tell([
            'If it is disabled: openstack compute service set --enable %s '
            'nova-compute' % shlex.quote(host)
            for host in sorted(set(options.hosts))], sys.stdout)
    return status
