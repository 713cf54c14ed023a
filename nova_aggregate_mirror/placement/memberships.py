# SPDX-License-Identifier: Apache-2.0
"""Read which aggregates providers are in, with few requests."""

from collections import abc
import dataclasses
import math
from typing import TypeVar

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror.placement import responses
from nova_aggregate_mirror import uuids

Errors = abc.Mapping[str, exceptions.MirrorError]
Item = TypeVar('Item', bound=abc.Hashable)
Result = TypeVar('Result')


@dataclasses.dataclass(frozen=True)
class Memberships:
    """Provider to aggregates, as far as both could be read."""

    current: abc.Mapping[str, frozenset[str]]
    """May include providers that are in none of the aggregates."""
    unread_aggregates: Errors = dataclasses.field(default_factory=dict)
    """Aggregates whose providers are not known."""
    unread_providers: Errors = dataclasses.field(default_factory=dict)
    """Providers whose aggregates are not known."""
    denied: frozenset[str] = frozenset()
    """Providers that were listed, and then did not exist."""


def read(placement: client.Client, used: frozenset[str],
         unused: frozenset[str], each: parallel.Each) -> Memberships:
    """Read by aggregate, or by provider if that takes fewer requests.

    :param used: aggregates that probably have providers
    :param unused: aggregates that probably have none: many share a request
    :raises MirrorError: placement does not answer
    """
    likely, rare = sorted(used), sorted(unused - used)
    if (likely or rare) and not placement.is_connected:
        # Otherwise each thread would ask keystone for a token.
        placement.probe()
    chunks = [tuple(rare[start:start + client.MANY])
              for start in range(0, len(rare), client.MANY)]
    requests, count = len(likely) + len(chunks), placement.provider_count
    # A request for each provider, and one for their list.
    if count is not None and count + 1 < requests:
        providers = placement.providers()
        if len(providers) + 1 < requests:
            return _by_provider(placement, providers, {*likely, *rare}, each)
    answer = _by_aggregate(placement, likely, chunks, each)
    if placement.provider_count is None:
        # A lower bound: the next read lists the providers if that may pay.
        placement.provider_count = len(answer.current)
    return answer


def _by_provider(placement: client.Client, providers: abc.Collection[str],
                 wanted: abc.Set[str], each: parallel.Each) -> Memberships:
    answers = _ask(placement, placement.get, sorted(providers), each)
    denied = frozenset(
        provider for provider, error in answers.failures.items()
        if isinstance(error, exceptions.ProviderNotFound))
    memberships = {provider: set(state.aggregates & wanted)
                   for provider, state in answers.results.items()}
    # Whether placement finds another spelling depends on its database.
    misspelled = _ask(placement, placement.members, _misspelled(
        wanted, answers.results.values()), each)
    _add_members(memberships, misspelled.results)
    unread = {provider: error for provider, error in answers.failures.items()
              if provider not in denied}
    return Memberships(
        _frozen(memberships), unread_aggregates=misspelled.failures,
        unread_providers=unread, denied=denied)


def _misspelled(wanted: abc.Set[str], states: abc.Iterable[responses.Provider]
                ) -> list[str]:
    """Return the aggregates that a provider has in another spelling."""
    present = frozenset[str]().union(*(state.aggregates for state in states))
    others = set(map(uuids.canonical, present - wanted))
    return sorted(uuid for uuid in wanted if uuids.canonical(uuid) in others)


def _by_aggregate(placement: client.Client, likely: list[str],
                  chunks: list[tuple[str, ...]], each: parallel.Each
                  ) -> Memberships:
    first = _ask(placement, placement.members, likely, each)
    lists = _ask(placement, lambda chunk: placement.members(*chunk), chunks,
                 each)
    # The providers of a list do not tell which of its aggregates they are in.
    inhabited = {chunk for chunk, members in lists.results.items() if members}
    # So these are read one by one, like those of a list that failed.
    single: list[str] = []
    for chunk in chunks:
        if chunk in inhabited or chunk in lists.failures:
            single += chunk
    second = _ask(placement, placement.members, single, each)
    memberships: dict[str, set[str]] = {}
    _add_members(memberships, {**first.results, **second.results})
    return Memberships(
        _frozen(memberships),
        unread_aggregates={**first.failures, **second.failures})


def _add_members(memberships: dict[str, set[str]],
                 members_of: abc.Mapping[str, frozenset[str]]) -> None:
    for aggregate, members in members_of.items():
        for provider in members:
            memberships.setdefault(provider, set()).add(aggregate)


def _frozen(memberships: abc.Mapping[str, set[str]]
            ) -> dict[str, frozenset[str]]:
    return {provider: frozenset(memberships[provider])
            for provider in sorted(memberships)}


def _ask(placement: client.Client, request: abc.Callable[[Item], Result],
         items: abc.Iterable[Item], each: parallel.Each
         ) -> isolation.Answers[Item, Result]:
    """Send the requests; raise an error if not all of them were sent."""
    items = list(items)
    # A long answer takes time: each request has all of the deadline.
    answers = isolation.ask(request, items, each, placement.probe, math.inf)
    if answers.outage:
        raise answers.outage
    if answers.silence and answers.unasked(items):
        raise answers.silence
    return answers
