# SPDX-License-Identifier: Apache-2.0
"""Reads of placement and nova, for their comparison.

Long because what placement has decides what is read of nova, and vice versa.
"""

from collections import abc
import contextlib
import math
import shlex

from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import reconcile
from nova_aggregate_mirror.reconcile import comparison
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror import source
from nova_aggregate_mirror import uuids

LOG = logging.getLogger(__name__)
LOOKED_UP = 20
"""Missing providers whose names are looked up: a request each."""
REPLACE = ('run "openstack resource provider set --name {name} {other}", '
           'which is no compute node\'s, and restart nova-compute on that '
           'host; for each server of "openstack resource provider show '
           '--allocations {other}" then run "nova-manage placement '
           'heal_allocations --force --instance SERVER" and, for what is no '
           'server, "nova-manage placement audit --delete --resource_provider '
           '{other}"; when it lists none, run "openstack resource provider '
           'delete {other}"')
ANOTHER = ('if that is nova\'s placement, correct its [placement_database] '
           'connection or nova\'s [api_database] connection, whichever has '
           'the database of another cloud; otherwise ')
REBUILT = ('if that is nova\'s placement, correct [placement_database] '
           'connection in placement.conf; if it is right, restore that '
           'database from a backup, or without one restart nova-compute on '
           'each compute host, then run "nova-manage placement '
           'heal_allocations" for the servers; otherwise ')
Context = provider_writes.Context
Errors = outcome.Errors
Selection = tuple[frozenset[str], frozenset[str], frozenset[str]]
"""UUIDs of aggregates: those with hosts, others of nova or the ledger, and
those that were requested; none means all."""


def select(context: Context, requested: frozenset[str]) -> Selection:
    """Return the aggregates to query in placement.

    :param requested: names, or UUIDs, which may be of deleted aggregates
    :raises UnknownName: when no such aggregate exists or existed
    """
    ledgered = frozenset(context.ledger.entries())
    aggregates = context.nova.aggregates()
    only = requested & (aggregates.keys() | ledgered)
    only |= {uuid for uuid, name in aggregates.items() if name in requested}
    if unknown := sorted(requested.difference(only, aggregates.values())):
        existing = plurals.some(aggregates.values()) or 'none'
        raise exceptions.UnknownName(
            'nova has no aggregate %s with a UUID, current or deleted; it has '
            '%s' % (', '.join(unknown), existing))
    used = context.nova.with_hosts()
    every = ledgered.union(aggregates, used)
    if only:
        used, every = used & only, every & only
    return used, every - used, only


def read(context: Context, selection: Selection,
         hosts: frozenset[str] = frozenset()) -> comparison.Comparison:
    """Read placement, then nova.

    :raises MirrorError: placement or nova could not be read, the placement
        belongs to another nova, or nova has no such host
    """
    with_hosts, without_hosts, only = selection
    context.display.step('Reading placement')
    memberships, unread = read_memberships(context, with_hosts, without_hosts)
    context.display.step('Reading nova; placement has %s in aggregates'
                         % plurals.count(len(memberships), 'provider'))
    nova = context.nova.read_all()
    current = _with_unassociated(context, memberships, nova, only)
    check_placement(context.placement, current, nova)
    existing = frozenset(nova.members) | nova.hosts()
    unknown = sorted(hosts - existing)
    if unknown and not nova.cells_down:
        others = plurals.some(existing) or 'none'
        raise exceptions.UnknownName('nova has no host %s; it has %s' % (
            ', '.join(unknown), others))
    # The ledger is read last: a deletion is marked before nova deletes.
    return comparison.Comparison(
        current, nova, context.ledger.entries(), only, hosts, unread)


def read_memberships(context: Context, used: frozenset[str],
                     unused: frozenset[str]
                     ) -> tuple[source.Memberships, Errors]:
    """Read by aggregate, or by provider if that takes fewer requests.

    :param used: aggregates that probably have providers
    :param unused: aggregates that probably have none: many share a request
    :returns: provider to aggregates, and the aggregates whose providers are
        not known, to the reason
    :raises MirrorError: placement does not answer
    """
    placement = context.placement
    if (used or unused) and not placement.is_connected:
        # Otherwise each thread would ask keystone for a token.
        placement.probe()
    # Remembered, because ``_by_provider`` sets the count, or resets it.
    is_count_unknown = placement.provider_count == math.inf
    members = _by_provider(context, used, unused)
    rare = sorted(unused - used - members.keys())
    chunks = [tuple(rare[start:start + client.MANY])
              for start in range(0, len(rare), client.MANY)]
    lists = _ask(context, chunks, lambda chunk: placement.members(*chunk))
    single: list[str] = []
    for chunk in chunks:
        # The providers of a list do not tell which of its aggregates they are
        # in. They are read one by one, like those of a list that failed.
        if chunk not in lists.results or lists.results[chunk]:
            single += chunk
    # Two calls, because each tolerates a few requests without an answer.
    likely = _ask(context, sorted(used - members.keys()), placement.members)
    others = _ask(context, single, placement.members)
    memberships: dict[str, set[str]] = {}
    for aggregate, providers in {
            **members, **likely.results, **others.results}.items():
        for provider in providers:
            memberships.setdefault(provider, set()).add(aggregate)
    if is_count_unknown:
        # At least these: the next read lists providers if that may pay off.
        placement.provider_count = len(memberships)
    return ({provider: frozenset(memberships[provider])
             for provider in sorted(memberships)},
            likely.failures | others.failures)


def _by_provider(context: Context, used: frozenset[str],
                 unused: frozenset[str]) -> dict[str, set[str]]:
    """Ask each provider for its aggregates, if that takes fewer requests.

    :returns: aggregate to providers. Those left out are to be asked for by
        aggregate: all if this way takes no fewer requests, or one failed
    """
    placement = context.placement
    requests = len(used) + math.ceil(len(unused - used) / client.MANY)
    # This way takes one for each provider, and one for their list. Before the
    # list is read, the count is an estimate, or infinite without one.
    if placement.provider_count + 1 >= requests:
        return {}
    providers = placement.providers()
    placement.provider_count = len(providers)
    if len(providers) + 1 >= requests:
        return {}
    answers = _ask(context, sorted(providers), placement.get)
    if answers.failures:
        if any(not isinstance(error, exceptions.ProviderNotFound)
               for error in answers.failures.values()):
            # So the next sync asks by aggregate: the same may fail again.
            placement.provider_count = math.inf
        return {}
    members: dict[str, set[str]] = {uuid: set() for uuid in used | unused}
    unrequested = set[str]()
    for provider, state in answers.results.items():
        for uuid in state.aggregates & members.keys():
            members[uuid].add(provider)
        unrequested |= state.aggregates - members.keys()
    # A provider may have an aggregate in another spelling than nova. Whether
    # placement finds it by nova's depends on its database: it is asked.
    ambiguous = set(map(uuids.canonical, unrequested))
    return {uuid: providers for uuid, providers in members.items()
            if uuids.canonical(uuid) not in ambiguous}


def _ask(context: Context, items: list[isolation.Item],
         request: abc.Callable[[isolation.Item], isolation.Result]
         ) -> isolation.Answers[isolation.Item, isolation.Result]:
    """Send the requests; raise an error if not all of them were sent."""
    # A long answer takes time: each request has all of the deadline.
    answers = isolation.ask(request, items, context.for_each,
                            context.placement.probe, patience=math.inf)
    if answers.outage:
        raise answers.outage
    if answers.silence and answers.unasked(items):
        raise answers.silence
    return answers


def _with_unassociated(context: Context, current: source.Memberships,
                       nova: source.Nova, only: frozenset[str]
                       ) -> source.Memberships:
    """Add providers that are in no aggregate, if that matters.

    Their list is the longest of all responses. It shows whether compute nodes
    have providers, and whether this is nova's placement.
    """
    nodes, lacking = nova.compute_nodes(), frozenset[str]()
    for node in nova.nodes.keys() - current.keys():
        lacking |= nova.wanted(node) | nova.disputed(node)
    if only:
        lacking &= only
    if not nodes or not (lacking or nodes.isdisjoint(current)):
        return current
    return {**dict.fromkeys(context.placement.providers(), frozenset()),
            **current}


def check_placement(placement: client.Client, providers: abc.Collection[str],
                    nova: source.Nova) -> None:
    """Check that nova uses this placement.

    :raises WrongPlacement: it has no provider of any of nova's compute nodes
    :raises CellUnavailable: the same, but some cells could not be read
    """
    nodes = nova.compute_nodes()
    if not nodes or not nodes.isdisjoint(providers):
        return
    if nova.cells_down:
        raise exceptions.CellUnavailable.of_any(nova.cells_down)
    difference = ', with no UUID in common' if providers else ''
    counts = (plurals.count(len(providers), 'resource provider'),
              plurals.count(len(nodes), 'compute node'))
    raise exceptions.WrongPlacement(
        'placement has %s and nova has %s%s; %s' % (
            *counts, difference, placement.endpoint()),
        step='%scorrect %s' % (
            ANOTHER if providers else REBUILT, placement.options))


def name_conflicts(names_of: reconcile.Source, placement: client.Client,
                   missing: abc.Iterable[str], nova: source.Nova) -> Errors:
    """Map missing providers to the conflict, if others have their names.

    Only the first ``LOOKED_UP`` are looked up.

    Nova-compute of a host that was reinstalled cannot create its provider
    while another one has its name: https://launchpad.net/bugs/1817833.
    """
    nodes = sorted(missing)[:LOOKED_UP]
    conflicts: dict[str, exceptions.MirrorError] = {}
    try:
        names = names_of.node_names(nodes) if nodes else {}
        for node, name in sorted(names.items()):
            # No provider has a name that placement does not accept.
            with contextlib.suppress(exceptions.RequestRejected):
                if others := placement.providers(name=name) - {node}:
                    conflicts[node] = _name_conflict(nova, name, min(others))
    except exceptions.MirrorError as exc:
        # Only the report of pending providers depends on it.
        LOG.debug('Names of resource providers could not be read: %s', exc)
    return conflicts


def _name_conflict(nova: source.Nova, name: str, other: str
                   ) -> exceptions.Contradiction:
    """Describe that a provider has the name of a compute node without one."""
    owner, step = 'another one', ''
    if other in nova.compute_nodes():
        owner = 'that of another compute node, %s,' % other
    elif nova.unread:
        owner = 'another one, %s, which %s,' % (other, problems.owner(nova))
    else:
        step = REPLACE.format(name=shlex.quote(name + '-old'), other=other)
    return exceptions.Contradiction(
        'its nova-compute cannot create the resource provider, because %s has '
        'the name %s' % (owner, name), step=step)


def listed_but_denied(context: Context, compared: comparison.Comparison,
                      missing: abc.Set[str]) -> Errors:
    """Map providers that placement lists, but denies to have, to the error.

    One that was deleted after it was listed is missing, and no contradiction.

    :param missing: providers that did not exist in this sync
    """
    denied = missing & compared.current.keys()
    if not denied:
        return {}
    try:
        denied &= context.placement.providers()
    except exceptions.MirrorError as exc:
        return dict.fromkeys(denied, exc)
    return dict.fromkeys(denied, exceptions.Contradiction(
        'placement answered that it does not exist, and lists it',
        step='connect each placement that answers for %s to the same database'
        % context.placement.endpoint()))


def add_foreign(context: Context, compared: comparison.Comparison,
                result: outcome.Outcome) -> frozenset[str]:
    """Add foreign aggregates: compute nodes have them, nova and ledger do not.

    This takes a request per provider.

    :param result: gets them, in ``kept``, and the failures
    :returns: those that an operator may remove, as ``_removable`` tells; empty
        if that could not be read
    """
    nodes = sorted(compared.nodes)
    context.display.step('Reading the aggregates of %s' % plurals.count(
        len(nodes), 'provider'), len(nodes))

    def read(node: str) -> frozenset[str]:
        foreign = frozenset[str]()
        with contextlib.suppress(exceptions.ProviderNotFound):
            foreign = (context.placement.get(node).aggregates
                       - compared.owned - compared.deleted)
        context.display.advance()
        return foreign

    failures: dict[str, exceptions.MirrorError] = {}
    by_node = dict(result.kept)
    outage: exceptions.MirrorError | None = None
    while nodes and not outage:
        batch, nodes = nodes[:context.batch], nodes[context.batch:]
        # As in ``_ask``: each request has all of the deadline.
        answers = context.placement.ask(
            read, batch, context.for_each, patience=math.inf)
        outage = answers.outage
        by_node |= answers.results
        failures |= answers.failures
        if reason := outage or answers.silence:
            # An outage ends the loop, so that other batches are not read.
            skipped = answers.unasked([*batch, *nodes] if outage else batch)
            failures |= dict.fromkeys(
                skipped, exceptions.NotTried.because_of(reason))
    by_node = {node: foreign for node, foreign in by_node.items() if foreign}
    try:
        # Users may have created some of these aggregates meanwhile.
        owned = {*context.nova.aggregates(), *context.ledger.entries()}
        result.kept = {
            node: foreign - owned for node, foreign in by_node.items()}
    except exceptions.MirrorError as exc:
        failures |= dict.fromkeys(by_node, exc)
        result.kept = {}
    result.failed |= {outcome.Subject(outcome.FOREIGN, node): error
                      for node, error in failures.items()}
    foreign = frozenset().union(*result.kept.values())
    return frozenset() if outage else _removable(
        context, compared.nova, foreign)


def _removable(context: Context, nova: source.Nova,
               foreign: frozenset[str]) -> frozenset[str]:
    """Return foreign aggregates with only compute nodes that share nothing.

    A provider that shares may connect hosts to their storage. If nova has an
    aggregate without a UUID, any foreign aggregate may be that one.
    """
    if nova.invalid_aggregates:
        return frozenset()
    try:
        nodes = nova.compute_nodes() - context.placement.providers(
            required=client.SHARING)
        return frozenset(uuid for uuid in foreign
                         if context.placement.members(uuid) <= nodes)
    except exceptions.MirrorError:
        # Then the sync does not say how to remove them.
        return frozenset()
