# SPDX-License-Identifier: Apache-2.0
"""Holders of the resources of hosts that have too few of them left."""

from collections import abc
import dataclasses

from nova_aggregate_mirror.explain import candidates
from nova_aggregate_mirror.explain import explanation
from nova_aggregate_mirror.placement import parallel
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import database_servers

# Nova's audit skips an allocation that has none of these classes of resources,
# because another service made it; as in PlacementCommands.
AUDITED = frozenset({
    'VCPU', 'MEMORY_MB', 'DISK_GB', 'VGPU', 'NET_BW_EGR_KILOBIT_PER_SEC',
    'NET_BW_IGR_KILOBIT_PER_SEC', 'PCPU', 'MEM_ENCRYPTION_CONTEXT'})
# Statuses of migrations that hold nothing any more; nova's audit removes what
# they have left.
ENDED = frozenset({'error', 'failed', 'cancelled', 'completed', 'done',
                   'confirmed', 'reverted'})
WAIT = ('wait until it has ended; see "openstack server migration list '
        '--server %s"')
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


def read(reader: candidates.CandidateReader, for_each: parallel.Each,
         servers: database_servers.DatabaseServers,
         scarce: abc.Mapping[str, abc.Collection[str]],
         hosts: abc.Mapping[str, str]) -> abc.Mapping[str, Holders]:
    """Read who holds the resources of providers: one request for each.

    :param scarce: compute node to those of its providers with too few
        resources: itself, or others of its tree
    :param hosts: compute node to the name of its host
    """
    providers = sorted(frozenset().union(*scarce.values()))
    allocations = dict(zip(
        providers, for_each(reader.allocations, providers), strict=True))
    consumers = servers.consumers(frozenset().union(*allocations.values()))
    holders: dict[str, list[Holder]] = {node: [] for node in scarce}
    for node, node_providers in scarce.items():
        for provider in sorted(node_providers):
            holders[node] += [
                _holder(consumer, amounts, consumers.get(consumer), provider,
                        hosts.get(node, ''), servers.cells_down)
                for consumer, amounts in allocations[provider].items()]
    return holders


def largest(holders: Holders, resource_class: str) -> Holders:
    """Return the holders of a class to name: first those with a step."""
    having = [holder for holder in holders if resource_class in holder.amounts]
    having.sort(key=lambda holder: -holder.amounts[resource_class])
    having.sort(key=lambda holder: not holder.step)
    return having[:MAX_NAMED]


def _holder(uuid: str, amounts: abc.Mapping[str, int],
            consumer: database_servers.Consumer | None, provider: str,
            host: str, cells_down: source.Down) -> Holder:
    stale_step = (
        'check it with "nova-manage placement audit --verbose '
        '--resource_provider %s"; with --delete it is removed' % provider
        if AUDITED.intersection(amounts) else 'ask the owner: "openstack '
        'resource provider allocation show %s"' % uuid)
    if consumer is None and cells_down:
        return Holder('%s, which may be in a cell that did not answer' % uuid,
                      amounts)
    if consumer is None:
        return Holder('%s, which is no server or migration of nova' % uuid,
                      amounts, stale_step)
    if consumer.move:
        return _move_holder(consumer, amounts, stale_step)
    return _server_holder(consumer, amounts, stale_step, host)


def _move_holder(consumer: database_servers.Consumer,
                 amounts: abc.Mapping[str, int], stale_step: str) -> Holder:
    """Return a migration that holds the old host of its server."""
    subject = 'the %s of server %s' % (consumer.move, consumer.server)
    if consumer.status == 'finished':
        return Holder(
            subject, amounts, 'confirm or revert it: "openstack server '
            'resize confirm %s", or revert' % consumer.server)
    return Holder(
        '%s (%s)' % (subject, consumer.status), amounts,
        stale_step if consumer.status in ENDED else WAIT % consumer.server)


def _server_holder(consumer: database_servers.Consumer,
                   amounts: abc.Mapping[str, int], stale_step: str,
                   host: str) -> Holder:
    """Return a server, which may be on another host."""
    subject = 'server %s (%s)' % (consumer.name, consumer.server)
    if consumer.host == host:
        return Holder(subject, amounts)
    subject += ', which is on %s' % (
        'host ' + consumer.host if consumer.host else 'no host')
    if consumer.task:
        return Holder('%s (%s)' % (subject, consumer.task), amounts,
                      WAIT % consumer.server if consumer.host else '')
    if host in consumer.evacuated:
        return Holder(
            subject + ' since it was evacuated', amounts, 'start nova-compute '
            'on %s: it removes what evacuated servers have left there'
            % explanation.HOST)
    return Holder(subject, amounts, stale_step)
