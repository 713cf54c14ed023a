# SPDX-License-Identifier: Apache-2.0
"""The audit of nova's databases, with nova's options and the history."""

from collections import abc

from oslo_config import cfg

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import events
from nova_aggregate_mirror.audit import network_segments
from nova_aggregate_mirror.audit import rules
from nova_aggregate_mirror.audit import server_pages
from nova_aggregate_mirror.audit import stored_requests
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror import plugins
from nova_aggregate_mirror.scheduler import filter_table
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import metadata


class DatabaseAudit:
    """An audit of the servers in nova's databases, by nova's objects.

    :param names: the rules to check; by default those that are enforced
    :param history: full syncs, newest first
    :param zone: only servers that request this zone, or are on its hosts
    :param can_unpin: whether the compute API can change the zone of a server
    :param settings: what ``read_settings`` has read; by default it is called
    :raises MirrorError: nova could not be read, or a plugin not be loaded
    """

    def __init__(self, conf: cfg.ConfigOpts, placement: client.Client,
                 names: abc.Iterable[str] = (),
                 history: abc.Iterable[full_syncs.Entry] = (),
                 zone: str = '', can_unpin: bool = False,
                 settings: rules.Settings | None = None) -> None:
        self._database = connections.api_database()
        aggregates = metadata.read_all(self._database)
        selected = list(dict.fromkeys(names))
        settings = settings or read_settings(conf, selected)
        names = selected or rules.enforced(conf)
        own_rules = [rule for rule in rules.RULES if rule.name in names]
        other_rules = [rules.of_filter(name) for name in names
                       if name not in rules.NAMES]
        self._auditor = auditor.Auditor(
            [*own_rules, *other_rules], aggregates, settings,
            past_syncs(history), zone, conf.default_availability_zone,
            can_unpin=can_unpin)
        self._segments = (
            network_segments.SegmentReader(conf, placement, aggregates.names)
            if 'segment' in names else None)
        self._requests = stored_requests.RequestCache()
        self.totals = self._auditor.totals
        self.totals.by_rule.update(dict.fromkeys(names, 0))

    @property
    def zones(self) -> frozenset[str]:
        """Names of the zones that nova has."""
        return self._auditor.zones

    def run(self, pages: abc.Iterable[server_pages.Page]
            ) -> abc.Iterator[list[audit.Misplacement]]:
        """Audit page after page; yield the misplacements of each.

        :raises MirrorError: neutron or placement could not be read
        """
        for page in pages:
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
            try:
                request, forced = self._requests.parse(
                    page.requests.get(server.uuid, ''), server.uuid)
            except stored_requests.Unreadable as exc:
                yield auditor.AuditedServer(server, None, error=str(exc))
                continue
            yield auditor.AuditedServer(
                server, request, forced=forced,
                segments=segments.get(server.uuid, {}))


def read_settings(conf: cfg.ConfigOpts, names: abc.Collection[str]
                  ) -> rules.Settings:
    """Read options, and load the request filters whose rules are checked.

    :param names: rules that were selected; empty if nova-scheduler's apply
    :raises InvalidConfiguration: when a plugin cannot be loaded
    """
    confined = conf.scheduler.limit_tenants_to_placement_aggregate
    filters = [name for name in names or rules.enforced(conf)
               if name not in rules.NAMES or name in filter_table.AUDITED]
    # If nova confines tenants, another rule has this name.
    if confined and not filter_table.enabled('tenant_isolation', conf):
        filters = [name for name in filters if name != 'tenant_isolation']
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
        conf.default_availability_zone if compares_default else '', confined,
        conf.scheduler.placement_aggregate_required_for_tenants,
        plugins_of_rules)


def past_syncs(syncs: abc.Iterable[full_syncs.Entry]) -> list[events.PastSync]:
    """Return the full syncs that compared everything, oldest first."""
    past = [events.PastSync(entry.started_at, entry.ended_at,
                            entry.added + entry.removed)
            for entry in syncs if entry.compared]
    return sorted(past, key=lambda sync: sync.ended)
