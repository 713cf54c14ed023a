# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror wait``: a new host in its aggregates."""

import argparse
from collections import abc
import sys

from osc_lib.command import command as osc_command

from nova_aggregate_mirror.console import wait_run
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.osc import command
from nova_aggregate_mirror.source import api

AUTO = 'AUTO:'
"""Begins the reason with which nova-compute disables its own service, as
nova's libvirt driver does without a connection to libvirt."""


class Wait(osc_command.Command):
    """Wait until placement has hosts in all their aggregates.

    Every compute node of the host must have a resource provider that is in
    each aggregate that nova has for the host. Add the host to its aggregates
    first. Nothing is changed without --enable.
    """

    status = exit_status.OK
    # Cliff annotates it by its default, None.
    _epilog: str = command.epilog(  # type: ignore[assignment]
        exit_status.WAIT)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'hosts', metavar='<host>', nargs='+', help='Host to wait for')
        wait_run.add_timeout(parser, '<seconds>')
        parser.add_argument(
            '--enable', action='store_true',
            help='Then enable the compute services of the hosts, unless '
                 'nova-compute disabled one itself (disabled_reason AUTO:)')
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        return command.run(self, parsed_args, super().run)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        api_clients = command.clients_of(self.app)
        self.status = wait_run.run(
            api_clients.nova, api_clients.placement,
            frozenset(parsed_args.hosts), parsed_args.timeout,
            'openstack aggregate mirror sync --host')
        if parsed_args.enable and self.status == exit_status.OK:
            self.status = _enable(api_clients.nova, parsed_args.hosts)


def _enable(nova: api.ApiSource, hosts: abc.Iterable[str]) -> int:
    """Enable the compute services of hosts; return the exit status."""
    # Nova-api shows no ID of a service in a cell that is down.
    services = {service.host: service for service in nova.services()
                if service.id}
    statuses: set[int] = set()
    for host in sorted(set(hosts)):
        service = services.get(host)
        status, text = exit_status.OK, 'nova-compute is enabled'
        try:
            if service is None:
                status = exit_status.NO_NODE
                text = 'not enabled; nova-api does not show its nova-compute'
            elif service.disabled_reason.startswith(AUTO):
                status = exit_status.REFUSED
                text = ('not enabled; nova-compute disabled it, and enables '
                        'it itself: %s' % service.disabled_reason)
            elif service.status != 'enabled':
                nova.enable(service)
        except exceptions.MirrorError as exc:
            status, text = exit_status.of(exc), 'not enabled: %s' % exc
        command.tell(['Host %s: %s' % (host, text)],
                     sys.stderr if status else sys.stdout)
        statuses.add(status)
    return min(statuses - {exit_status.OK}, default=exit_status.OK)
