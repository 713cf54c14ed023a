# SPDX-License-Identifier: Apache-2.0
"""Aggregates from rows of nova: with a UUID, or apart if they have none."""

from collections import abc
from typing import Any

from nova_aggregate_mirror import source
from nova_aggregate_mirror import uuids


def collect(rows: abc.Iterable[abc.Sequence[Any]]) -> source.Nova:
    """Return nova with aggregates and their member hosts, and nothing else.

    Every reader of nova uses it, so that a text that is no UUID is in no
    request to placement and in no ledger.

    :param rows: ID, UUID and name of an aggregate, and any number of members
    """
    names: dict[str, str] = {}
    members: dict[str, set[str]] = {}
    invalid: dict[tuple[str, int, str | None], set[str]] = {}
    for number, uuid, name, *hosts in rows:
        name = source.aggregate_name(name)
        if not uuids.is_uuid(uuid):
            of_aggregate = invalid.setdefault((name, number, uuid), set())
            of_aggregate.update(filter(None, hosts))
            continue
        names.setdefault(uuid, name)
        for host in filter(None, hosts):
            members.setdefault(host, set()).add(uuid)
    return source.Nova(
        names, {host: frozenset(of_host) for host, of_host in members.items()},
        nodes={}, invalid_aggregates=frozenset(
            source.HostAggregate(*aggregate, frozenset(hosts))
            for aggregate, hosts in invalid.items()))
