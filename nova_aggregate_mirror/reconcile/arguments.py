# SPDX-License-Identifier: Apache-2.0
"""What the commands of both clients read from their command lines."""

import argparse

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.reconcile import full_sync


def request(arguments: argparse.Namespace, prune: bool,
            max_removed_share: float) -> full_sync.Request:
    """What was asked for on the command line.

    :param prune: whether to remove what nova does not have
    :raises InvalidConfiguration: when that makes no sense
    """
    if arguments.force and not prune:
        raise exceptions.InvalidConfiguration(
            '--force is about what --prune removes: add --prune')
    share: float | None = None
    if prune:
        share = full_sync.WHATEVER if arguments.force else max_removed_share
    return full_sync.Request(
        share, write=not arguments.dry_run, hosts=frozenset(arguments.hosts),
        aggregates=frozenset(arguments.aggregates))


def workers(text: str) -> int:
    """How many requests at once, for an argument parser."""
    number = int(text)
    if not 1 <= number <= 64:
        raise argparse.ArgumentTypeError('%s is not from 1 to 64' % text)
    return number
