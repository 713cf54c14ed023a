# SPDX-License-Identifier: Apache-2.0
"""Check of drift: differences between nova and placement, by zone."""

from collections.abc import Iterable
from collections.abc import Iterator

from oslo_config import cfg

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import nova
from nova_aggregate_mirror.checks import placement
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import plan
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.source import database

DISCOVER = 'nova-manage cell_v2 discover_hosts'
RESTART = 'systemctl restart nova-compute'


def find(conf: cfg.ConfigOpts, kept: store.Journal | None,
         source: database.DatabaseSource,
         api: client.Client) -> checks.Findings:
    """Compare all of nova with all of placement."""
    options = conf.aggregate_mirror
    try:
        zones = source.zones()
        mirror = reconciler.Reconciler(
            kept.ledger if kept else journal.NoLedger(), source, api,
            count=options.sync_workers)
        seen = full_sync.run(mirror, request=full_sync.Request(
            max_removed_share=options.max_removed_share, write=False))
        if seen.not_compared:
            raise seen.not_compared
    except exceptions.WrongPlacement as exc:
        return [checks.warning(
            '%s. If this is the wrong placement, correct [placement] in '
            'nova.conf. If it is new, nova-compute has not reported to it '
            'yet: on each compute host, run:' % exc, RESTART)]
    except exceptions.NovaUnavailable as exc:
        return [nova.unavailable(exc)]
    except exceptions.DeadlineExceeded as exc:
        return [checks.failure(
            '%s If placement is only slow, raise the timeout:' % exc,
            '[aggregate_mirror]',
            'request_timeout = %g' % (2 * options.request_timeout))]
    except exceptions.MirrorError as exc:
        return [checks.failure(str(exc), placement.RESTART)]
    found = [*_wrong(seen, zones), *_hosts(seen), *_unknown(seen)]
    if found:
        return found
    if not seen.nova.nodes:
        return [checks.good('Nova has no compute node yet.')]
    count = len(seen.nova.aggregates)
    return [checks.good('Placement is in sync with nova: %d host aggregate%s.'
                        % (count, '' if count == 1 else 's'))]


def _wrong(seen: full_sync.Sync,
           zones: database.Zones) -> Iterator[checks.Finding]:
    """List the differences by availability zone, then the repair."""
    changes = [*seen.outcome.changes, *seen.stale]
    lacking = _by_place(seen, zones, changes, 'add')
    stale = _by_place(seen, zones, changes, 'remove')
    for place in sorted({*lacking, *stale}):
        parts = ['%s %s' % (verb, checks.some(hosts)) for verb, hosts in (
            ('lacks', lacking.get(place)), ('still has', stale.get(place)))
            if hosts]
        yield checks.warning('In placement, %s %s.' % (
            place, ' and '.join(parts)))
    if seen.refused:
        yield checks.failure(
            'Stale associations are not removed automatically: %s. If nova\'s '
            'database is correct, list the removals, then apply them:'
            % seen.refused,
            checks.SYNC + ' --prune --dry-run',
            checks.SYNC + ' --prune --force')
    elif stale:
        yield checks.warning('To repair this now, run:', checks.SYNC
                             + ' --prune')
    elif lacking:
        yield checks.warning('To repair this now, run:', checks.SYNC)


def _by_place(seen: full_sync.Sync, zones: database.Zones,
              changes: Iterable[plan.Change],
              what: str) -> dict[str, set[str]]:
    """Map each availability zone, or aggregate without a zone, to hosts.

    Providers that are not compute nodes are listed by their UUID.
    """
    found: dict[str, set[str]] = {}
    for change in changes:
        for uuid in getattr(change, what):
            if uuid in zones:
                place = 'availability zone %s' % zones[uuid]
            elif uuid in seen.nova.aggregates:
                place = 'aggregate %s' % seen.nova.aggregates[uuid]
            else:
                place = 'deleted aggregate %s' % uuid
            found.setdefault(place, set()).update(
                ['host %s' % host for host
                 in seen.nova.hosts_of(change.provider)]
                or ['provider %s' % change.provider])
    return found


def _hosts(seen: full_sync.Sync) -> Iterator[checks.Finding]:
    """List the member hosts that cannot be mirrored now."""
    for text, hosts, cure in (
            ('No resource provider yet for %s. On each listed host, run:',
             set(seen.outcome.pending.values()), RESTART),
            ('No compute node for %s. On each listed host, run:',
             seen.nova.nodeless(), RESTART),
            ('No host mapping for %s. Run:', seen.nova.unmapped, DISCOVER)):
        if hosts:
            yield checks.warning(text % checks.some(hosts), cure)


def _unknown(seen: full_sync.Sync) -> Iterator[checks.Finding]:
    """List what could not be compared."""
    for name, reason in sorted(seen.nova.cells_down.items()):
        yield checks.warning(
            'Cell %s did not answer; its hosts could not be compared: %s. '
            'Start its database, or correct its connection:' % (name, reason),
            'nova-manage cell_v2 list_cells --verbose')
    failed = {subject: exc for subject, exc in seen.outcome.failed.items()
              if not isinstance(exc, exceptions.CellUnavailable)}
    if failed:
        subject = min(failed, key=str)
        yield checks.failure(
            'Could not be compared: %s. Reason for %s: %s To list all, run:'
            % (checks.some(map(str, failed)), subject, failed[subject]),
            checks.SYNC + ' --dry-run')
