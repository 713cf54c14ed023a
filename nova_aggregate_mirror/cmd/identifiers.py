# SPDX-License-Identifier: Apache-2.0
"""IDs of resources that arguments of ``-manage`` give by name or ID."""

import argparse
from collections import abc
import sys

from oslo_config import cfg
from oslo_utils import uuidutils

from nova_aggregate_mirror.cmd import components
from nova_aggregate_mirror.console import lookup
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.reconcile import problems


class Identifiers:
    """Look-up of IDs; raises UnknownName unless one resource has the name."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._servers = components.servers()

    def look_up(self, args: argparse.Namespace) -> None:
        """Replace names in the arguments of ``scheduling explain``."""
        args.server = self.server(args.server)
        args.tenant, args.project = args.project, self.project(args.project)
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
            print('Server %s is %s%s' % (name, ', '.join(uuids), down),
                  file=sys.stderr)
        return lookup.single('nova', 'server', name, uuids,
                             'openstack server list --all-projects', down)

    def hints(self, pairs: abc.Iterable[tuple[str, str]]
              ) -> dict[str, list[str]]:
        """Return the values of each hint: servers and groups as IDs."""
        convert = {'same_host': self.server, 'different_host': self.server,
                   'group': self._server_group}
        hints: dict[str, list[str]] = {}
        for hint, value in pairs:
            hints.setdefault(hint, []).append(
                convert[hint](value) if hint in convert else value)
        return hints

    def _server_group(self, name: str) -> str:
        if uuidutils.is_uuid_like(name):
            return name
        return lookup.single(
            'nova', 'server group', name, self._servers.groups_named(name),
            'openstack server group list --all-projects')

    def _resource(self, kind: resources.Kind, name: str) -> str:
        return lookup.resource(
            lambda: resources.adapter(self._conf, kind),
            resources.party(self._conf, kind), kind, name,
            self._conf.aggregate_mirror.request_timeout)
