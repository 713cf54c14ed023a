# SPDX-License-Identifier: Apache-2.0
"""Rules that an audit checks, and why a host does not pass: pure, no I/O.

Long because a reason is told from the fields of its rule.
"""

from collections import abc
import dataclasses

from oslo_config import cfg

from nova_aggregate_mirror import audit
from nova_aggregate_mirror import dates
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.source import keyed_aggregates

ZONE_KEYS = keyed_aggregates.Keys(frozenset({constraints.ZONE}))
Segments = frozenset[tuple[str, frozenset[str]]]
"""Segments that a server has addresses of, each with its host aggregates."""
_MOVES = {audit.LIVE: 'a live migration', 'evacuation': 'an evacuation',
          'migration': 'a cold migration', 'resize': 'a resize'}
PINNED = audit.Event(audit.REQUESTED, 'a user requested the zone, or '
                     '[DEFAULT] default_schedule_zone is set in nova-api')


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options and plugins that rules depend on."""

    default_zone: str = ''
    """The zone of hosts that are in no zone; empty if it is not enforced."""
    tenants_confined: bool = False
    """Nova's ``limit_tenants_to_placement_aggregate``."""
    tenants_need_aggregate: bool = False
    """Nova's ``placement_aggregate_required_for_tenants``."""
    filters: abc.Mapping[str, constraints.RequestFilter] = dataclasses.field(
        default_factory=dict)


@dataclasses.dataclass(frozen=True)
class RuleInput:
    """The input from which the rules for the host of a server follow."""

    request: constraints.ServerRequest
    metadata: constraints.Metadata
    settings: Settings = Settings()
    segments: Segments = frozenset()


@dataclasses.dataclass(frozen=True)
class AuditRule:
    name: str
    compares: str
    """What it compares, for the help and the command's page."""
    enforced: abc.Callable[[cfg.ConfigOpts], bool]
    """Whether nova-scheduler enforces it."""
    conditions: abc.Callable[[RuleInput], abc.Sequence[constraints.Rule]]


def zone(inputs: RuleInput) -> list[constraints.Rule]:
    """Require the availability zone of a request.

    Nova requires no aggregate for a zone that no aggregate has.
    """
    requested = inputs.request.zone
    if not requested:
        return []
    matching = constraints.aggregates_with(
        inputs.metadata,
        lambda aggregate: aggregate.get(constraints.ZONE) == requested)
    subject = 'zone %s' % requested
    if matching:
        return [constraints.Rule(
            subject, matching, required=True, keys=ZONE_KEYS)]
    if requested == inputs.settings.default_zone:
        return [constraints.value_rule(
            subject, constraints.ZONE, requested, inputs.metadata)]
    return []


def default_zone(inputs: RuleInput) -> list[constraints.Rule]:
    """Let no host pass if the request is for the zone of hosts without one."""
    default = inputs.settings.default_zone
    if not default or inputs.request.zone != default or any(
            values.get(constraints.ZONE) == default
            for values in inputs.metadata.values()):
        return []
    return [constraints.Rule('zone %s' % default, frozenset(), required=True,
                             keys=ZONE_KEYS)]


def tenant_aggregate(inputs: RuleInput) -> list[constraints.Rule]:
    """Require the aggregates of the tenant, if nova confines tenants.

    Nova's request filter does: a tenant with aggregates uses only these.
    """
    project, settings = inputs.request.project, inputs.settings

    def is_of_tenant(aggregate: abc.Mapping[str, str]) -> bool:
        return any(value == project for key, value in aggregate.items()
                   if key in constraints.TENANT_KEYS)

    matching = constraints.aggregates_with(inputs.metadata, is_of_tenant)
    if not settings.tenants_confined or not (
            matching or settings.tenants_need_aggregate):
        return []
    return [constraints.Rule('tenant %s' % project, matching, required=True,
                             keys=constraints.TENANT_KEYS)]


def segment(inputs: RuleInput) -> list[constraints.Rule]:
    """Require a host on each segment that the server has an address of."""
    return [constraints.Rule('segment %s' % name, aggregates, required=True)
            for name, aggregates in sorted(inputs.segments)]


def of_filter(name: str, compares: str = '') -> AuditRule:
    """Return the rule of a request filter; none applies without the filter."""

    def conditions(inputs: RuleInput) -> list[constraints.Rule]:
        filters = inputs.settings.filters
        plugins = [filters[name]] if name in filters else []
        return constraints.rules(plugins, inputs.request, inputs.metadata)

    return AuditRule(name, compares,
                     lambda conf: filter_table.enabled(name, conf), conditions)


RULES = (
    # Placement enforces the zones of aggregates, whatever is configured.
    AuditRule('zone', 'the zone requested, or pinned by nova',
              lambda conf: True, zone),
    # Nova's documentation warns of it, and no nova refuses it.
    AuditRule(audit.DEFAULT_ZONE, 'whether the zone requested is that of '
              'hosts without a zone', lambda conf: False, default_zone),
    # The rules of request filters, in the query or in nova's host filters.
    *(of_filter(row.name, row.metadata)
      for row in filter_table.FILTERS if row.metadata),
    # Nova's own request filter for tenants.
    AuditRule('tenant_isolation',
              'with ``limit_tenants_to_placement_aggregate`` the tenant\'s '
              'own aggregates',
              lambda conf: conf.scheduler.limit_tenants_to_placement_aggregate,
              tenant_aggregate),
    # Neutron gives a server an address of the segment that its host is on.
    AuditRule('segment', 'segments of routed networks, as known to neutron',
              lambda conf: conf.scheduler[
                  'query_placement_for_routed_network_aggregates'], segment))
NAMES = tuple(dict.fromkeys(rule.name for rule in RULES))


def enforced(conf: cfg.ConfigOpts) -> list[str]:
    """Return the names of the rules that nova-scheduler enforces."""
    names = {rule.name for rule in RULES if rule.enforced(conf)}
    own_filters = {row.name for row in filter_table.FILTERS}
    return [*(name for name in NAMES if name in names),
            # Request filters of other packages.
            *(name for name in filter_table.configured(conf)
              if name not in own_filters)]


def descriptions() -> dict[str, str]:
    """Return what each rule compares, in reStructuredText."""
    return {name: ', and '.join(rule.compares for rule in RULES
                                if rule.name == name) for name in NAMES}


def zones(host: str, aggregates: keyed_aggregates.Aggregates) -> list[str]:
    """List the availability zones of a host."""
    metadata = (aggregates.metadata.get(uuid, {})
                for uuid in aggregates.of_host(host))
    return sorted({values[constraints.ZONE] for values in metadata
                   if constraints.ZONE in values})


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
    if change := _change(server, rule, aggregates):
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
            changes.append((changed, 'the metadata of %s was changed' % title))
        is_hint = guess and rule.required and bool(keys)
        if is_hint or (uuid in rule.restricting and not rule.required):
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
    # What the first sync of all repaired may be older than the server.
    if arrived is None or not any(sync.started <= arrived for sync in syncs):
        return ''
    first = next((sync for sync in syncs if sync.ended >= arrived), None)
    if first is None or not first.differences:
        return ''
    count = plurals.count(first.differences, 'association')
    return (' while placement differed from nova: the full sync of %s '
            'repaired %s' % (dates.iso(first.ended), count))


def contradiction(rule: constraints.Rule, host: str,
                  aggregates: keyed_aggregates.Aggregates) -> str:
    """Describe what a host has instead of what a rule requires."""
    if constraints.ZONE in rule.keys:
        texts = ['zone %s' % zone for zone in zones(host, aggregates)]
        return ', '.join(texts) or 'no zone'
    foreign = rule.restricting & aggregates.of_host(host)
    if foreign and not rule.required:
        return 'in %s, which is for others' % _names(foreign, aggregates.names)
    if not rule.matching:
        return 'no aggregate matches'
    return 'not in %s' % _names(rule.matching, aggregates.names)


def _names(uuids: frozenset[str], names: abc.Mapping[str, str]) -> str:
    titles = ['%s (%s)' % (names.get(uuid, ''), uuid) for uuid in uuids]
    return plurals.some(titles, 3)
