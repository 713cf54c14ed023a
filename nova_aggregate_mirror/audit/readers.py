# SPDX-License-Identifier: Apache-2.0
"""The audit of nova's databases, with nova's options and the history.

Long because the statements that read the servers, page by page, are here, too.
"""

import collections
from collections import abc
import functools
import json
from typing import Any

from nova import objects
from oslo_config import cfg
import sqlalchemy as sa

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror import dates
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import plugins
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import database_servers
from nova_aggregate_mirror.source import metadata

CACHE_SIZE, MAX_LENGTH = 2048, 16384
"""Number and length of the texts in the cache. Nova writes ASCII: 32 MB."""
_OF_SERVER = '"instance_uuid": "%s"'
_ANY = _OF_SERVER % '00000000-0000-0000-0000-000000000000'
BATCH = 50
"""Servers per request to neutron: 2 KB of URL."""
PAGE = 500
"""Servers per page: bounds memory and the duration of a statement."""
NEWEST = 10000
"""Requests in which a zone is searched: half a second of MariaDB."""
_SERVER, _MIGRATION = (
    database_servers.instances.c, database_servers.migrations.c)
_REQUEST, _MAPPING = (
    database_servers.request_specs.c, database_servers.instance_mappings.c)
_SERVERS = sa.select(
    _SERVER.id, _SERVER.uuid, _SERVER.display_name, _SERVER.host,
    _SERVER.project_id, _SERVER.vm_state, _SERVER.launched_at,
).where(
    *database_servers.EXISTS, _SERVER.host.is_not(None),
    sa.or_(_SERVER.vm_state.is_(None), _SERVER.vm_state != 'soft-delete'),
    # Nova stores the new flavor when it begins to resize a server.
    sa.or_(_SERVER.task_state.is_(None),
           _SERVER.task_state.not_in(audit.MOVING)),
    _SERVER.id > sa.bindparam('after'),
).order_by(_SERVER.id).limit(PAGE)
_MOVES = sa.select(
    _MIGRATION.instance_uuid, _MIGRATION.source_compute,
    _MIGRATION.dest_compute, _MIGRATION.migration_type, _MIGRATION.updated_at,
).where(
    _MIGRATION.deleted == 0, _MIGRATION.instance_uuid.in_(engines.SOME),
    _MIGRATION.status.in_(audit.ARRIVED),
).order_by(_MIGRATION.updated_at, _MIGRATION.id)
_REQUESTS = sa.select(_REQUEST.instance_uuid, _REQUEST.spec).where(
    _REQUEST.instance_uuid.in_(engines.SOME))
_NEWEST = sa.select(_REQUEST.id, _REQUEST.instance_uuid, _REQUEST.spec
                    ).order_by(_REQUEST.id.desc()).limit(NEWEST).subquery()
_EXISTING = sa.select(sa.func.count()).where(
    _MAPPING.instance_uuid.in_(engines.SOME),
    sa.or_(_MAPPING.queued_for_delete.is_(None),
           _MAPPING.queued_for_delete == sa.false()))
Page = tuple[list[audit.PlacedServer], abc.Mapping[str, str]]
"""Servers of a cell, and UUID to RequestSpec, as nova stored it; JSON."""


class ServerPages(database_servers.DatabaseServers):
    """The servers of all cells, page by page."""

    def problems(self) -> list[problems.Problem]:
        """List the cells that did not answer so far."""
        return problems.of_cells(
            self.cells_down, 'its other servers are not audited')

    def pages(self, hosts: abc.Collection[str] = (), project: str = ''
              ) -> abc.Iterator[Page]:
        """Read the servers, by cell and in the order of their creation."""
        statement = _SERVERS
        if hosts:
            statement = statement.where(_SERVER.host.in_(sorted(hosts)))
        if project:
            statement = statement.where(_SERVER.project_id == project)
        with self._api.reading() as api:
            cells = self._cells.all(api)
        for cell in cells:
            after, is_last = 0, False
            while not is_last:
                query = functools.partial(
                    _page, statement=statement, after=after)
                after, page = self._ask(cell, query, default=(after, []))
                is_last = not page
                # MySQL compares names of hosts without case.
                servers = [server for server in page
                           if not hosts or server.host in hosts]
                # Also an empty page, so that the caller can stop.
                uuids = [server.uuid for server in servers]
                yield servers, self._requests(uuids) if uuids else {}

    def _requests(self, servers: abc.Sequence[str]) -> abc.Mapping[str, str]:
        with self._api.reading() as api:
            return dict(map(tuple, engines.select(api, _REQUESTS, servers)))


def count_pinned(zone: str) -> int:
    """Count existing servers whose request, of the NEWEST, names a zone."""
    # Nova writes the request as JSON, always with the same spaces.
    text = '"availability_zone": %s' % json.dumps(zone)
    # LIKE is fast, and ignores case on MySQL and SQLite; REPLACE does not.
    pinned = sa.select(_NEWEST.c.instance_uuid).where(
        _NEWEST.c.spec.contains(text, autoescape=True),
        _NEWEST.c.spec != sa.func.replace(_NEWEST.c.spec, text, ''))
    with connections.api_database().reading() as api:
        uuids = api.execute(pinned).scalars().all()
        # The request of a deleted server remains until it is archived.
        return sum(row[0] for row in engines.select(api, _EXISTING, uuids))


def _page(cell: Any, statement: Any, after: int
          ) -> tuple[int, list[audit.PlacedServer]]:
    """Read a page, and the ID after which the next one begins."""
    rows = cell.execute(statement, {'after': after}).all()
    if not rows:
        return after, []
    moves = {}
    for move in cell.execute(_MOVES, {'some': [row.uuid for row in rows]}):
        # A resize on the same host is no move. MySQL would refuse to compare
        # columns of different collations, and ignore case.
        if move.source_compute not in (None, move.dest_compute):
            moves[move.instance_uuid, move.dest_compute] = move
    servers = [_server(row, moves.get((row.uuid, row.host))) for row in rows]
    return rows[-1].id, servers


def _server(row: Any, move: Any) -> audit.PlacedServer:
    server = audit.PlacedServer(
        row.uuid, row.display_name or '', row.host, row.project_id or '',
        row.vm_state or '', dates.epoch(row.launched_at))
    return server if move is None else audit.with_move(
        server, move.migration_type or 'migration',
        dates.epoch(move.updated_at))


def parse(text: str) -> constraints.ServerRequest:
    """Parse the JSON of a RequestSpec, as far as aggregates restrict it.

    Nova's objects have to be registered. One of ``request_spec.UNREADABLE`` is
    raised if it is of a later nova, or damaged.
    """
    spec = objects.RequestSpec.obj_from_primitive(json.loads(text))
    return request_spec.request(spec)


class RequestCache:
    """Requests of many servers, most of which differ in the server only."""

    def __init__(self) -> None:
        self._cached = functools.lru_cache(CACHE_SIZE)(parse)

    def parse(self, text: str, server: str) -> constraints.ServerRequest:
        """Parse equal requests once, after replacing the server's UUID."""
        text = text.replace(_OF_SERVER % server, _ANY)
        return self._cached(text) if len(text) <= MAX_LENGTH else parse(text)


class SegmentReader:
    """Segments of servers from neutron, with aggregates from placement.

    :param host_aggregates: UUIDs of nova's aggregates: others are left out
    """

    def __init__(self, conf: cfg.ConfigOpts, placement: client.Client,
                 host_aggregates: abc.Collection[str]) -> None:
        self._timeout = conf.aggregate_mirror.request_timeout
        self._networks = resources.Networks(conf)
        self._aggregates = functools.cache(
            lambda segment: placement.aggregates(segment).intersection(
                host_aggregates))

    @functools.cached_property
    def _segments(self) -> abc.Mapping[str, str]:
        """Subnet to its segment."""
        with deadline.within(self._timeout):
            return {subnet.id: subnet.segment
                    for subnet in self._networks.subnets() if subnet.segment}

    def read(self, servers: abc.Collection[str]) -> dict[str, rules.Segments]:
        """Return the segments of each server, with their host aggregates.

        :raises MirrorError: neutron or placement could not be read
        """
        by_server = collections.defaultdict[str, rules.Segments](frozenset)
        ordered = sorted(servers) if self._segments else []
        for start in range(0, len(ordered), BATCH):
            with deadline.within(self._timeout):
                ports = self._networks.ports(
                    device_id=ordered[start:start + BATCH])
            for port in ports:
                for subnet, _address in port.addresses:
                    segment = self._segments.get(subnet)
                    # Not every segment has an aggregate from neutron.
                    if segment and self._aggregates(segment):
                        by_server[port.device] |= {
                            (segment, self._aggregates(segment))}
        return by_server


class DatabaseAudit:
    """An audit of the servers in nova's databases, by nova's objects.

    For the arguments see ``auditor.Auditor``; ``source`` has the silent cells.

    :param names: the rules to check; by default those that are enforced
    :raises MirrorError: nova could not be read, or a plugin not be loaded
    """

    def __init__(self, conf: cfg.ConfigOpts, placement: client.Client,
                 names: abc.Collection[str] = (),
                 history: abc.Iterable[full_syncs.Entry] = (),
                 zone: str = '', can_unpin: bool = False) -> None:
        self.source = ServerPages(
            engines.Limits(conf.aggregate_mirror.cell_timeout))
        self._database = connections.api_database()
        aggregates = metadata.read_all(self._database)
        settings = read_settings(conf, names)
        names = names or rules.enforced(conf)
        own_rules = [rule for rule in rules.RULES if rule.name in names]
        other_rules = [rules.of_filter(name) for name in names
                       if name not in rules.NAMES]
        past = [rules.PastSync(entry.started_at, entry.ended_at,
                               entry.added + entry.removed)
                for entry in history if entry.compared]
        self.auditor = auditor.Auditor(
            [*own_rules, *other_rules], aggregates, settings,
            sorted(past, key=lambda sync: sync.ended), zone,
            conf.default_availability_zone, can_unpin=can_unpin)
        self._segments = SegmentReader(
            conf, placement, aggregates.names) if 'segment' in names else None
        self._request_cache = RequestCache()
        self.totals = self.auditor.totals
        self.totals.by_rule.update(dict.fromkeys(names, 0))

    def run(self, hosts: abc.Collection[str] = (), project: str = ''
            ) -> abc.Iterator[list[audit.Misplacement]]:
        """Audit page after page; yield the misplacements of each.

        :raises MirrorError: neutron or placement could not be read
        """
        for servers, requests in self.source.pages(hosts, project):
            audited = list(self._audited(servers, requests))
            if suspects := self.auditor.suspects(audited):
                # A host may have been added to a zone, and used, meanwhile.
                self.auditor.refresh(
                    metadata.read_all(self._database, suspects), suspects)
            yield list(self.auditor.run(audited))

    def _audited(self, servers: list[audit.PlacedServer],
                 requests: abc.Mapping[str, str]
                 ) -> abc.Iterator[auditor.AuditedServer]:
        segments = self._segments.read(
            [server.uuid for server in servers]) if self._segments else {}
        for server in servers:
            request, error = None, 'nova has none'
            try:
                if text := requests.get(server.uuid):
                    request = self._request_cache.parse(text, server.uuid)
            except request_spec.UNREADABLE as exc:
                error = '%s: %s' % (type(exc).__name__, exc)
            yield auditor.AuditedServer(
                server, request, error, segments.get(server.uuid, frozenset()))


def read_settings(conf: cfg.ConfigOpts, names: abc.Collection[str]
                  ) -> rules.Settings:
    """Read options, and load the request filters whose rules are checked.

    :param names: rules that were selected; empty if nova-scheduler's apply
    :raises InvalidConfiguration: when a plugin cannot be loaded
    """
    # Nova's own rule for tenants has the name of a filter that may be off.
    own_filters = [row.name for row in filter_table.FILTERS if row.metadata
                   and (names or filter_table.enabled(row.name, conf))]
    filters = [name for name in names or rules.enforced(conf)
               if name in own_filters or name not in rules.NAMES]
    loaded = plugins.load(
        filter_table.NAMESPACE, filter_table.OPTION, filters, conf)
    # Filters of queries have no rules.
    with_rules = {name: plugin for name, plugin in loaded.items()
                  if hasattr(plugin, 'rules')}
    # A rule that was selected compares the default zone, enforced or not.
    compares_default = (
        not {'zone', audit.DEFAULT_ZONE}.isdisjoint(names)
        or filter_table.DEFAULT_ZONE in filter_table.configured(conf))
    return rules.Settings(
        conf.default_availability_zone if compares_default else '',
        conf.scheduler.limit_tenants_to_placement_aggregate,
        conf.scheduler.placement_aggregate_required_for_tenants,
        with_rules)
