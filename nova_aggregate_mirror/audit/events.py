# SPDX-License-Identifier: Apache-2.0
"""Contradictions of a request, and the events behind them: pure, no I/O."""

from collections import abc
import dataclasses

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror import dates
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.source import keyed_aggregates

_MOVES = {
    audit.LIVE: 'a live migration', 'evacuation': 'an evacuation',
    'migration': 'a cold migration', 'resize': 'a resize'}

PINNED = audit.Event(
    audit.REQUESTED, 'a user requested the zone, or [DEFAULT] '
    'default_schedule_zone is set in nova-api')


@dataclasses.dataclass(frozen=True, slots=True)
class PastSync:
    """A full sync that compared all of nova with placement, or several."""

    started: float
    """Start of the first, in seconds since the epoch."""
    ended: float
    """End of the last."""
    differences: int
    """Associations that were repaired, of any host."""


def cause(server: audit.PlacedServer, rule: constraints.Rule, forced: bool,
          aggregates: keyed_aggregates.Aggregates,
          syncs: abc.Sequence[PastSync] = ()) -> audit.Event:
    """Return the cause, as far as nova and the history of syncs show it."""
    change = _change(server, rule, aggregates)
    if change:
        return change
    arrived = server.arrived
    drift = _drift(arrived, syncs)
    if server.moved:
        move = _MOVES.get(server.moved, 'a ' + server.moved)
        return audit.Event(audit.DRIFT if drift else audit.MOVED,
                           'moved to the host by ' + move + drift, arrived)
    if forced:
        return audit.Event(audit.FORCED, 'forced to the host when created',
                           arrived)
    if drift:
        return audit.Event(audit.DRIFT, 'created' + drift, arrived)
    return _change(server, rule, aggregates, guess=True) or audit.Event(
        audit.UNKNOWN, 'not recorded: the host was removed from an aggregate, '
        'an aggregate was changed, or placement differed from nova')


def _change(server: audit.PlacedServer, rule: constraints.Rule,
            aggregates: keyed_aggregates.Aggregates, guess: bool = False
            ) -> audit.Event | None:
    """Return the change of the host's aggregates that may have broken a rule.

    :param guess: whether to return for a required rule the addition to an
        aggregate for which the host may have left a matching one
    """
    if server.arrived is None:
        return None
    changes: list[tuple[float, str]] = []
    additions: list[tuple[float, str]] = []
    for uuid, since in aggregates.members.get(server.host, {}).items():
        keys = [key for key in aggregates.metadata.get(uuid, {})
                if key in rule.keys]
        added = since or 0.0
        times = [aggregates.changed.get((uuid, key)) for key in keys]
        changed = max(filter(None, times), default=0.0)
        title = _names(frozenset({uuid}), aggregates.names)
        if changed > max(added, server.arrived):
            changes.append(
                (changed, 'the metadata of %s was changed' % title))
        if (guess and keys) if rule.required else uuid in rule.restricting:
            additions.append((added, 'the host was added to %s' % title))
    # The first aggregate that restricts the host excludes the server already.
    select = max if changes or rule.required else min
    at, text = select(changes or additions, default=(0.0, ''))
    if at <= server.arrived:
        return None
    return audit.Event(
        audit.CHANGED, text + ' after the server had arrived', at)


def _drift(arrived: float | None, syncs: abc.Sequence[PastSync]) -> str:
    """Describe the drift found after a server arrived; empty if none."""
    if arrived is None or not any(sync.started <= arrived for sync in syncs):
        return ''
    first = next((sync for sync in syncs if sync.ended >= arrived), None)
    if first is None or not first.differences:
        return ''
    return (' while placement differed from nova: the full sync of %s '
            'repaired %s' % (
                dates.iso(first.ended),
                plurals.count(first.differences, 'association')))


def contradiction(rule: constraints.Rule, host_aggregates: frozenset[str],
                  aggregates: keyed_aggregates.Aggregates) -> str:
    """Describe what a host has instead of what a rule requires."""
    if constraints.ZONE in rule.keys:
        return ', '.join('zone %s' % zone for zone in rules.zones(
            host_aggregates, aggregates.metadata)) or 'no zone'
    excluding = rule.restricting & host_aggregates
    if excluding and not rule.required:
        return 'in %s, which is for others' % _names(
            excluding, aggregates.names)
    if not rule.matching:
        return 'no aggregate matches'
    return 'not in %s' % _names(rule.matching, aggregates.names)


def _names(uuids: frozenset[str], names: abc.Mapping[str, str]) -> str:
    titles = ['%s (%s)' % (names.get(uuid, ''), uuid) for uuid in uuids]
    return plurals.some(titles, 3)
