# SPDX-License-Identifier: Apache-2.0
"""IDs of resources that a command line gives by name or ID."""

import argparse
from collections import abc
from typing import Any
import urllib.parse

from oslo_config import cfg
from oslo_utils import uuidutils

from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.console import cli
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.http import transport
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import problems


def resource(build: abc.Callable[[], Any], party: errors.Parties,
             kind: resources.Kind, name: str, seconds: float) -> str:
    """Return the ID of a resource of a service; empty for an empty name.

    An ID that cannot be looked up is returned after a line on standard error.

    :raises UnknownName: no or several resources have it, or no look-up works
    """
    if not name:
        return name
    try:
        with deadline.within(seconds):
            ids = identifiers(build, party, kind, name)
    except exceptions.MirrorError as exc:
        if not uuidutils.is_uuid_like(name):
            raise exceptions.UnknownName(
                '%s; give the ID instead' % exc) from exc
        cli.tell(['%s is taken as the ID of a %s: %s' % (
            name, kind.noun, exc)])
        return name
    return single(kind.service, kind.noun, name, ids)


@transport.repeating
def identifiers(build: abc.Callable[[], Any], party: errors.Parties,
                kind: resources.Kind, name: str) -> list[str]:
    """Return the IDs of the resources with a name, which may be an ID."""
    call = errors.Call(party, 'looking up %s %s' % (kind.noun, name))
    with errors.translated(call):
        adapter = build()
        by_id = '%s/%s' % (kind.path, urllib.parse.quote(name, safe=''))
        if resources.get(adapter, call, by_id, 404).ok:
            # The name is an ID.
            return [name]
        by_name = '%s?%s' % (kind.path, urllib.parse.urlencode({'name': name}))
        response = resources.get(adapter, call, by_name)
        with errors.parsing():
            entries = response.json()[kind.noun + 's']
            # A database may compare names without case.
            return sorted(resource['id'] for resource in entries
                          if resource['name'] == name)


def single(service: str, noun: str, name: str, ids: abc.Sequence[str],
           options: str = '', unread: str = '') -> str:
    """Return the only ID of those with a name.

    :param options: those of the command that lists the names
    :param unread: end of the error if there may be others
    :raises UnknownName: none or several have the name
    """
    if not ids:
        listing = 'openstack %s list%s' % (noun, options)
        raise exceptions.UnknownName('%s has no %s %s; see "%s"%s' % (
            service, noun, name, listing, unread))
    if len(ids) > 1:
        raise exceptions.UnknownName(
            '%s has %d %ss with the name %s; give the ID of one: %s' % (
                service, len(ids), noun, name, ', '.join(ids)))
    return ids[0]


def unknown_names(zone: str, zones: abc.Collection[str],
                  hosts: abc.Collection[str], totals: auditor.Totals,
                  read: abc.Callable[[], abc.Collection[str]]
                  ) -> list[problems.Problem]:
    """Return a problem for each name that neither nova nor a server has.

    :param read: reads nova's hosts
    """
    texts = []
    if zone and not totals.servers and zone not in zones:
        zone_names = plurals.some(zones) or 'none'
        texts.append('nova has no availability zone %s, and no server '
                     'requests it; nova has %s' % (zone, zone_names))
    # A host that nova deleted may have servers.
    empty = set(hosts).difference(totals.hosts)
    existing = read() if empty else ()
    host_names = plurals.some(existing) or 'none'
    for host in sorted(empty.difference(existing)):
        texts.append('nova has no host %s, and no server is on it; nova has '
                     '%s' % (host, host_names))
    return [problems.Problem('', text, status=exit_status.COULD_NOT_RUN)
            for text in texts]


class Identifiers:
    """Look-up of IDs; raises UnknownName unless one resource has the name."""

    def __init__(self, conf: cfg.ConfigOpts, servers: Any) -> None:
        """Look up servers and groups with a ``DatabaseServers``."""
        self._conf, self._servers = conf, servers

    def look_up(self, args: argparse.Namespace) -> None:
        """Replace names in the arguments of ``scheduling explain``."""
        args.server = self.server(args.server)
        # As it was given, and as the ID.
        args.tenant = args.project
        args.project = self.project(args.project)
        args.networks = [self._resource(resources.NETWORK, name)
                         for name in args.networks]
        # The image is read by its ID later, which finds whether it exists.
        if not uuidutils.is_uuid_like(args.image):
            args.image = self._resource(resources.IMAGE, args.image)
        args.hints = self.hints(args.hints)

    def project(self, name: str) -> str:
        return self._resource(resources.PROJECT, name)

    def server(self, name: str) -> str:
        # The request of the server is read by its ID later, too.
        if not name or uuidutils.is_uuid_like(name):
            return name
        uuids = self._servers.servers_named(name)
        down = ''.join('; %s' % problem for problem in problems.of_cells(
            self._servers.cells_down, 'it may have the server'))
        if down and uuids:
            cli.tell(['Server %s is %s%s' % (name, ', '.join(uuids), down)])
        return single('nova', 'server', name, uuids, ' --all-projects', down)

    def hints(self, pairs: abc.Iterable[tuple[str, str]]
              ) -> dict[str, list[str]]:
        """Return the values of each hint: servers and groups as IDs."""
        convert = {'same_host': self.server, 'different_host': self.server,
                   'group': self._server_group}
        hints: dict[str, list[str]] = {}
        for hint, value in pairs:
            hints.setdefault(hint, []).append(convert.get(hint, str)(value))
        return hints

    def _server_group(self, name: str) -> str:
        if uuidutils.is_uuid_like(name):
            return name
        uuids = self._servers.groups_named(name)
        return single('nova', 'server group', name, uuids, ' --all-projects')

    def _resource(self, kind: resources.Kind, name: str) -> str:
        return resource(
            lambda: resources.adapter(self._conf, kind),
            resources.party(self._conf, kind), kind, name,
            self._conf.aggregate_mirror.request_timeout)
