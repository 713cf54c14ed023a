# SPDX-License-Identifier: Apache-2.0
"""Servers of a situation: created, moved and deleted."""

from collections import abc
from typing import Any

from tests.cloud.situations import scene

HOST = 'OS-EXT-SRV-ATTR:host'
TASK = 'OS-EXT-STS:task_state'
IMAGE, NETWORK = 'empty', 'public'
ACTIONS: abc.Mapping[str, abc.Mapping[str, Any]] = {
    'migrate': {'migrate': None},
    'live-migrate': {'os-migrateLive': {
        'host': None, 'block_migration': 'auto'}},
    'evacuate': {'evacuate': {}},
    'unshelve': {'unshelve': None}}
"""Operation, as the explanation calls it, to the action in nova's API."""


class Create:
    """The creation of one or more servers.

    :param values: further values of the server in nova's API
    :param explained: arguments of the explanation besides ``--server``; with
        ``--flavor`` among them they replace it
    """

    def __init__(self, at: scene.Scene, flavor: str, zone: str = '',
                 image: str = '', count: int = 1,
                 hints: abc.Mapping[str, Any] = {},
                 values: abc.Mapping[str, Any] = {},
                 explained: abc.Sequence[str] = (), nova: Any = None) -> None:
        self._scene = at
        self._nova = nova or at.nova
        named = {'availability_zone': zone} if zone else {}
        network = {'uuid': network_of(at)}
        self._body = {'server': {
            'flavorRef': flavor, 'imageRef': image or image_of(at),
            'networks': [network], 'min_count': count, 'max_count': count,
            **named, **values}}
        if hints:
            self._body['os:scheduler_hints'] = hints
        self._explained = explained
        self._name = self.id = ''
        self.servers: list[dict[str, Any]] = []
        """The servers in their final status, as nova's API shows them."""

    def request(self) -> Any:
        """Request the servers; delete those of an earlier attempt."""
        if self.id:
            self._delete(self._name)
        self._name = self._body['server']['name'] = self._scene.name('server')
        answer = self._nova.post('/servers', json=self._body, raise_exc=False)
        if answer.ok:
            self.id = answer.json()['server']['id']
            self._scene.later(self._delete, self._name)
        return answer

    def make(self) -> scene.Outcome:
        """Create the servers, and wait until nova is done with them."""
        answer = self.request()
        if not answer.ok:
            return _refusal(answer)
        at, building = self._scene, '/servers?all_tenants=1&status=BUILD&name='

        def settled() -> bool:
            # Nova reads the details, but not this list, from neutron.
            if at.nova.get(building + self._name).json()['servers']:
                return False
            self.servers = self._named(self._name)
            # Nova sets the status ERROR first, and the fault later.
            unsettled = [server for server in self.servers
                         if server['status'] != 'ACTIVE'
                         and 'fault' not in server]
            return bool(self.servers) and not unsettled

        at.wait_until(settled, 'nova is done with %s' % self.id)
        faults = [server['fault']['message'] for server in self.servers
                  if server['status'] != 'ACTIVE']
        return scene.Outcome(
            frozenset(server[HOST] for server in self.servers if not faults),
            faults[0] if faults else '')

    def arguments(self) -> abc.Sequence[str]:
        if '--flavor' in self._explained:
            return self._explained
        return ['--server', self.id, *self._explained]

    def _named(self, name: str) -> list[dict[str, Any]]:
        return self._scene.nova.get(
            '/servers/detail?all_tenants=1&name=%s' % name).json()['servers']

    def _delete(self, name: str) -> None:
        for server in self._named(name):
            delete(self._scene, server['id'])


class Move:
    """A move to a host that nova-scheduler finds, and its explanation."""

    def __init__(self, at: scene.Scene, server: str, *operation: str,
                 action: abc.Mapping[str, Any] | None = None) -> None:
        self._scene = at
        self._server = server
        self._operation = operation
        self._action = action or ACTIONS[operation[0]]

    def make(self) -> scene.Outcome:
        at = self._scene
        before = read(at, self._server)
        answer = at.nova.post('/servers/%s/action' % self._server,
                              json=self._action, raise_exc=False)
        if not answer.ok:
            return _refusal(answer)
        request = answer.headers['x-openstack-request-id']
        found = [scene.Outcome(frozenset())]

        def settled() -> bool:
            shown = action(at, self._server, request)
            results = [one['result'] for one in shown['events']]
            server = read(at, self._server)
            if server[TASK] or not results or None in results:
                return False
            # Nova lists the newest event first.
            messages = [one['details'] or one['event']
                        for one in reversed(shown['events'])
                        if one['result'] == 'Error']
            # A rebuild is the only move that stays.
            moved = not messages and server[HOST] and (
                'rebuild' in self._action or server[HOST] != before[HOST])
            destinations = [server[HOST]] if moved else []
            message = ''.join(messages[:1]) or 'status ' + server['status']
            found[:] = [scene.Outcome(frozenset(destinations), message)]
            return True

        at.wait_until(settled, 'nova is done with %s' % self._action)
        return found[0]

    def arguments(self) -> abc.Sequence[str]:
        return ['--server', self._server, '--for', *self._operation]


def resize(at: scene.Scene, server: str, flavor: str,
           move: type[Move] = Move) -> Move:
    """Return the resize of a server to a flavor."""
    return move(at, server, 'resize', flavor,
                action={'resize': {'flavorRef': flavor}})


def boot(at: scene.Scene, flavor: str, host: str = '', zone: str = '',
         **values: Any) -> str:
    """Create a server that has to run; return its ID."""
    made = Create(at, flavor, zone, **values)
    outcome = made.make()
    if not outcome.hosts or (host and outcome.hosts != {host}):
        raise scene.Failed('a server is not on %s: %s' % (host, outcome))
    return made.id


def read(at: scene.Scene, server: str) -> dict[str, Any]:
    """Return a server, as nova's API shows it."""
    answer = at.nova.get('/servers/%s' % server)
    return dict(answer.json()['server'])


def has_status(at: scene.Scene, server: str, status: str) -> bool:
    """Check whether a server has a status."""
    return bool(read(at, server)['status'] == status)


def action(at: scene.Scene, server: str, request: str) -> dict[str, Any]:
    """Return an action on a server, as nova's API shows it."""
    answer = at.nova.get(
        '/servers/%s/os-instance-actions/%s' % (server, request))
    return dict(answer.json()['instanceAction'])


def shelve(at: scene.Scene, server: str) -> None:
    """Shelve a server, and wait until it is on no host."""
    change(at, server, 'shelve', 'SHELVED_OFFLOADED')


def change(at: scene.Scene, server: str, action: str, status: str) -> None:
    """Let nova's API act on a server, and wait for a status."""
    at.nova.post('/servers/%s/action' % server, json={action: None})

    def changed() -> bool:
        shown = read(at, server)
        return shown['status'] == status and not shown[TASK]

    at.wait_until(changed, '%s of %s has ended' % (action, server))


def delete(at: scene.Scene, server: str) -> None:
    """Delete a server if it exists, and wait until its host has no more."""
    url = '/servers/%s' % server
    at.nova.delete(url, raise_exc=False)
    at.wait_until(lambda: at.nova.get(url, raise_exc=False).status_code == 404,
                  'nova has deleted %s' % server)


def _refusal(answer: Any) -> scene.Outcome:
    """Return the outcome of a request that nova-api has refused."""
    [error] = answer.json().values()
    return scene.Outcome(frozenset(), error['message'])


def image_of(at: scene.Scene) -> str:
    """Return the ID of the cloud's image."""
    found = at.cloud.rest('image').get('/v2/images?name=' + IMAGE).json()
    return str(found['images'][0]['id'])


def network_of(at: scene.Scene) -> str:
    """Return the ID of the network that all hosts reach."""
    found = at.cloud.rest('network').get(
        '/v2.0/networks?name=%s' % NETWORK).json()
    return str(found['networks'][0]['id'])
