# SPDX-License-Identifier: Apache-2.0
"""Explain which hosts nova-scheduler can choose for a server, and why.

The request is scheduled as nova-scheduler would schedule it now, with nova's
own request filters, query to placement, host filters and weighers. Nothing is
claimed and nothing is written, and nova-scheduler need not run. Run it with
the configuration of nova-scheduler, where nova-scheduler is installed.

The first line is the summary. Then each condition follows with the number of
compute nodes that meet it and all conditions above it, then each host with the
first condition that it does not meet. Placement itself is asked for each
condition, with three more requests. Inventories are read for at most 20 hosts
per resource class; --host selects others.

  # why is this server in ERROR?
  %(prog)s --server 1d9b1dca-0b0a-4d8a-8b5f-2a4e9a3c9a55
  # where could it be migrated to?
  %(prog)s --server 1d9b1dca-0b0a-4d8a-8b5f-2a4e9a3c9a55 --for migrate
  # is there room for such a server?
  %(prog)s --flavor m1.large --zone az-1 --project 5d1f8f9ba1934c4b

Exit status:
    0  a host is left; with --count, one for each server
    1  no host is left, or too few
  130  interrupted by Ctrl-C
  255  the request could not be explained: nova, placement or the
       configuration could not be read, or there is no such server or flavor
"""

import argparse
from collections.abc import Mapping
from collections.abc import Sequence
import sys
import time
from typing import Any

from oslo_config import cfg
from oslo_utils import uuidutils

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import explanation
from nova_aggregate_mirror.explanation import render
from nova_aggregate_mirror.http import images
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror.reconcile import arguments
from nova_aggregate_mirror.source import database

HOST, NO_HOST = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        '--server', type=_uuid, metavar='UUID',
        help='the request of this server as nova has stored it, also of a '
             'server in ERROR')
    what.add_argument(
        '--flavor', metavar='FLAVOR',
        help='the request of a server with this flavor, given by name or ID')
    parser.add_argument(
        '--for', nargs='+', default=['create'], metavar='OPERATION',
        dest='operation',
        help='with --server: its operation to explain, one of %s; resize is '
             'followed by the new flavor; the default is create'
             % ', '.join(explanation.OPERATIONS))
    parser.add_argument(
        '--image', metavar='ID', help='with --flavor: the image, read from '
        'glance with the credentials of [placement]')
    parser.add_argument(
        '--image-property', action='append', default=[], type=_pair,
        metavar='KEY=VALUE', dest='properties',
        help='with --flavor: a property of the image; may be repeated')
    parser.add_argument(
        '--volume', action='store_true',
        help='with --flavor: the server boots from a volume, and the root '
             'disk of the flavor is not requested')
    parser.add_argument(
        '--project', default='', metavar='ID',
        help='with --flavor: ID of the project')
    parser.add_argument(
        '--zone', default='', metavar='ZONE',
        help='with --flavor: the availability zone')
    parser.add_argument(
        '--network', action='append', default=[], metavar='ID',
        dest='networks',
        help='a network, which replaces those of the server; may be repeated')
    parser.add_argument(
        '--port', action='append', default=[], metavar='ID', dest='ports',
        help='a port, which replaces those of the server; may be repeated')
    parser.add_argument(
        '--hint', action='append', default=[], type=_pair,
        metavar='KEY=VALUE', dest='hints',
        help='with --flavor: a scheduler hint; may be repeated')
    parser.add_argument(
        '--count', type=arguments.servers, default=1, metavar='N',
        help='with --flavor: number of servers that are requested at once')
    parser.add_argument(
        '--host', action='append', default=[], metavar='HOST', dest='hosts',
        help='explain this host only; may be repeated')
    parser.add_argument(
        '--workers', type=arguments.workers, default=4, metavar='N',
        help='number of concurrent placement requests, from 1 to 64; the '
             'default is 4')
    parser.add_argument(
        '--format', choices=('table', 'json'), default='table',
        help='output format: table (the default) or json')


def run(conf: cfg.ConfigOpts, nova: database.DatabaseSource,
        journal: rows.Rows | None) -> int:
    """Explain the request of the command line; return the exit status.

    :param journal: None if there is no journal
    :raises MirrorError: the request could not be explained
    """
    try:
        answer = _explain(conf, nova, journal)
    except KeyboardInterrupt:
        print('Interrupted', file=sys.stderr)
        return exit_status.INTERRUPTED
    print(render.document(answer) if conf.command.format == 'json'
          else render.text(answer))
    return HOST if answer.possible else NO_HOST


def _explain(conf: cfg.ConfigOpts, nova: database.DatabaseSource,
             journal: rows.Rows | None) -> explanation.Answer:
    asked = conf.command
    operation, flavor = check(asked)
    placement = client.Client(conf)
    placement.check_credentials()
    # This fails in time if a database is unavailable.
    known = nova.read_all()
    unknown = sorted(set(asked.hosts) - set(known.nodes.values()))
    if unknown:
        raise exceptions.UnknownName(
            'nova has no compute node of host %s; see "openstack compute '
            'service list --service nova-compute"%s' % (
                ', '.join(unknown), ''.join(
                    '; cell %s did not answer: %s' % each
                    for each in sorted(known.cells_down.items()))))
    pending, notes = _pending(journal)
    # Nova's scheduler takes seconds to import, and other commands need none.
    from nova_aggregate_mirror.scheduler import loading
    context = loading.prepare(conf)
    from nova_aggregate_mirror.scheduler import explain
    from nova_aggregate_mirror.scheduler import requests
    with loading.translated():
        if asked.server:
            request = requests.of_server(
                context, asked.server, operation, flavor, asked.networks,
                asked.ports)
        else:
            request = requests.described(context, requests.Description(
                asked.flavor, _image(conf, asked), asked.volume,
                asked.project, asked.zone, asked.networks, asked.ports,
                _lists(asked.hints), asked.count))
        return explain.explain(
            explain.Inputs(context, known, placement, pending,
                           parallel.Workers(asked.workers).each),
            requests.Prepared(request.spec, request.about,
                              [*request.notes, *notes]), asked.hosts)


def check(asked: argparse.Namespace) -> tuple[str, str]:
    """Check arguments that depend on each other.

    :returns: the operation, and the flavor of a resize
    :raises InvalidConfiguration: names the argument
    """
    operation, *more = asked.operation
    if operation not in explanation.OPERATIONS:
        raise exceptions.InvalidConfiguration(
            '--for %s is not an operation: use one of %s' % (
                operation, ', '.join(explanation.OPERATIONS)))
    if len(more) != (operation == 'resize'):
        raise exceptions.InvalidConfiguration(
            '--for resize needs the new flavor, as in "--for resize m1.large"'
            if operation == 'resize' else
            '--for %s takes no further value: %s' % (
                operation, ' '.join(more)))
    described = ('image', 'properties', 'volume', 'project', 'zone', 'hints')
    wrong = [name for name in described if getattr(asked, name)]
    if asked.server and wrong:
        raise exceptions.InvalidConfiguration(
            '--%s applies to --flavor only: a server has its own' %
            wrong[0].replace('properties', 'image-property').replace(
                'hints', 'hint'))
    if asked.server and asked.count > 1:
        raise exceptions.InvalidConfiguration(
            '--count applies to --flavor only')
    if asked.flavor and asked.operation != ['create']:
        raise exceptions.InvalidConfiguration(
            '--for %s needs --server' % operation)
    return operation, more[0] if more else ''


def _image(conf: cfg.ConfigOpts, asked: argparse.Namespace
           ) -> Mapping[str, Any]:
    """Return what the arguments tell about the image."""
    properties = dict(asked.properties)
    if asked.image:
        found = images.read(conf, asked.image)
        return {**found, 'properties': {**found['properties'], **properties}}
    return {'properties': properties}


def _pending(journal: rows.Rows | None) -> tuple[dict[str, float], list[str]]:
    """Return host to the age of its oldest row, and notes."""
    if journal is None:
        return {}, []
    try:
        found: dict[str, float] = {}
        for row in journal.all():
            if row.mirrored_at is None:
                found.setdefault(row.dirty.host, time.time() - row.created_at)
        return found, []
    except exceptions.JournalUnavailable as exc:
        return {}, ['What is pending in the journal is not known: %s' % exc]


def _lists(pairs: Sequence[tuple[str, str]]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _uuid(text: str) -> str:
    if not uuidutils.is_uuid_like(text):
        raise argparse.ArgumentTypeError('%r is not a UUID' % text)
    return text


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition('=')
    if not name or not equals:
        raise argparse.ArgumentTypeError('%r is not KEY=VALUE' % text)
    return name, value
