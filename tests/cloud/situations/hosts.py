# SPDX-License-Identifier: Apache-2.0
"""Compute hosts: their services, providers in placement, and their cell."""

from collections import abc
import pathlib
from typing import Any
import uuid

from keystoneauth1 import exceptions
import sqlalchemy as sa

from tests.cloud.faults import wires
from tests.cloud.situations import scene
from tests.cloud import sql

_FURTHER = '# Until the end of the situation.\n'


def disable(at: scene.Scene, *hosts: str) -> None:
    """Disable nova-compute on hosts until the situation ends."""
    for host in hosts:
        at.later(enable, at, host)
        _put(at, host, {'status': 'disabled'})


def enable(at: scene.Scene, host: str) -> None:
    """Enable nova-compute on a host."""
    _put(at, host, {'status': 'enabled'})


def force_down(at: scene.Scene, host: str) -> None:
    """Force nova-compute on a host down until the situation ends."""
    at.later(_put, at, host, {'forced_down': False})
    _put(at, host, {'forced_down': True})


def kill(at: scene.Scene, host: str) -> None:
    """Kill nova-compute of a host until the end; return when it is down."""
    at.later(start, at, host)
    at.cloud.process(host).kill()
    at.wait_until(lambda: _service(at, host)['state'] == 'down',
                  'nova considers %s to be down' % host)


def start(at: scene.Scene, host: str) -> None:
    """Start nova-compute unless it runs, and wait for its report."""
    if at.cloud.process(host).alive():
        return
    before = _service(at, host)['updated_at']
    at.cloud.start(host)
    _wait_reported(at, host, before)


def restart(at: scene.Scene, host: str) -> None:
    """Restart nova-compute on a host."""
    at.cloud.process(host).kill()
    start(at, host)


def configure(at: scene.Scene, host: str, options: str) -> None:
    """Restart nova-compute on a host with further options, or with none."""
    path = pathlib.Path(at.cloud.config.path('%s.conf' % host))
    plain = path.read_text().partition(_FURTHER)[0]
    path.write_text(plain + _FURTHER + options if options else plain)
    restart(at, host)


def capacity(at: scene.Scene, host: str, resource: str, amount: int) -> None:
    """Let a host have an amount, by a ratio, which nova-compute keeps."""
    own, part = provider(at, host), 'inventories/%s' % resource
    found = at.placement.get('/resource_providers/%s/%s' % (own, part)).json()
    # Slightly more, because the product is rounded down.
    ratio = (amount + 0.01) / (found['total'] - found['reserved'])

    def write(ratio: float) -> None:
        at.cloud.change_provider(
            own, part, lambda _found: {'allocation_ratio': ratio})

    at.later(write, found['allocation_ratio'])
    write(ratio)


def add_trait(at: scene.Scene, host: str, name: str) -> None:
    """Give a host's provider a trait until the situation ends."""
    own = provider(at, host)
    at.later(change_traits, at, own, set(), {name})
    change_traits(at, own, {name}, set())


def custom_name() -> str:
    """Return a new name for a trait or a resource class."""
    return 'CUSTOM_%s' % uuid.uuid4().hex[:8].upper()


def custom_trait(at: scene.Scene, *hosts: str) -> str:
    """Create a trait that hosts have until the end; return its name."""
    name = custom_name()
    at.placement.put('/traits/%s' % name)
    for host in hosts:
        add_trait(at, host, name)
    return name


def traits(at: scene.Scene, provider: str) -> list[str]:
    """Return the traits of a provider."""
    answer = at.placement.get('/resource_providers/%s/traits' % provider)
    return list(answer.json()['traits'])


def change_traits(at: scene.Scene, provider: str, add: set[str],
                  remove: set[str]) -> None:
    """Change the traits of a provider."""
    def changed(found: dict[str, Any]) -> dict[str, Any]:
        kept = add.union(found['traits']) - remove
        return {'traits': sorted(kept)}

    at.cloud.change_provider(provider, 'traits', changed)


def provider(at: scene.Scene, host: str) -> str:
    """Return the UUID of the provider of a host with a single node."""
    [found] = [node.uuid for node in at.cloud.nodes() if node.host == host]
    return found


def child(at: scene.Scene, host: str, resource: str, total: int) -> str:
    """Create a provider below a host's, with a resource; return its UUID."""
    made = str(uuid.uuid4())
    at.placement.put('/resource_classes/%s' % resource)
    at.placement.post('/resource_providers', json={
        'uuid': made, 'name': at.name('child'),
        'parent_provider_uuid': provider(at, host)})
    url = '/resource_providers/%s' % made
    # After the deletion, because nova-compute remembers its child providers.
    at.later(restart, at, host)
    at.later(at.placement.delete, url)
    at.placement.put(url + '/inventories', json={
        'resource_provider_generation': 0,
        'inventories': {resource: {'total': total}}})
    return made


def member(at: scene.Scene, host: str, aggregate: str, belongs: bool) -> None:
    """Change a provider's aggregates, as another tool would."""
    change = frozenset.union if belongs else frozenset.difference
    at.cloud.change_aggregates(
        provider(at, host), lambda before: change(before, {aggregate}))


def wait_member(at: scene.Scene, provider: str, aggregate: str) -> None:
    """Wait until the agent has added a provider to an aggregate."""
    def belongs() -> bool:
        return aggregate in (at.cloud.associations(provider) or ())

    at.wait_until(belongs, 'provider %s is in its aggregate' % provider)


def lose(at: scene.Scene, host: str) -> None:
    """Kill nova-compute for evacuations; start it when all has ended."""
    def accepted() -> bool:
        # Nova refuses until the evacuated servers are removed.
        try:
            _put(at, host, {'forced_down': False})
        except exceptions.BadRequest:
            return False
        return True

    def restore() -> None:
        at.cloud.start(host)
        at.wait_until(accepted, '%s may be up' % host)
        _wait_reported(at, host, _service(at, host)['updated_at'])

    at.later(restore)
    at.cloud.process(host).kill()
    _put(at, host, {'forced_down': True})


def cell_database(at: scene.Scene) -> wires.Wire:
    """Put the database of the only cell behind a wire until the end.

    Only processes that start meanwhile use the wire, because nova reads the
    cell mappings once: nova-api shows the servers all the time.
    """
    api, url = map(at.cloud.config.database_url, ('nova_api', 'nova'))
    wire: wires.Wire = at.enter(wires.Wires()).to(sa.engine.make_url(url).port)

    def write(url: str) -> None:
        sql.execute(api, 'UPDATE cell_mappings SET database_connection = :url '
                    "WHERE name = 'cell1'", url=url)

    [(before,)] = sql.execute(
        api, 'SELECT database_connection FROM cell_mappings '
        "WHERE name = 'cell1'")
    at.later(at.schedulers.restart)
    at.later(write, before)
    write(sql.changed(url, port=wire.port))
    at.schedulers.restart()
    return wire


def _service(at: scene.Scene, host: str) -> dict[str, Any]:
    [found] = at.nova.get('/os-services?host=%s' % host).json()['services']
    return dict(found)


def _put(at: scene.Scene, host: str, values: abc.Mapping[str, Any]) -> None:
    at.nova.put('/os-services/%s' % _service(at, host)['id'],
                json=dict(values))


def _wait_reported(at: scene.Scene, host: str, before: str) -> None:
    def reported() -> bool:
        service = _service(at, host)
        return service['state'] == 'up' and service['updated_at'] != before

    at.wait_until(reported, '%s is up' % host)
