# SPDX-License-Identifier: Apache-2.0
"""What nova wants, asked of nova-api by python-novaclient.

Nova-api shows less than nova's databases do. A compute node that it does not
show may be gone, on a host without a mapping, or in a cell that is down; here
that is never taken for a node that belongs to no aggregate.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import dataclasses
from typing import Any
from typing import TypeVar

from novaclient import client as nova_client
from novaclient.v2 import client as nova_v2

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import api_responses

T = TypeVar('T')

UNKNOWN = 'UNKNOWN'
"""The status of such a host."""

SOME = 10
"""So many names in one line are enough."""


def connect(**where: Any) -> nova_v2.Client:
    """A client of nova-api; no network.

    :param where: as keystoneauth names it: ``session``, ``region_name``...
    """
    return nova_client.Client(api_responses.MICROVERSION, **where)


class ApiSource:
    """Nova's REST API, for an administrator without access to databases.

    :param nova: a client of ``connect``
    :param timeout: seconds for one request
    """

    def __init__(self, nova: nova_v2.Client, timeout: float) -> None:
        self._nova = nova
        self._timeout = timeout

    def place(self, aggregate_id: int, host: str = '') -> source.Place:
        uuid = next((one.uuid for one in self.all_aggregates()
                     if one.id == aggregate_id), '')
        if not host:
            return source.Place(uuid)
        nova = self.read([host])
        return source.Place(uuid, nova.nodes_of({host}), nova.cells_down)

    def aggregates(self) -> Mapping[str, str]:
        return {one.uuid: one.name for one in self.all_aggregates()}

    def all_aggregates(self) -> list[api_responses.Aggregate]:
        """Every aggregate; they come in one page, however many there are."""
        return self._ask(
            '/os-aggregates', 'aggregates', api_responses.aggregate)

    def read(self, hosts: Iterable[str], nodes: Iterable[str] = (),
             aggregates: Iterable[str] = ()) -> source.Nova:
        hosts, nodes = frozenset(hosts), frozenset(nodes)
        asked = frozenset(aggregates)
        found = {node: host for node, host in self._nodes().items()
                 if host in hosts or node in nodes}
        shown = frozenset(found.values())
        gone = nodes - found.keys()
        down: frozenset[str] = frozenset()
        if gone or not hosts <= shown:
            down = self._hosts_down()
        nova = _nova(self.all_aggregates(), found, down if gone
                     else down & hosts)
        members = {host: uuids for host, uuids in nova.members.items()
                   if host in hosts | shown}
        named = asked.union(*members.values())
        return dataclasses.replace(
            nova, cells_down={**nova.cells_down, **_unseen(gone)},
            aggregates={uuid: name for uuid, name in nova.aggregates.items()
                        if uuid in named},
            members=members, hosts_down=nova.hosts_down & hosts)

    def read_all(self) -> source.Nova:
        nodes = self._nodes()
        # Last, because a cell that goes down meanwhile is seen then.
        down = self._hosts_down()
        return _nova(self.all_aggregates(), nodes, down)

    def _nodes(self) -> dict[str, str]:
        """Every compute node that nova-api shows, with its host.

        :raises NovaUnavailable: when they could not all be listed, which is so
            while a cell is down
        """
        found: dict[str, str] = {}
        marker = ''
        while True:
            try:
                page = dict(self._ask(
                    '/os-hypervisors/detail' + marker, 'hypervisors',
                    api_responses.node))
            except exceptions.NovaUnavailable as exc:
                down: frozenset[str] = frozenset()
                with contextlib.suppress(exceptions.MirrorError):
                    down = self._hosts_down()
                if not down:
                    raise
                raise exceptions.NovaUnavailable(
                    '%s Nova-api lists no compute nodes while a cell is down, '
                    'and it does not know the status of %s.'
                    % (exc, _some(down))) from exc
            # Nova-api leaves out nodes that have no service, so that a page
            # may be short or have no link to the next: only an empty one ends.
            if page.keys() <= found.keys():
                return found
            found.update(page)
            marker = '?marker=' + list(page)[-1]

    def _hosts_down(self) -> frozenset[str]:
        """Hosts of the cells that do not answer nova-api."""
        services = self._ask(
            '/os-services?binary=nova-compute', 'services',
            api_responses.service)
        return frozenset(host for host, status in services
                         if status == UNKNOWN)

    def _ask(self, path: str, what: str,
             parse: Callable[[str, dict[str, Any]], T]) -> list[T]:
        doing = 'GET %s of nova-api' % path
        with deadline.within(self._timeout), api_responses.translated(doing):
            # The managers of the client keep what they list in the user's
            # home, for the completion of another command. This parses the
            # body, and the token and the catalog first.
            with errors.parsing(doing):
                response, body = self._nova.client.get(path, raise_exc=False)
            if response.status_code != 200:
                raise api_responses.refusal(doing, response.status_code, body)
            entries = body.get(what) if isinstance(body, dict) else None
            if not isinstance(entries, list) or not all(
                    isinstance(one, dict) for one in entries):
                raise api_responses.malformed(
                    doing, 'the answer has no list of %s' % what)
            return [parse(doing, one) for one in entries]


def _nova(aggregates: Iterable[api_responses.Aggregate],
          nodes: Mapping[str, str], down: frozenset[str]) -> source.Nova:
    members: dict[str, set[str]] = {}
    for one in aggregates:
        for host in one.hosts:
            members.setdefault(host, set()).add(one.uuid)
    cells = {'of ' + _some(down): 'nova-api does not know their status'}
    return source.Nova(
        aggregates={one.uuid: one.name for one in aggregates},
        members={host: frozenset(uuids) for host, uuids in members.items()},
        nodes=nodes, cells_down=cells if down else {},
        hosts_down=frozenset(members) & down)


def _unseen(gone: frozenset[str]) -> Mapping[str, str]:
    """Which cell these nodes are in nobody can tell, nor if they are gone."""
    if not gone:
        return {}
    return {'unknown': 'nova-api does not show %s any more' % _some(gone)}


def _some(names: Iterable[str]) -> str:
    names = sorted(names)
    more = ['and %d more' % (len(names) - SOME)] if names[SOME:] else []
    return ', '.join(names[:SOME] + more)
