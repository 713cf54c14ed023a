# SPDX-License-Identifier: Apache-2.0
"""The audit of nova's databases, and the history of full syncs."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from oslo_config import cfg

from nova_aggregate_mirror import audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import causes
from nova_aggregate_mirror.audit import network_segments
from nova_aggregate_mirror.audit import scheduler_rules
from nova_aggregate_mirror.audit import stored_requests
from nova_aggregate_mirror.journal import history
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import database_servers
from nova_aggregate_mirror.source import host_aggregates


class DatabaseAudit:
    """An audit of the servers in nova's databases.

    Nova's objects have to be registered.

    :param conf: nova's configuration, with this package's options
    :param context: nova's context of an administrator
    :param rules: names of the rules to check
    :param past: full syncs, newest first
    :param zone: only servers that request this zone, or are on its hosts
    :param asked: whether the rules were selected, see ``checks.load``
    :raises MirrorError: nova's API database could not be read, or a plugin
        could not be loaded
    """

    def __init__(self, conf: cfg.ConfigOpts, context: Any,
                 placement: client.Client, rules: Collection[str],
                 past: Iterable[history.Entry] = (), zone: str = '',
                 asked: bool = False) -> None:
        self._database = connections.ApiDatabase()
        known = host_aggregates.read(self._database)
        self._auditor = auditor.Auditor(
            scheduler_rules.load(conf, rules, asked), known,
            compared(past), zone,
            conf.default_availability_zone)
        self._segments = (
            network_segments.Segments(conf, placement, known.names)
            if audit.SEGMENT in rules else None)
        self._requests = stored_requests.RequestCache()
        self.counts = self._auditor.counts
        self.counts.by_rule.update(dict.fromkeys(rules, 0))

    def run(self, pages: Iterable[database_servers.Page]
            ) -> Iterator[list[audit.Misplacement]]:
        """Audit page after page; yield what each has.

        :raises MirrorError: neutron or placement could not be read
        """
        for page in pages:
            found = list(self._audited(page))
            suspects = self._auditor.suspects(found)
            if suspects:
                # A host may have been added to a zone, and used, meanwhile.
                self._auditor.refresh(
                    host_aggregates.read(self._database, suspects), suspects)
            yield list(self._auditor.run(found))

    def _audited(self, page: database_servers.Page
                 ) -> Iterator[auditor.AuditedServer]:
        own = self._segments.rules(
            [one.uuid for one in page.servers]) if self._segments else {}
        for server in page.servers:
            try:
                stored = self._requests.parse(
                    page.requests.get(server.uuid, ''), server.uuid)
            except stored_requests.Unreadable as exc:
                yield auditor.AuditedServer(server, None, str(exc))
                continue
            yield auditor.AuditedServer(
                server, stored.request, '', stored.forced,
                [(audit.SEGMENT, rule) for rule in own.get(server.uuid, ())])


def compared(past: Iterable[history.Entry]) -> list[causes.PastSync]:
    """Return the full syncs that compared everything, oldest first."""
    found = [causes.PastSync(one.started_at, one.ended_at,
                             one.added + one.removed)
             for one in past if one.compared]
    return sorted(found, key=lambda one: one.ended)
