# SPDX-License-Identifier: Apache-2.0
"""Make placement's aggregates equal to nova's host aggregates.

Every host in the journal is converged both ways; whatever else is missing in
placement is added. It goes on past each failure and prints at the end what it
changed and what it could not.

Exit status, the lowest that applies:
    0  everything is mirrored
    2  placement, or a provider in it, could not be read
    3  a provider could not be updated
    4  a member host has no host mapping
    5  a member host has no compute node, or its cell did not answer
    6  a compute node has no resource provider yet
    8  so much would have been removed that nothing was
  255  nova's database, the journal or the configuration could not be used
"""

from collections.abc import Iterator
import sys

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal as mirror_journal
from nova_aggregate_mirror import reconciler

OK = 0
NOT_READ = 2
NOT_UPDATED = 3
NOT_MAPPED = 4
NO_NODE = 5
NO_PROVIDER = 6
REFUSED = 8
COULD_NOT_RUN = 255

DISCOVER = 'run "nova-manage cell_v2 discover_hosts"'
RESTART = 'restart nova-compute on that host'


def run(mirror: reconciler.Reconciler, journal: mirror_journal.Journal,
        max_removed_share: float | None = None, verbose: bool = False) -> int:
    """Sync, print what happened, and tell the exit status.

    :param max_removed_share: see ``Reconciler.sync``
    :raises MirrorError: when nova or the journal could not be read at all
    """
    say = print if verbose else lambda line: None
    try:
        rows = journal.rows()
        say('Journal: %d operations to mirror' % len(rows))
        result = mirror.sync(rows, max_removed_share, say)
    except (exceptions.NovaUnavailable, exceptions.JournalUnavailable):
        raise
    except exceptions.MirrorError as exc:
        print('Nothing could be compared: %s' % exc, file=sys.stderr)
        return NOT_READ
    for line in sorted(_changed(result)):
        print(line)
    for line in sorted(_stale(result)):
        print(line)
    faults = sorted(_faults(result))
    for _, line in faults:
        print(line, file=sys.stderr)
    added = sum(len(change.add) for change in result.outcome.changes)
    removed = sum(len(change.remove) for change in result.outcome.changes)
    print('%d associations added, %d removed; %d could not be mirrored.'
          % (added, removed, len(faults)))
    return min((code for code, _ in faults), default=OK)


def _changed(result: reconciler.Sync) -> Iterator[str]:
    for change in result.outcome.changes:
        where = _provider(result, change.provider)
        for uuid in change.add:
            yield 'Added %s to %s' % (where, _aggregate(result, uuid))
        for uuid in change.remove:
            yield 'Removed %s from %s' % (where, _aggregate(result, uuid))


def _stale(result: reconciler.Sync) -> Iterator[str]:
    for change in result.stale:
        for uuid in change.remove:
            yield ('Left %s in %s, which it is no member of: the journal '
                   'knows nothing of it' % (
                       _provider(result, change.provider),
                       _aggregate(result, uuid)))


def _faults(result: reconciler.Sync) -> Iterator[tuple[int, str]]:
    """Everything that is not mirrored: exit status, and what to do."""
    outcome, nova = result.outcome, result.nova
    for subject, exc in outcome.failed.items():
        if isinstance(exc, exceptions.CellUnavailable):
            code = NO_NODE
        elif isinstance(exc, (exceptions.NovaUnavailable,
                              exceptions.JournalUnavailable)):
            code = COULD_NOT_RUN
        else:
            code = NOT_UPDATED if subject in outcome.unwritten else NOT_READ
        yield code, '%s is not mirrored: %s' % (
            _provider(result, subject), exc)
    for host in nova.unmapped:
        yield NOT_MAPPED, 'Host %s has no host mapping: %s' % (host, DISCOVER)
    for host in nova.nodeless():
        yield NO_NODE, 'Host %s has no compute node: %s' % (host, RESTART)
    if result.refused:
        yield REFUSED, ('Nothing was removed: %s. If that is right, raise '
                        '[aggregate_mirror] max_removed_share for this time; '
                        'if not, look at nova\'s database'
                        % result.refused)
    for name, reason in nova.cells_down.items():
        yield NO_NODE, ('Cell %s did not answer: %s; its hosts were left as '
                        'they are' % (name, reason))
    for node, host in outcome.pending.items():
        yield NO_PROVIDER, ('Host %s: compute node %s has no resource '
                            'provider yet: %s' % (host, node, RESTART))


def _provider(result: reconciler.Sync, subject: str) -> str:
    host = result.nova.nodes.get(subject)
    if host:
        return 'host %s (provider %s)' % (host, subject)
    if subject in result.nova.members:
        return 'host %s' % subject
    return 'provider %s' % subject


def _aggregate(result: reconciler.Sync, uuid: str) -> str:
    name = result.nova.aggregates.get(uuid)
    return 'aggregate %s (%s)' % (name, uuid) if name else (
        'deleted aggregate %s' % uuid)
