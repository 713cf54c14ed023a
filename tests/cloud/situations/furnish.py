# SPDX-License-Identifier: Apache-2.0
"""Flavors, images, aggregates and groups, until the end of a situation."""

from collections import abc
from typing import Any

from keystoneauth1 import adapter

from tests.cloud import access
from tests.cloud.situations import scene
from tests.cloud.situations import servers


def flavor(at: scene.Scene, vcpus: int = 1, ram: int = 64, disk: int = 1,
           specs: abc.Mapping[str, str] = {}, **values: Any) -> str:
    """Create a flavor; return its ID, which is also its name."""
    name = at.name('flavor')
    at.nova.post('/flavors', json={'flavor': {
        'name': name, 'id': name, 'vcpus': vcpus, 'ram': ram, 'disk': disk,
        **values}})
    at.later(at.nova.delete, '/flavors/%s' % name)
    if specs:
        at.nova.post('/flavors/%s/os-extra_specs' % name,
                     json={'extra_specs': dict(specs)})
    return name


def consuming(at: scene.Scene, resource: str) -> str:
    """Create a flavor with one unit of a resource; return its ID."""
    return flavor(at, specs={'resources:' + resource: '1'})


def creation(at: scene.Scene, zone: str = '', vcpus: int = 1,
             specs: abc.Mapping[str, str] = {}, **values: Any
             ) -> servers.Create:
    """Return the creation of a server with a new flavor."""
    return servers.Create(at, flavor(at, vcpus, specs=specs), zone, **values)


def requiring(at: scene.Scene, trait: str, zone: str = '') -> servers.Create:
    """Return the creation of a server whose flavor requires a trait."""
    return creation(at, zone, specs={'trait:' + trait: 'required'})


def image(at: scene.Scene, **properties: str) -> str:
    """Create an image with properties; return its ID."""
    made = at.cloud.create_image(name=at.name('image'), **properties)
    at.later(at.cloud.rest('image').delete, '/v2/images/%s' % made)
    at.cloud.fill_image(made)
    return made


def zone(at: scene.Scene, *hosts: str) -> str:
    """Create a zone with hosts; return its name, also of its aggregate."""
    name = at.name('zone')
    return aggregate(at, *hosts, name=name, availability_zone=name)


def aggregate(at: scene.Scene, *hosts: str, name: str = '', **metadata: str
              ) -> str:
    """Create an aggregate with hosts and metadata; return its name."""
    name = name or at.name('aggregate')
    at.nova.post('/os-aggregates', json={'aggregate': {
        'name': name, 'availability_zone': metadata.pop(
            'availability_zone', None)}})
    at.later(at.cloud.delete_aggregates, name)
    if metadata:
        _act(at, name, 'set_metadata', metadata=metadata)
    for host in hosts:
        add_host(at, name, host)
    return name


def add_host(at: scene.Scene, name: str, host: str) -> None:
    """Add a host to an aggregate."""
    _act(at, name, 'add_host', host=host)


def remove_host(at: scene.Scene, name: str, host: str) -> None:
    """Remove a host from an aggregate."""
    _act(at, name, 'remove_host', host=host)


def uuid(at: scene.Scene, name: str) -> str:
    """Return the UUID of an aggregate."""
    return str(at.cloud.aggregates()[name]['uuid'])


def group(at: scene.Scene, policy: str, **rules: int) -> str:
    """Create a server group; return its ID."""
    ruled = {'rules': rules} if rules else {}
    made: str = access.create(at.nova, '/os-server-groups', server_group={
        'name': at.name('group'), 'policy': policy, **ruled})['id']
    at.later(at.nova.delete, '/os-server-groups/%s' % made)
    return made


def account(at: scene.Scene, role: str) -> str:
    """Create a user with a role in a new project; return the name of both."""
    identity, name = at.cloud.rest('identity'), at.name('account')
    project = access.create(identity, '/projects', project={
        'name': name, 'domain_id': 'default'})['id']
    at.later(identity.delete, '/projects/%s' % project)
    user = access.create(identity, '/users', user={
        'name': name, 'domain_id': 'default',
        'password': at.cloud.config.password})['id']
    at.later(identity.delete, '/users/%s' % user)
    [found] = identity.get('/roles?name=%s' % role).json()['roles']
    identity.put('/projects/%s/users/%s/roles/%s' % (
        project, user, found['id']))
    return name


def user(at: scene.Scene) -> adapter.Adapter:
    """Create a user of a new project; return its adapter for nova-api."""
    name = account(at, 'member')
    return adapter.Adapter(
        at.cloud.new_session(name, name), service_type='compute',
        endpoint_override=at.nova.get_endpoint(), default_microversion='2.96')


def _act(at: scene.Scene, name: str, action: str, **values: object) -> None:
    number = at.cloud.aggregates()[name]['id']
    at.nova.post('/os-aggregates/%s/action' % number, json={action: values})
