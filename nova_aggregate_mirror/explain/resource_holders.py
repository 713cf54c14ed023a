# SPDX-License-Identifier: Apache-2.0
"""Holders of the resources of hosts that have too few of them left."""

from collections import abc
import dataclasses

from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import database_servers

WAIT = ('wait until it has ended; see "openstack server migration list '
        '--server %s"')
STALE = ('check it with "nova-manage placement audit --verbose '
         '--resource_provider %s", which removes it with --delete; if it is '
         'not listed, ask its owner: "openstack resource provider allocation '
         'show %s"')
"""Nova's audit skips an allocation without VCPU, memory, disk or the like."""
MAX_NAMED = 3


@dataclasses.dataclass(frozen=True)
class Holder:
    """A consumer of the resources of a host, and what frees them."""

    subject: str
    """Names it, such as ``server web-1``."""
    amounts: abc.Mapping[str, int]
    """By resource class."""
    step: str = ''
    """Empty for a server of the host, which uses what it holds."""


Holders = abc.Sequence[Holder]


def read(reader: candidates.CandidateReader, for_each: isolation.ForEach,
         servers: database_servers.DatabaseServers,
         scarce: abc.Mapping[str, str], hosts: abc.Mapping[str, str]
         ) -> abc.Mapping[str, Holders]:
    """Read who holds the resources of providers: one request for each.

    :param scarce: provider with too few resources to its compute node
    :param hosts: compute node to the name of its host
    """
    responses = for_each(reader.allocations, scarce)
    consumers = servers.consumers(frozenset().union(*responses))
    holders: dict[str, list[Holder]] = {}
    for provider, allocations in zip(scarce, responses, strict=True):
        host, holders[provider] = hosts.get(scarce[provider], ''), []
        for uuid, amounts in allocations.items():
            subject, step = _subject_and_step(
                uuid, consumers.get(uuid), provider, host, servers.cells_down)
            holders[provider].append(Holder(subject, amounts, step))
    return holders


def largest(holders: Holders, resource_class: str) -> Holders:
    """Return the holders of a class to name: first those with a step."""
    having = [holder for holder in holders if resource_class in holder.amounts]
    having.sort(key=lambda holder: -holder.amounts[resource_class])
    having.sort(key=lambda holder: not holder.step)
    return having[:MAX_NAMED]


def _subject_and_step(
        uuid: str, consumer: database_servers.Consumer | None, provider: str,
        host: str, cells_down: source.Down) -> tuple[str, str]:
    stale = STALE % (provider, uuid)
    if consumer is None and cells_down:
        return '%s, which may be in a cell that did not answer' % uuid, ''
    if consumer is None:
        return '%s, which is no server or migration of nova' % uuid, stale
    wait = WAIT % consumer.server
    if consumer.move:
        subject = 'the %s of server %s' % (consumer.move, consumer.server)
        if consumer.status == 'finished':
            return subject, (
                'confirm or revert it: "openstack server resize confirm %s", '
                'or revert' % consumer.server)
        subject += ' (%s)' % consumer.status
        return subject, '%s; if it has, %s' % (wait, stale)
    subject = 'server %s (%s)' % (consumer.name, consumer.server)
    if consumer.host == host:
        return subject, ''
    subject += ', which is on %s' % (
        'host ' + consumer.host if consumer.host else 'no host')
    if consumer.task:
        subject += ' (%s)' % consumer.task
        return subject, wait if consumer.host else ''
    if host in consumer.evacuated:
        return subject + ' since it was evacuated', (
            'start nova-compute on %s: it removes what evacuated servers have '
            'left there' % explanation.HOST)
    return subject, stale
