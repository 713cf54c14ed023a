# SPDX-License-Identifier: Apache-2.0
"""Why a server is on a host that contradicts its request: pure, no I/O."""

from collections.abc import Sequence
import dataclasses
import time

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import filter_rules
from nova_aggregate_mirror import source


_MOVES = {
    source.LIVE: 'a live migration', 'evacuation': 'an evacuation',
    'migration': 'a cold migration', 'resize': 'a resize'}


@dataclasses.dataclass(frozen=True, slots=True)
class PastSync:
    """A full sync that compared all of nova with placement, or several."""

    started: float
    """Start of the first, in seconds since the epoch."""
    ended: float
    """End of the last."""
    differences: int
    """Associations that were repaired, of any host."""


def cause(server: source.PlacedServer, name: str, rule: constraints.Rule,
          forced: bool, known: source.Aggregates,
          syncs: Sequence[PastSync] = ()) -> audit.Cause:
    """Find out why, as far as nova and the history of syncs tell.

    :param forced: whether the request names its host
    :param syncs: full syncs, oldest first
    """
    changed = _changed(server, name, rule, known)
    if changed:
        return changed
    arrived = server.arrived
    drift = _drift(arrived, syncs)
    if server.moved:
        text = 'moved to the host by %s' % _MOVES.get(
            server.moved, 'a ' + server.moved)
        return audit.Cause(
            audit.DRIFT if drift else audit.MOVED, text + drift, arrived)
    if forced:
        return audit.Cause(audit.FORCED, 'forced to the host when created',
                           arrived)
    if drift:
        return audit.Cause(audit.DRIFT, 'created' + drift, arrived)
    return audit.Cause(
        audit.UNKNOWN, 'not recorded: the host was removed from an aggregate, '
        'an aggregate was changed, or placement differed from nova')


def _changed(server: source.PlacedServer, name: str, rule: constraints.Rule,
             known: source.Aggregates) -> audit.Cause | None:
    """Return the latest change of the host's aggregates, if it explains it.

    Nova keeps no record of a host that was removed from an aggregate.
    """
    if server.arrived is None:
        return None
    found: list[tuple[float, str]] = []
    for uuid, added in known.members.get(server.host, {}).items():
        keys = [key for key in known.metadata.get(uuid, {})
                if _concerns(key, name, rule)]
        title = rules.listed(frozenset({uuid}), known.names)
        if keys:
            found.append((added or 0.0, 'the host was added to %s' % title))
        found += [(known.changed.get((uuid, key)) or 0.0,
                   'the metadata of %s was changed' % title) for key in keys]
    at, text = max(found, default=(0.0, ''))
    if at <= server.arrived:
        return None
    return audit.Cause(
        audit.CHANGED, text + ' after the server had arrived', at)


def _concerns(key: str, name: str, rule: constraints.Rule) -> bool:
    """Check whether a rule depends on a metadata key."""
    if name == audit.TENANT:
        return key.startswith(filter_rules.TENANT)
    known = {audit.ZONE: filter_rules.ZONE, audit.TYPE: filter_rules.FLAVOR}
    if name in known:
        return key == known[name]
    # The subject ends with the image property, or with the extra spec.
    return name in (audit.IMAGE, audit.FLAVOR) and (
        key in filter_rules.extra_spec_keys(
            [rule.subject.rpartition(' ')[2]]).values())


def _drift(at: float | None, syncs: Sequence[PastSync]) -> str:
    """Report what the first sync after a time found; empty if nothing."""
    if at is None or not any(one.started <= at for one in syncs):
        return ''
    first = next((one for one in syncs if one.ended >= at), None)
    if first is None or not first.differences:
        return ''
    at_text = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(first.ended))
    return (' while placement differed from nova: the full sync of %s '
            'repaired %s' % (
                at_text, plurals.count(first.differences, 'association')))
