# SPDX-License-Identifier: Apache-2.0
"""Read which aggregates providers are in, with few requests."""

from collections import abc
import math

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror import uuids


def read(placement: client.Client, used: frozenset[str],
         unused: frozenset[str], each: isolation.Each
         ) -> tuple[dict[str, frozenset[str]],
                    dict[str, exceptions.MirrorError]]:
    """Read by aggregate, or by provider if that takes fewer requests.

    :param used: aggregates that probably have providers
    :param unused: aggregates that probably have none: many share a request
    :returns: provider to aggregates, and the aggregates whose providers are
        not known, to the reason
    :raises MirrorError: placement does not answer
    """
    if (used or unused) and not placement.is_connected:
        # Otherwise each thread would ask keystone for a token.
        placement.probe()
    # Before ``_by_provider``, which sets it, after a failure to infinity.
    is_count_unknown = placement.provider_count == math.inf
    known = _by_provider(placement, used, unused, each)
    rare = sorted(unused - used - known.keys())
    chunks = [tuple(rare[start:start + client.MANY])
              for start in range(0, len(rare), client.MANY)]
    lists = _ask(placement, lambda chunk: placement.members(*chunk), chunks,
                 each)
    single: list[str] = []
    for chunk in chunks:
        # The providers of a list do not tell which of its aggregates they are
        # in. They are read one by one, like those of a list that failed.
        if chunk not in lists.results or lists.results[chunk]:
            single += chunk
    # Apart, because each bears some requests without an answer.
    likely = _ask(placement, placement.members,
                  sorted(used - known.keys()), each)
    others = _ask(placement, placement.members, single, each)
    memberships: dict[str, set[str]] = {}
    for aggregate, members in {
            **known, **likely.results, **others.results}.items():
        for provider in members:
            memberships.setdefault(provider, set()).add(aggregate)
    if is_count_unknown:
        # At least; the next read lists the providers if that may pay.
        placement.provider_count = len(memberships)
    return ({provider: frozenset(memberships[provider])
             for provider in sorted(memberships)},
            likely.failures | others.failures)


def _by_provider(placement: client.Client, used: frozenset[str],
                 unused: frozenset[str], each: isolation.Each
                 ) -> dict[str, set[str]]:
    """Return the providers of aggregates if this takes fewer requests.

    What it cannot tell is left out: all, after a request that failed.
    """
    by_aggregate = len(used) + math.ceil(len(unused - used) / client.MANY)
    # A request for each provider, and one for their list.
    if placement.provider_count + 1 >= by_aggregate:
        return {}
    providers = placement.providers()
    placement.provider_count = len(providers)
    if len(providers) + 1 >= by_aggregate:
        return {}
    answers = _ask(placement, placement.get, sorted(providers), each)
    if answers.failures:
        if any(not isinstance(error, exceptions.ProviderNotFound)
               for error in answers.failures.values()):
            # The next pass does not read all the others in vain.
            placement.provider_count = math.inf
        return {}
    members: dict[str, set[str]] = {uuid: set() for uuid in used | unused}
    unknown = set[str]()
    for provider, state in answers.results.items():
        for uuid in state.aggregates & members.keys():
            members[uuid].add(provider)
        unknown |= state.aggregates - members.keys()
    # Whether placement finds another spelling depends on its database.
    ambiguous = set(map(uuids.canonical, unknown))
    return {uuid: providers for uuid, providers in members.items()
            if uuids.canonical(uuid) not in ambiguous}


def _ask(placement: client.Client,
         request: abc.Callable[[isolation.Item], isolation.Result],
         items: list[isolation.Item], each: isolation.Each
         ) -> isolation.Answers[isolation.Item, isolation.Result]:
    """Send the requests; raise an error if not all of them were sent."""
    # A long answer takes time: each request has all of the deadline.
    answers = isolation.ask(request, items, each, placement.probe, math.inf)
    if answers.outage:
        raise answers.outage
    if answers.silence and answers.unasked(items):
        raise answers.silence
    return answers
