# SPDX-License-Identifier: Apache-2.0
"""What nova wants, asked of nova-api by python-novaclient.

Nova-api shows less than nova's databases do. A compute node that it does not
show may be gone, on a host without a mapping, or in a cell that is down; here
that is never taken for a node that belongs to no aggregate.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
from typing import Any
from typing import TypeVar

from novaclient import client as nova_client
from novaclient.v2 import client as nova_v2
from oslo_utils import uuidutils

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror import source

T = TypeVar('T')

MICROVERSION = '2.69'
"""The first that names the hosts of a cell that is down (19.0, Stein). From
2.88 on, nova-api asks each nova-compute for its uptime."""

UNKNOWN = 'UNKNOWN'
"""The status of such a host."""

SOME = 10
"""So many names in one line are enough."""

_ROLE = ('It takes the admin role, or whatever nova\'s policy wants for '
         'os-aggregates, os-hypervisors and os-services. Check the user and '
         'the project')
_ENDPOINT = ('Check region, interface and endpoint of the compute service in '
             'clouds.yaml, in the options or in the catalog')
_LOGS = 'Check that nova-api runs, and its log'
_ADVICE = {
    exceptions.NotAuthorized: _ROLE + '.',
    exceptions.PlacementUnreachable: _ENDPOINT + ', and that nova-api runs.',
    exceptions.DeadlineExceeded: _LOGS + '.',
    exceptions.PlacementFailed: _LOGS + '.',
    exceptions.MalformedAnswer: _ENDPOINT + '.',
    exceptions.RequestRejected: _LOGS + '.',
    exceptions.MissingCredentials: _ROLE + '.',
    exceptions.InvalidConfiguration: _ENDPOINT + '.',
}


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """A host aggregate as nova-api shows it."""

    id: int
    uuid: str
    name: str
    hosts: frozenset[str]


def connect(**where: Any) -> nova_v2.Client:
    """A client of nova-api; no network.

    :param where: as keystoneauth names it: ``session``, ``region_name``...
    """
    return nova_client.Client(MICROVERSION, **where)


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

    def all_aggregates(self) -> list[Aggregate]:
        """Every aggregate; they come in one page, however many there are."""
        return self._ask('/os-aggregates', 'aggregates', _aggregate)

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
        return dataclasses.replace(
            nova, cells_down={**nova.cells_down, **_unseen(gone)},
            aggregates={uuid: name for uuid, name in nova.aggregates.items()
                        if uuid in asked},
            members={host: uuids for host, uuids in nova.members.items()
                     if host in hosts | shown},
            hosts_down=nova.hosts_down & hosts)

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
                    '/os-hypervisors/detail' + marker, 'hypervisors', _node))
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
            '/os-services?binary=nova-compute', 'services', _service)
        return frozenset(host for host, status in services
                         if status == UNKNOWN)

    def _ask(self, path: str, what: str,
             parse: Callable[[str, dict[str, Any]], T]) -> list[T]:
        doing = 'GET %s of nova-api' % path
        with deadline.within(self._timeout), _translated(doing):
            # The managers of the client keep what they list in the user's
            # home, for the completion of another command. This parses the
            # body, and the token and the catalog first.
            with errors.parsing(doing):
                response, body = self._nova.client.get(path, raise_exc=False)
            if response.status_code != 200:
                raise _refusal(doing, response.status_code, body)
            entries = body.get(what) if isinstance(body, dict) else None
            if not isinstance(entries, list) or not all(
                    isinstance(one, dict) for one in entries):
                raise _malformed(doing, 'the answer has no list of %s' % what)
            return [parse(doing, one) for one in entries]


def _nova(aggregates: Iterable[Aggregate], nodes: Mapping[str, str],
          down: frozenset[str]) -> source.Nova:
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


def _aggregate(doing: str, one: dict[str, Any]) -> Aggregate:
    hosts, number = one.get('hosts'), one.get('id')
    if not isinstance(hosts, list) or not isinstance(number, int):
        raise _malformed(doing, 'an aggregate has no id or no hosts')
    return Aggregate(
        number, _uuid(doing, one, 'uuid'), _text(doing, one, 'name'),
        frozenset(_text(doing, {'host': host}, 'host') for host in hosts))


def _node(doing: str, one: dict[str, Any]) -> tuple[str, str]:
    service = one.get('service')
    if not isinstance(service, dict):
        raise _malformed(doing, 'a hypervisor has no service')
    return _uuid(doing, one, 'id'), _text(doing, service, 'host')


def _service(doing: str, one: dict[str, Any]) -> tuple[str, str]:
    return _text(doing, one, 'host'), _text(doing, one, 'status')


def _uuid(doing: str, one: dict[str, Any], key: str) -> str:
    value = one.get(key)
    if not uuidutils.is_uuid_like(value):
        raise _malformed(doing, 'an entry has a %s that is no UUID' % key)
    return value


def _text(doing: str, one: dict[str, Any], key: str) -> str:
    value = one.get(key)
    if not isinstance(value, str) or not value:
        raise _malformed(doing, 'an entry has no %s' % key)
    return value


def _malformed(doing: str, happened: str) -> exceptions.MirrorError:
    return errors.error(exceptions.MalformedAnswer, doing, happened)


@contextlib.contextmanager
def _translated(doing: str) -> Iterator[None]:
    try:
        with errors.advising(_ADVICE), errors.translated(doing):
            yield
    except (exceptions.NovaUnavailable, exceptions.UnexpectedNova):
        raise
    except exceptions.MirrorError as exc:
        raise exceptions.NovaUnavailable(str(exc)) from exc


def _refusal(doing: str, status: int, body: Any) -> exceptions.MirrorError:
    kind: type[exceptions.MirrorError] = exceptions.NovaUnavailable
    advice = _LOGS
    if status in (401, 403):
        advice = _ROLE
    elif status == 400:
        advice = 'Run the command again'
    elif status == 404:
        advice = _ENDPOINT
    elif status == 406:
        kind, advice = exceptions.UnexpectedNova, (
            'Microversion %s is needed, which nova has since 19.0 (Stein)'
            % MICROVERSION)
    # Nova says it as {"forbidden": {"message": ..., "code": 403}}.
    said = ' '.join(one['message'] for one in (
        body.values() if isinstance(body, dict) else ())
        if isinstance(one, dict) and isinstance(one.get('message'), str))
    said = ' '.join(errors.without_secrets(said).split())
    return kind('%s: answered %s %s. %s.' % (
        doing, status, said.rstrip('. '), advice))
