# SPDX-License-Identifier: Apache-2.0
"""Rules that the host of a server has to pass: pure, no I/O."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import filter_rules
from nova_aggregate_mirror import source

Check = Callable[[constraints.ServerRequest, constraints.Metadata],
                 Sequence[constraints.Rule]]
"""Returns the rules for the host of a request."""

KEPT = 4096
"""Requests whose rules are kept; most servers share theirs with others."""


def zone(request: constraints.ServerRequest, metadata: constraints.Metadata,
         default: str) -> list[constraints.Rule]:
    """Require the availability zone of a request.

    Nova requires no aggregate for a zone that no aggregate has.

    :param default: the zone of hosts that are in no zone, if it is enforced
    """
    matching = frozenset(
        uuid for uuid, values in metadata.items()
        if request.zone and values.get(filter_rules.ZONE) == request.zone)
    if matching:
        return [constraints.Rule(
            'zone %s' % request.zone, matching, required=True)]
    if request.zone and request.zone == default:
        return filter_rules.default_zone(request.zone, metadata)
    return []


class RuleCache:
    """The rules of each request, kept for the next request of that kind.

    :param checks: the name of a rule, and what returns it
    """

    def __init__(self, checks: Sequence[tuple[str, Check]],
                 metadata: constraints.Metadata) -> None:
        self._checks = checks
        self._metadata = metadata
        self._of = functools.lru_cache(KEPT)(self._rules)
        self._shared: dict[frozenset[str], frozenset[str]] = {}

    def broken(self, request: constraints.ServerRequest, within: frozenset[str]
               ) -> list[tuple[str, constraints.Rule]]:
        """List the rules that a host in these aggregates does not pass."""
        return [(name, rule) for name, rule in self._of(
            request.project, request.flavor,
            frozenset(request.extra_specs.items()),
            frozenset(request.image.items()), request.zone)
            if not rule.passes(within)]

    def _rules(self, project: str | None, flavor: str,
               extra_specs: frozenset[tuple[str, str]],
               image: frozenset[tuple[str, str]], zone: str
               ) -> list[tuple[str, constraints.Rule]]:
        request = constraints.ServerRequest(
            project, flavor, dict(extra_specs), dict(image), zone)
        # All tenants share the large set of aggregates that restrict others.
        found = []
        for name, check in self._checks:
            for rule in check(request, self._metadata):
                others = self._shared.setdefault(
                    rule.restricting, rule.restricting)
                found.append(
                    (name, dataclasses.replace(rule, restricting=others)))
        return found


def zones(within: frozenset[str], metadata: constraints.Metadata
          ) -> list[str]:
    """List the zones of a host in these aggregates."""
    return sorted({metadata[uuid][filter_rules.ZONE] for uuid in within
                   if filter_rules.ZONE in metadata.get(uuid, {})})


def found(name: str, rule: constraints.Rule, within: frozenset[str],
          known: source.Aggregates) -> str:
    """Describe what a host has instead of what a rule requires."""
    if name == audit.ZONE:
        return ', '.join('zone %s' % one for one in zones(
            within, known.metadata)) or 'no zone'
    excluding = excluders(rule, within)
    if excluding:
        return 'in %s, which is for others' % listed(excluding, known.names)
    if not rule.matching:
        return 'no aggregate matches'
    return 'not in %s' % listed(rule.matching, known.names)


def excluders(rule: constraints.Rule, within: frozenset[str]
              ) -> frozenset[str]:
    """Return the aggregates of a host that exclude the request."""
    return frozenset() if rule.required else rule.restricting & within


def listed(uuids: frozenset[str], names: Mapping[str, str]) -> str:
    """Name a few aggregates."""
    shown = sorted('%s (%s)' % (names.get(uuid, ''), uuid) for uuid in uuids)
    more = ['%d more' % (len(shown) - 3)] if shown[3:] else []
    return ', '.join(shown[:3] + more)
