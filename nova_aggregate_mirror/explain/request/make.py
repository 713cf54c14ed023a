# SPDX-License-Identifier: Apache-2.0
"""Requests by the arguments of the command."""

import argparse
from collections import abc
from typing import Any
from typing import Protocol

from oslo_config import cfg

from nova_aggregate_mirror.explain import request as requests
from nova_aggregate_mirror.explain.request import descriptions
from nova_aggregate_mirror.explain.request import stored
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import client


class Names(Protocol):
    """Look-up of IDs by name; raises UnknownName unless one has it."""

    def server(self, name: str) -> str:
        """Return the ID of a server; of an empty name, an empty one."""

    def project(self, name: str) -> str:
        """Return the ID of a project, like those below."""

    def network(self, name: str) -> str:
        """Return the ID of a network."""

    def image(self, name: str) -> str:
        """Return the ID of an image."""

    def hints(self, pairs: abc.Iterable[tuple[str, str]]
              ) -> dict[str, list[str]]:
        """Return the values of each hint, servers and groups as IDs."""


def of_arguments(conf: cfg.ConfigOpts, args: argparse.Namespace, context: Any,
                 placement: client.Client, names: Names
                 ) -> requests.SchedulingRequest:
    """Return the request of a described server, or of an existing one.

    :param args: of ``cmd/explain_arguments``
    """
    server, project = names.server(args.server), names.project(args.project)
    networks = [names.network(network) for network in args.networks]
    image = _image(conf, names.image(args.image), args.properties)
    hints = names.hints(args.hints)
    if server:
        return stored.of_server(
            context, placement, server, args.operation, args.new_flavor,
            image if args.image or args.properties else None, args.zone,
            networks, args.ports)
    request = descriptions.of_description(
        context, descriptions.ServerDescription(
            args.flavor, image, args.volume, project, args.zone, networks,
            args.ports, hints, args.count))
    request.tenant = args.project
    return request


def _image(conf: cfg.ConfigOpts, identifier: str,
           properties: abc.Sequence[tuple[str, str]]) -> abc.Mapping[str, Any]:
    """Return the image, if any, with these properties added or replaced."""
    if not identifier:
        return {'properties': dict(properties)}
    with deadline.within(conf.aggregate_mirror.request_timeout):
        image = resources.read_image(conf, identifier)
    return {**image, 'properties': {**image['properties'], **dict(properties)}}
