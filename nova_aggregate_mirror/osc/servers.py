# SPDX-License-Identifier: Apache-2.0
"""``openstack aggregate mirror servers``: who is on the wrong host?"""

import argparse
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import functools

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import render
from nova_aggregate_mirror.audit import rules as audit_rules
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.explanation import requested
from nova_aggregate_mirror.osc import clients
from nova_aggregate_mirror.osc import command
from nova_aggregate_mirror.osc import rules
from nova_aggregate_mirror.reconcile import wording
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import filter_rules
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import api
from nova_aggregate_mirror.source import api_requests

COLUMNS = ('Server', 'Name', 'Host', 'Project', 'Asked for', 'Found', 'Why',
           'Since', 'To move it')

CHOICES = (audit.ZONE, audit.TENANT, 'tenant_aggregate', audit.FLAVOR,
           audit.IMAGE, audit.TYPE)

STATUS = (
    'Exit status: 0 when no server is on a host that contradicts its request, '
    '1 when the client itself could not authenticate, 2 when glance could not '
    'be read, 5 when a cell is down, 7 when a server is '
    'misplaced, 255 when nova-api could not be read. The lowest applies.')


class Servers(command.Lister):
    """List servers whose host contradicts what was requested for them.

    By default only availability zones are checked, because nova-api does not
    show which other rules nova-scheduler enforces; select these with --rule.
    Nothing is changed.
    """

    _epilog = STATUS
    parallel = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--zone', metavar='<zone>', default='',
            help='Only servers that request this availability zone, or are '
                 'on its hosts')
        parser.add_argument(
            '--host', metavar='<host>', action='append', default=[],
            dest='hosts', help='Only servers on this host; may be repeated')
        parser.add_argument(
            '--project', metavar='<project>', default='',
            help='Only servers of this project (ID)')
        parser.add_argument(
            '--rule', metavar='<rule>', action='append', default=[],
            dest='rules', choices=CHOICES,
            help='Check this rule; may be repeated: ' + ', '.join(CHOICES))
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        names = list(dict.fromkeys(parsed_args.rules)) or [audit.ZONE]
        made = self.clients
        known = _aggregates(made)
        # That of hosts without a zone.
        zones = {one.get(filter_rules.ZONE)
                 for one in known.metadata.values()}
        default = ''.join(sorted(made.requests.zones() - zones)[:1])
        found = auditor.Auditor(
            [(name, functools.partial(
                _check, name, default if parsed_args.rules else ''))
             for name in names],
            known, zone=parsed_args.zone, default_zone=default,
            complete=made.servers.arrived)
        images = _Images(made) if audit.IMAGE in names else None
        rows = [_row(one) for one in found.run(
            _audited(made, images, parsed_args))]
        # Nova-api leaves out the servers of a cell that is down.
        down = made.nova.hosts_down()
        if parsed_args.hosts:
            down &= frozenset(parsed_args.hosts)
        self._tell(found.counts, down)
        if found.counts.misplaced:
            self.status = exit_status.DRIFT
        if down:
            self.status = exit_status.NO_NODE
        return COLUMNS, rows

    def _tell(self, counts: auditor.Counts, down: frozenset[str]) -> None:
        if down:
            command.tell(['Servers on %s are not audited: nova-api cannot '
                          'read the cell of %s' % (
                              wording.count(len(down), 'host'),
                              api.some(down))])
        if counts.unknown:
            command.tell(['%s not audited: %s' % (wording.count(
                counts.unknown, 'server is', 'servers are'),
                counts.why_unknown)])
        command.tell([render.summary(counts)])


class _Images:
    """Properties of images, each read from glance once."""

    def __init__(self, made: clients.Clients) -> None:
        self._read = functools.lru_cache(1024)(made.properties)

    def of(self, image: str) -> Mapping[str, str]:
        # Those of an image in a volume are not visible.
        return self._read(image) if image else {}


def _audited(made: clients.Clients, images: _Images | None,
             parsed_args: argparse.Namespace) -> Iterator[auditor.Audited]:
    """Read the servers on hosts, with their requests."""
    for page in made.servers.pages(parsed_args.hosts, parsed_args.project):
        for one in page:
            if not one.server.host:
                continue
            try:
                properties = images.of(one.image) if images else {}
            except exceptions.UnknownName:
                yield auditor.Audited(
                    one.server, None, 'glance does not have their image')
                continue
            yield auditor.Audited(one.server, constraints.Request(
                one.server.project, one.flavor, one.extra_specs, properties,
                one.zone))


def _check(name: str, default: str, request: constraints.Request,
           metadata: constraints.Metadata) -> Sequence[constraints.Rule]:
    """Return the rules for the host of a request.

    :param default: the zone of hosts that are in no zone
    """
    if name == audit.ZONE:
        return audit_rules.zone(request, metadata, default)
    flavor = api_requests.Flavor(
        request.flavor, vcpus=0, memory_mb=0, root_gb=0, ephemeral_gb=0,
        swap_mb=0, extra_specs=request.extra_specs)
    return rules.of(name, requested.Requested(
        flavor, request.image, project=request.project or ''), metadata)


def _aggregates(made: clients.Clients) -> source.Aggregates:
    """Read every aggregate; nova-api does not show since when."""
    members: dict[str, dict[str, source.Since]] = {}
    names = {}
    for one in made.nova.all_aggregates():
        names[one.uuid] = one.name
        for host in one.hosts:
            members.setdefault(host, {})[one.uuid] = None
    metadata = made.requests.metadata()
    return source.Aggregates(names, metadata, members)


def _row(one: audit.Misplacement) -> tuple[str, ...]:
    server, cause = one.server, one.cause
    return (server.uuid, server.name, server.host, server.project, one.asked,
            one.found, cause.text,
            render.moment(cause.since) if cause.since else '', one.command)
