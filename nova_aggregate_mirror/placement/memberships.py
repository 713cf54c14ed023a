# SPDX-License-Identifier: Apache-2.0
"""Read which aggregates providers are in, with few requests."""

from collections import abc
import math
from typing import TypeVar

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror.placement import parallel

Item = TypeVar('Item', bound=abc.Hashable)


def read(placement: client.Client, used: frozenset[str],
         unused: frozenset[str], each: parallel.Each
         ) -> tuple[dict[str, frozenset[str]],
                    dict[str, exceptions.MirrorError]]:
    """Read the providers of aggregates.

    :param used: aggregates that probably have providers
    :param unused: aggregates that probably have none: many share a request
    :returns: provider to aggregates, and the aggregates whose providers are
        not known, to the reason
    :raises MirrorError: placement does not answer
    """
    likely, rare = sorted(used), sorted(unused - used)
    if (likely or rare) and not placement.is_connected:
        # Otherwise each thread would ask keystone for a token.
        placement.probe()
    first = _ask(placement, placement.members, likely, each)
    chunks = [tuple(rare[start:start + client.MANY])
              for start in range(0, len(rare), client.MANY)]
    lists = _ask(placement, lambda chunk: placement.members(*chunk), chunks,
                 each)
    # The providers of a list do not tell which of its aggregates they are in:
    # these are read one by one, like those of a list that failed.
    single: list[str] = []
    for chunk in chunks:
        if chunk not in lists.results or lists.results[chunk]:
            single += chunk
    second = _ask(placement, placement.members, single, each)
    memberships: dict[str, set[str]] = {}
    for aggregate, members in (first.results | second.results).items():
        for provider in members:
            memberships.setdefault(provider, set()).add(aggregate)
    return ({provider: frozenset(memberships[provider])
             for provider in sorted(memberships)},
            first.failures | second.failures)


def _ask(placement: client.Client,
         request: abc.Callable[[Item], frozenset[str]],
         items: list[Item], each: parallel.Each
         ) -> isolation.Answers[Item, frozenset[str]]:
    """Send the requests; raise an error if not all of them were sent."""
    # A long answer takes time: each request has all of the deadline.
    answers = isolation.ask(request, items, each, placement.probe, math.inf)
    if answers.outage:
        raise answers.outage
    if answers.silence and answers.unasked(items):
        raise answers.silence
    return answers
