# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror explain``: why not this host?"""

import argparse
from collections.abc import Mapping

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.explanation import render
from nova_aggregate_mirror.explanation import requested
from nova_aggregate_mirror.osc import clients
from nova_aggregate_mirror.osc import command
from nova_aggregate_mirror.osc import explaining
from nova_aggregate_mirror.osc import rules
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror.reconcile import arguments

NO_HOST = 1

LONG = ('Host', 'Node', 'Step', 'Kind', 'Reason', 'Detail', 'What to do')
"""Columns of a row for each compute node."""

STATUS = (
    'Exit status: 0 when a host is left, 1 when none is left or when the '
    'client itself could not authenticate, 2 when placement or glance could '
    'not be read, 255 when nova-api could not be read or has no such server, '
    'flavor, host or zone.')


class Explain(command.Lister):
    """Explain which hosts nova-scheduler can choose for a server, and why.

    Placement is asked for each condition of the query that nova builds from
    flavor, image and zone; hosts in the same state share a row. The summary,
    the conditions and what is not explained are printed on standard error.
    Nothing is claimed or written.
    """

    _epilog = STATUS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            '--server', metavar='<server>', type=arguments.uuid,
            help='Explain what this server (ID) has asked for, also if it is '
                 'in ERROR')
        what.add_argument(
            '--flavor', metavar='<flavor>',
            help='Explain a server with this flavor (name or ID)')
        _describe(parser)
        parser.add_argument(
            '--rule', metavar='<rule>', action='append', default=[],
            dest='rules', choices=sorted(rules.RULES),
            help='Apply a rule that nova-scheduler enforces, which nova-api '
                 'does not show; may be repeated: '
                 + ', '.join(sorted(rules.RULES)))
        parser.add_argument(
            '--host', metavar='<host>', action='append', default=[],
            dest='hosts', help='Explain this host only; may be repeated')
        parser.add_argument(
            '--long', action='store_true',
            help='List a row for each compute node')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        check(parsed_args)
        made = self.clients
        answer = explaining.explain(
            made, _asked(made, parsed_args),
            parallel.Workers(parsed_args.workers).each, parsed_args.hosts)
        self.status = exit_status.OK if answer.possible else NO_HOST
        command.tell(['\n\n'.join([*render.head(answer),
                                   *render.notes(answer)]) + '\n'])
        if parsed_args.long:
            return LONG, [
                (one.host, one.node, one.step, one.reason.kind,
                 one.reason.phrase, one.detail, one.advice)
                for one in answer.verdicts]
        return render.HOSTS, render.hosts(answer)


def check(parsed_args: argparse.Namespace) -> None:
    """Check arguments that depend on each other.

    :raises InvalidConfiguration: names the argument
    """
    described = ('image', 'properties', 'project', 'zone', 'volume')
    wrong = [name for name in described if getattr(parsed_args, name)]
    if parsed_args.server and wrong:
        raise exceptions.InvalidConfiguration(
            '--%s applies to --flavor only: a server has its own'
            % wrong[0].replace('properties', 'image-property'))
    tenants = [name for name in parsed_args.rules if name in rules.OF_TENANTS]
    if parsed_args.flavor and tenants and not parsed_args.project:
        raise exceptions.InvalidConfiguration(
            '--rule %s needs --project' % tenants[0])


def _describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--image', metavar='<image>', default='',
        help='With --flavor: the image (ID)')
    parser.add_argument(
        '--image-property', metavar='<key=value>', action='append',
        type=arguments.pair, default=[], dest='properties',
        help='With --flavor: a property of the image; may be repeated')
    parser.add_argument(
        '--project', metavar='<project>', default='',
        help='With --flavor: the project (ID) of the server')
    parser.add_argument(
        '--zone', metavar='<zone>', default='',
        help='With --flavor: the availability zone')
    parser.add_argument(
        '--volume', action='store_true',
        help='With --flavor: the server boots from a volume, and the root '
             'disk of the flavor is not requested')


def _asked(made: clients.Clients, parsed_args: argparse.Namespace
           ) -> explaining.Asked:
    """Read the request that the arguments name or describe."""
    if parsed_args.server:
        return _of_server(made, parsed_args.server, parsed_args.rules)
    properties = dict(parsed_args.properties)
    if parsed_args.image:
        properties = {**made.properties(parsed_args.image), **properties}
    found = requested.Requested(
        made.requests.flavor(parsed_args.flavor), properties,
        parsed_args.volume, parsed_args.project, parsed_args.zone)
    return explaining.Asked(
        found, _about(found, '', parsed_args.image), parsed_args.rules)


def _of_server(made: clients.Clients, server: str, enforced: list[str]
               ) -> explaining.Asked:
    found, notes = made.requests.server(server), []
    properties: Mapping[str, str] = {}
    if not found.zone_visible:
        notes.append(
            'The zone that the server has asked for is not visible before '
            'compute API microversion 2.96 and is not explained; describe '
            'the server with --flavor and --zone instead.')
    if found.image:
        try:
            properties = made.properties(found.image)
        except exceptions.MirrorError as exc:
            notes.append(
                'The image of the server is not explained (describe the '
                'server with --flavor instead): %s' % exc)
    else:
        notes.append('The properties of the image in the volume of the server '
                     'are not visible and not explained.')
    wanted = requested.Requested(
        found.flavor, properties, not found.image, found.project, found.zone)
    return explaining.Asked(
        wanted, _about(wanted, server, found.image), enforced, notes)


def _about(asked: requested.Requested, server: str, image: str
           ) -> Mapping[str, str]:
    about = {'server': server, 'flavor': asked.flavor.name, 'image': image,
             'project': asked.project, 'zone': asked.zone}
    return {name: value for name, value in about.items() if value}
