# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror wait``: a new host in its aggregates."""

import argparse

from osc_lib.command import command as osc_command

from nova_aggregate_mirror.console import arguments
from nova_aggregate_mirror.console import wait_run
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.osc import command


class Wait(osc_command.Command):
    """Wait until placement has hosts in all their aggregates.

    Every compute node of the host must have a resource provider that is in
    each aggregate that nova has for the host. Add the host to its aggregates
    first. Nothing is changed.
    """

    status = exit_status.OK
    # Cliff annotates it by its default, None.
    _epilog: str = command.epilog(  # type: ignore[assignment]
        exit_status.COMPARISON)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'hosts', metavar='<host>', nargs='+', help='Host to wait for')
        parser.add_argument(
            '--timeout', type=arguments.number(arguments.LONGEST),
            default=wait_run.TIMEOUT, metavar='<seconds>',
            help='Maximum time to wait in seconds, from 1 to %d (default: '
                 '%d); %s' % (
                     arguments.LONGEST, wait_run.TIMEOUT, wait_run.LATE))
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        with command.reported_errors(self):
            super().run(parsed_args)
        return self.status

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        api_clients = command.clients_of(self.app)
        self.status = wait_run.run(
            api_clients.nova, api_clients.placement,
            frozenset(parsed_args.hosts), parsed_args.timeout,
            'openstack aggregate mirror sync --host',
            quiet=not self.app.options.verbose_level)
