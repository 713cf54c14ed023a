# SPDX-License-Identifier: Apache-2.0
"""The audit of nova's databases, with nova's options and the history."""

from collections import abc
import functools
import json

from nova import objects
from oslo_config import cfg

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror.audit import server_pages
from nova_aggregate_mirror.http import networks
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import plugins
from nova_aggregate_mirror.scheduler import constraints
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.scheduler import request_spec
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import metadata

CACHE_SIZE, MAX_LENGTH = 2048, 16384
"""Number and length of the texts in the cache. Nova writes ASCII: 32 MB."""
_SERVER = '"instance_uuid": "%s"'
_ANY = _SERVER % '00000000-0000-0000-0000-000000000000'
BATCH = 50
"""Servers per request to neutron: 2 KB of URL."""


class Unreadable(Exception):
    """Nova cannot read the request, with the reason."""


def parse(text: str) -> constraints.ServerRequest:
    """Parse the JSON of a RequestSpec, as far as aggregates restrict it.

    Nova's objects have to be registered.

    :raises Unreadable: it is of a later nova, or damaged
    """
    if not text:
        raise Unreadable('nova has none')
    try:
        spec = objects.RequestSpec.obj_from_primitive(json.loads(text))
        return request_spec.request(spec)
    except request_spec.UNREADABLE as exc:
        raise Unreadable('%s: %s' % (type(exc).__name__, exc)) from exc


class RequestCache:
    """Requests of many servers, most of which differ in the server only."""

    def __init__(self) -> None:
        self._parsed = functools.lru_cache(CACHE_SIZE)(parse)

    def parse(self, text: str, server: str) -> constraints.ServerRequest:
        """Parse equal requests once, after replacing the server's UUID."""
        text = text.replace(_SERVER % server, _ANY)
        return self._parsed(text) if len(text) <= MAX_LENGTH else parse(text)


class SegmentReader:
    """Reads segments of servers from neutron, their aggregates from placement.

    :param aggregates: UUIDs of nova's host aggregates
    """

    def __init__(self, conf: cfg.ConfigOpts, placement: client.Client,
                 aggregates: abc.Collection[str]) -> None:
        self._timeout = conf.aggregate_mirror.request_timeout
        self._networks = networks.Networks(conf)
        self._aggregates = functools.cache(
            lambda segment: placement.aggregates(segment).intersection(
                aggregates))

    @functools.cached_property
    def _segments(self) -> abc.Mapping[str, str]:
        """Subnet to its segment."""
        with deadline.within(self._timeout):
            return {subnet.id: subnet.segment
                    for subnet in self._networks.subnets() if subnet.segment}

    def read(self, servers: abc.Collection[str]
             ) -> abc.Mapping[str, rules.Segments]:
        """Return the segments of each server, with their host aggregates.

        :raises MirrorError: neutron or placement could not be read
        """
        by_server: dict[str, rules.Segments] = {}
        ordered = sorted(servers) if self._segments else []
        for start in range(0, len(ordered), BATCH):
            with deadline.within(self._timeout):
                ports = self._networks.ports(
                    device_id=ordered[start:start + BATCH])
            for port in ports:
                subnets = {subnet for subnet, _address in port.addresses}
                for subnet in subnets & self._segments.keys():
                    segment = self._segments[subnet]
                    aggregates = self._aggregates(segment)
                    # There are none if neutron has created none.
                    if aggregates:
                        segments = by_server.get(port.device, frozenset())
                        by_server[port.device] = segments | {
                            (segment, aggregates)}
        return by_server


class DatabaseAudit:
    """An audit of the servers in nova's databases, by nova's objects.

    The arguments are those of ``auditor.Auditor``. ``source`` has the cells
    that did not answer.

    :param names: the rules to check; by default those that are enforced
    :raises MirrorError: nova could not be read, or a plugin not be loaded
    """

    def __init__(self, conf: cfg.ConfigOpts, placement: client.Client,
                 names: abc.Iterable[str] = (),
                 history: abc.Iterable[full_syncs.Entry] = (),
                 zone: str = '', can_unpin: bool = False) -> None:
        self.source = server_pages.ServerPages(
            engines.Limits(conf.aggregate_mirror.cell_timeout))
        self._database = connections.api_database()
        aggregates = metadata.read_all(self._database)
        selected = list(dict.fromkeys(names))
        settings = read_settings(conf, selected)
        names = selected or rules.enforced(conf)
        own_rules = [rule for rule in rules.RULES if rule.name in names]
        other_rules = [rules.of_filter(name) for name in names
                       if name not in rules.NAMES]
        past = [rules.PastSync(entry.started_at, entry.ended_at,
                               entry.added + entry.removed)
                for entry in history if entry.compared]
        self._auditor = auditor.Auditor(
            [*own_rules, *other_rules], aggregates, settings,
            sorted(past, key=lambda sync: sync.ended), zone,
            conf.default_availability_zone, can_unpin=can_unpin)
        self._segments = (
            SegmentReader(conf, placement, aggregates.names)
            if 'segment' in names else None)
        self._requests = RequestCache()
        self.totals = self._auditor.totals
        self.totals.by_rule.update(dict.fromkeys(names, 0))

    @property
    def zones(self) -> frozenset[str]:
        return self._auditor.zones

    def run(self, hosts: abc.Collection[str] = (), project: str = ''
            ) -> abc.Iterator[list[audit.Misplacement]]:
        """Audit page after page; yield the misplacements of each.

        :raises MirrorError: neutron or placement could not be read
        """
        for page in self.source.pages(hosts, project):
            audited = list(self._audited(page))
            suspects = self._auditor.suspects(audited)
            if suspects:
                # A host may have been added to a zone, and used, meanwhile.
                self._auditor.refresh(
                    metadata.read_all(self._database, suspects), suspects)
            yield list(self._auditor.run(audited))

    def _audited(self, page: server_pages.Page
                 ) -> abc.Iterator[auditor.AuditedServer]:
        segments = self._segments.read(
            [server.uuid for server in page.servers]) if self._segments else {}
        for server in page.servers:
            request, error = None, ''
            try:
                request = self._requests.parse(
                    page.requests.get(server.uuid, ''), server.uuid)
            except Unreadable as exc:
                error = str(exc)
            yield auditor.AuditedServer(
                server, request, error,
                segments.get(server.uuid, frozenset()))


def read_settings(conf: cfg.ConfigOpts, names: abc.Collection[str]
                  ) -> rules.Settings:
    """Read options, and load the request filters whose rules are checked.

    :param names: rules that were selected; empty if nova-scheduler's apply
    :raises InvalidConfiguration: when a plugin cannot be loaded
    """
    # If nova confines tenants, another rule has the name of their filter.
    own_filters = [row.name for row in filter_table.FILTERS if row.metadata
                   and (names or filter_table.enabled(row.name, conf))]
    filters = [name for name in names or rules.enforced(conf)
               if name in own_filters or name not in rules.NAMES]
    loaded = plugins.load(
        filter_table.NAMESPACE, filter_table.OPTION, filters, conf)
    # Filters of queries have no rules.
    plugins_of_rules = {name: plugin for name, plugin in loaded.items()
                        if hasattr(plugin, 'rules')}
    # A zone that was selected is compared although it is not enforced.
    compares_default = (
        not {'zone', audit.DEFAULT_ZONE}.isdisjoint(names)
        or filter_table.DEFAULT_ZONE in filter_table.configured(conf))
    return rules.Settings(
        conf.default_availability_zone if compares_default else '',
        conf.scheduler.limit_tenants_to_placement_aggregate,
        conf.scheduler.placement_aggregate_required_for_tenants,
        plugins_of_rules)
