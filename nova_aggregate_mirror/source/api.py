# SPDX-License-Identifier: Apache-2.0
"""State of nova, read from the compute API.

The API shows less than nova's databases. A compute node that is not listed may
be deleted, on an unmapped host, or in a cell that is down, so it is never
treated as a node without aggregates. The module is long because each list is
validated here, too.
"""

from collections import abc
import contextlib
import dataclasses
from typing import Any
from typing import TypeVar

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import library_errors
from nova_aggregate_mirror.http import transport
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import keyed_aggregates
from nova_aggregate_mirror import uuids

T = TypeVar('T')
MICROVERSION = '2.69'
"""The first that names the hosts of a cell that is down (19.0, Stein). From
2.88 on, nova-api asks each nova-compute for its uptime."""
PARTY = causes.openstack_client(
    'nova-api', 'give the user a role that nova\'s policy allows for '
    'os-aggregates, os-hypervisors and os-services, such as the admin role')
GONE = causes.Cause('not_found', '%s', step='run this again')
"""What was listed before has been deleted."""
UNLISTED = ('no compute node that nova-api lists', 'start nova-compute on '
            'that host; if "openstack compute service list" has it as up, run '
            '"nova-aggregate-mirror-status upgrade check" on a controller')
"""About a host: only the databases show how it is mapped."""
UNKNOWN = 'UNKNOWN'
"""Status of the services of a cell that is down."""


@dataclasses.dataclass(frozen=True)
class Api:
    """Requests to nova-api."""

    session: Any
    """Keystoneauth's."""
    timeout: float
    """Seconds per method call."""
    region_name: str | None = None
    interface: str = 'public'
    endpoint_override: str | None = None

    def entries(self, path: str, key: str,
                parse: abc.Callable[[errors.Call, dict[str, Any]], T],
                microversion: str = MICROVERSION,
                step: str = '') -> list[T]:
        """Read a list; return what ``parse`` makes of each entry.

        :param parse: called with the call, for errors, and each entry
        :param step: the next step if nova does not have the microversion
        :raises UnexpectedNova: nova does not have the microversion
        """
        with deadline.within(self.timeout):
            call, entries = self._read(path, key, microversion, step)
            return [parse(call, entry) for entry in entries]

    def update(self, path: str, body: dict[str, str]) -> None:
        """Send a PUT, once."""
        with deadline.within(self.timeout):
            self._request('PUT', path, MICROVERSION, json=body)

    @transport.repeating
    def _read(self, path: str, key: str, microversion: str, step: str
              ) -> tuple[errors.Call, list[Any]]:
        """Send a request; return it, for errors, and the entries."""
        call, body = self._request('GET', path, microversion, step)
        entries = body.get(key) if isinstance(body, dict) else None
        if not isinstance(entries, list) or not all(
                isinstance(entry, dict) for entry in entries):
            raise call.malformed('no list of %s' % key)
        return call, entries

    def _request(self, method: str, path: str, microversion: str,
                 step: str = '', **options: Any) -> tuple[errors.Call, Any]:
        """Send a request; return it, for errors, and the body."""
        call = errors.Call(lambda: PARTY, '%s %s' % (method, path),
                           kind=exceptions.NovaUnavailable)
        body = None
        with (errors.translated(call), errors.parsing(),
              library_errors.naming_missing_endpoint(
                  self.session, 'compute', self.region_name, self.interface)):
            # The request parses the token and the catalog, then the body.
            response = self.session.request(
                path, method, raise_exc=False, microversion=microversion,
                endpoint_override=self.endpoint_override, endpoint_filter={
                    'service_type': 'compute', 'interface': self.interface,
                    'region_name': self.region_name},
                headers={'Accept': 'application/json'}, **options)
            # The body of an error may be a proxy's HTML page, not JSON.
            with contextlib.suppress(ValueError):
                body = response.json()
        call = dataclasses.replace(call, url=response.url or '')
        if response.status_code != 200:
            raise _refusal(call, response, body, step)
        return call, body


@dataclasses.dataclass(frozen=True)
class ListedAggregate(source.HostAggregate):
    """A host aggregate as nova-api shows it."""

    zone: str = ''
    """Empty if it is no availability zone."""

    @property
    def key(self) -> str:
        return keyed_aggregates.key_of(self.id, self.uuid)


@dataclasses.dataclass(frozen=True)
class ListedService:
    """A compute service as nova-api shows it."""

    host: str
    status: str
    """``UNKNOWN`` in a cell that is down, without what follows."""
    id: str = ''
    disabled_reason: str = ''


class ApiSource:
    """Nova's REST API, for administrators without access to the databases."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def aggregates(self) -> abc.Mapping[str, str]:
        return _collected(self.all_aggregates()).aggregates

    def with_hosts(self) -> frozenset[str]:
        members = _collected(self.all_aggregates()).members
        return frozenset[str]().union(*members.values())

    def all_aggregates(self) -> list[ListedAggregate]:
        """Read every aggregate; the API does not paginate them."""
        return self._api.entries('/os-aggregates', 'aggregates', _aggregate)

    def read(self, hosts: abc.Iterable[str], nodes: abc.Iterable[str] = (),
             aggregates: abc.Iterable[str] = (),
             down: source.Down | None = None) -> source.Nova:
        """See ``Source``; nova-api skips cells that are ``down`` by itself."""
        hosts, nodes = frozenset(hosts), frozenset(nodes)
        requested = frozenset(aggregates)
        rows = self._nodes()
        # Of a node, the rows of other hosts count as well.
        named = nodes | {row.node for row in rows if row.host in hosts}
        rows = [row for row in rows if row.node in named]
        listed_hosts = frozenset(row.host for row in rows)
        unlisted_nodes = nodes - {row.node for row in rows}
        silent = frozenset[str]()
        if unlisted_nodes or not hosts <= listed_hosts:
            silent = silent_hosts(self.services())
        if not unlisted_nodes:
            # Otherwise any silent host may have these nodes.
            silent &= hosts
        related = hosts | listed_hosts
        listed = [
            dataclasses.replace(aggregate, hosts=aggregate.hosts & related)
            for aggregate in self.all_aggregates()
            if aggregate.hosts & related or aggregate.uuid in requested]
        return _nova(listed, rows, silent, unlisted_nodes)

    def read_all(self) -> source.Nova:
        rows = self._nodes()
        # Read after the nodes, to detect a cell that goes down meanwhile.
        services = self.services()
        silent = silent_hosts(services)
        nova = _nova(self.all_aggregates(), rows, silent)
        hosts = frozenset(service.host for service in services)
        return dataclasses.replace(
            nova, unlisted=hosts - silent - nova.hosts())

    def _nodes(self) -> list[source.NodeRow]:
        """Read every compute node that nova-api lists, with its host."""
        # Nova-api shows no cells, and lists no node of an unmapped host.
        return [source.NodeRow('', uuids.canonical(node), host)
                for node, host, _name in self._hypervisors()]

    def _hypervisors(self) -> set[tuple[str, str, str]]:
        """Read UUID, host and name of each hypervisor, page by page."""
        nodes: set[tuple[str, str, str]] = set()
        marker = ''
        while True:
            try:
                page = self._api.entries(
                    '/os-hypervisors/detail' + marker, 'hypervisors', _node)
            except exceptions.NovaUnavailable as exc:
                silent = frozenset[str]()
                with contextlib.suppress(exceptions.MirrorError):
                    silent = silent_hosts(self.services())
                if not silent:
                    raise
                raise exceptions.NovaUnavailable.again(dataclasses.replace(
                    exc.failure, consequence='it lists no compute nodes while '
                    'a cell is down, and reports status UNKNOWN for %s'
                    % plurals.some(silent))) from exc
            # Nova-api omits nodes without a service, so a page may be short
            # or lack a link to the next. The last one has no further node.
            if nodes.issuperset(page):
                return nodes
            nodes.update(page)
            markers = [node for node, *_others in page if uuids.is_uuid(node)]
            if not markers:
                raise exceptions.NovaUnavailable(
                    'lists a page of compute nodes without a UUID, after '
                    'which it finds no other page', 'nova-api')
            marker = '?marker=' + markers[-1]

    def node_names(self, nodes: abc.Collection[str]) -> abc.Mapping[str, str]:
        return {uuids.canonical(node): name
                for node, _host, name in self._hypervisors()
                if name and uuids.canonical(node) in nodes}

    def hosts(self) -> frozenset[str]:
        """Read the hosts with nova-compute, also of cells that are down."""
        return frozenset(service.host for service in self.services())

    def services(self) -> list[ListedService]:
        return self._api.entries(
            '/os-services?binary=nova-compute', 'services', _service)

    def enable(self, service: ListedService) -> None:
        self._api.update('/os-services/' + service.id, {'status': 'enabled'})


def silent_hosts(services: abc.Iterable[ListedService]) -> frozenset[str]:
    """Return the hosts of cells that do not answer nova-api."""
    return frozenset(service.host for service in services
                     if service.status == UNKNOWN)


def cells_of(hosts: frozenset[str]) -> source.Down:
    """Return one entry for all cells of these hosts, whose status is unknown.

    Messages put "cell" before its name, which is "of hosts NAMES".
    """
    if not hosts:
        return {}
    names = plurals.some(hosts)
    noun = 'hosts' if len(hosts) > 1 else 'host'
    return {'of %s %s' % (noun, names): exceptions.CellUnavailable.of(
        causes.STATUS_UNKNOWN.with_detail(names), PARTY).failure}


def _nova(aggregates: abc.Iterable[ListedAggregate],
          rows: abc.Iterable[source.NodeRow], silent: frozenset[str],
          unlisted_nodes: frozenset[str] = frozenset()) -> source.Nova:
    # Each node that is listed counts: mappings and cells are not shown.
    nova = _collected(aggregates).with_nodes(rows, homes={}, complete=True)
    cells_down = {**cells_of(silent)}
    hosts_down = dict.fromkeys(
        nova.members.keys() & silent, frozenset(cells_down))
    if unlisted_nodes:
        # They are deleted, or in a cell that the API does not name.
        cells_down['unknown'] = exceptions.CellUnavailable.of(
            causes.UNLISTED.with_detail(plurals.some(unlisted_nodes)), PARTY
        ).failure
    return dataclasses.replace(
        # Obstacles are looked up for hosts without a node only.
        nova, obstacles=dict.fromkeys(nova.members, UNLISTED),
        unknown=dict.fromkeys(unlisted_nodes, frozenset()),
        cells_down=cells_down, hosts_down=hosts_down)


def _collected(aggregates: abc.Iterable[ListedAggregate]) -> source.Nova:
    return source.Nova.of_aggregates(
        (aggregate.id, aggregate.uuid, aggregate.name, *aggregate.hosts)
        for aggregate in aggregates)


def _aggregate(call: errors.Call, entry: dict[str, Any]) -> ListedAggregate:
    hosts, number = entry.get('hosts'), entry.get('id')
    zone = entry.get('availability_zone') or ''
    if not isinstance(hosts, list) or not isinstance(number, int):
        raise call.malformed('an aggregate without an id or hosts')
    if not isinstance(zone, str):
        raise call.malformed('an aggregate with a zone that is no text')
    host_names = (string(call, {'host': host}, 'host') for host in hosts)
    return ListedAggregate(
        id=number, uuid=string(call, entry, 'uuid'),
        name=string(call, entry, 'name') or source.UNNAMED,
        hosts=frozenset(filter(None, host_names)), zone=zone)


def _node(call: errors.Call, entry: dict[str, Any]) -> tuple[str, str, str]:
    """Return UUID, host and name of a hypervisor, as nova has them."""
    service = entry.get('service')
    if not isinstance(service, dict):
        raise call.malformed('a hypervisor without a service')
    # Nova's column of the name is nullable.
    return (string(call, entry, 'id'), string(call, service, 'host'),
            str(entry.get('hypervisor_hostname') or ''))


def _service(call: errors.Call, entry: dict[str, Any]) -> ListedService:
    return ListedService(
        string(call, entry, 'host'), text(call, entry, 'status'),
        str(entry.get('id') or ''), str(entry.get('disabled_reason') or ''))


def uuid(call: errors.Call, entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not uuids.is_uuid(value):
        raise call.malformed('an entry whose %s is not a UUID' % key)
    return value


def text(call: errors.Call, entry: dict[str, Any], key: str) -> str:
    """Return a text that is not empty, unlike ``string``."""
    if not entry.get(key):
        raise call.malformed('an entry without %s' % key)
    return string(call, entry, key)


def string(call: errors.Call, entry: dict[str, Any], key: str) -> str:
    """Return a text of nova's database, which may be empty."""
    value = entry.get(key)
    if not isinstance(value, str):
        raise call.malformed('an entry without %s' % key)
    return value


def _refusal(call: errors.Call, response: Any, body: Any, step: str
             ) -> exceptions.MirrorError:
    """Create the error for a response with a status other than 200."""
    if response.status_code == 406:
        call = dataclasses.replace(
            call, kind=exceptions.UnexpectedNova,
            step=step or 'use nova 19.0 (Stein) or later')
    # Nova's error document is {"forbidden": {"message": ..., "code": 403}}.
    details = body.values() if isinstance(body, dict) else ()
    messages = [
        error['message'] for error in details
        if isinstance(error, dict) and isinstance(error.get('message'), str)]
    # Any other 404 is that of a wrong address.
    is_gone = isinstance(body, dict) and 'itemNotFound' in body
    return errors.unexpected(call, response, ' '.join(messages),
                             cause=GONE if is_gone else None)
