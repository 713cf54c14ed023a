# SPDX-License-Identifier: Apache-2.0
"""Command line arguments that both clients share."""

import argparse
from collections import abc

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.reconcile import full_sync

LONGEST = 86400
"""Maximum number of seconds to wait: a day."""


def add_foreign(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--foreign', action='store_true',
        help='also list the aggregates of compute nodes that are not nova\'s; '
             'one more request per provider')


def add_scope(parser: argparse.ArgumentParser, aggregate: str, host: str,
              given: str) -> None:
    parser.add_argument(
        '--aggregate', action='append', default=[], metavar=aggregate,
        dest='aggregates',
        help='only associations with this aggregate (%s); may be repeated'
             % given)
    parser.add_argument(
        # Nova has an option named host.
        '--host', action='append', default=[], metavar=host, dest='hosts',
        help='only the compute nodes of this host; may be repeated')


def add_servers(parser: argparse.ArgumentParser, zone: str, host: str,
                project: str) -> None:
    parser.add_argument(
        '--zone', metavar=zone,
        help='only servers that request this availability zone, or are on '
             'its hosts')
    parser.add_argument(
        '--host', action='append', default=[], metavar=host, dest='hosts',
        help='only servers on this host; may be repeated')
    parser.add_argument('--project', metavar=project,
                        help='only servers of this project (name or ID)')


def request(arguments: argparse.Namespace, prune: bool,
            max_removed_share: float) -> full_sync.Request:
    """Return the request that the command line describes.

    :raises InvalidConfiguration: for --force without prune
    """
    if arguments.force and not prune:
        raise exceptions.InvalidConfiguration(
            '--force only applies to removals: add --prune')
    share = full_sync.UNLIMITED if arguments.force else max_removed_share
    return full_sync.Request(
        share if prune else None, write=not arguments.dry_run,
        hosts=frozenset(arguments.hosts),
        aggregates=frozenset(arguments.aggregates), foreign=arguments.foreign)


def number(most: int) -> abc.Callable[[str], int]:
    """Return an argument type: the integers from 1 to a maximum."""
    # Argparse says "invalid number value", by the name of the function.
    def number(text: str) -> int:
        value = int(text)
        if not 1 <= value <= most:
            raise argparse.ArgumentTypeError(
                '%s is not between 1 and %d' % (text, most))
        return value

    return number


def pair(text: str) -> tuple[str, str]:
    """Split KEY=VALUE; the value may be empty."""
    name, equals, value = text.partition('=')
    if not name or not equals:
        raise argparse.ArgumentTypeError('%r is not KEY=VALUE' % text)
    return name, value
