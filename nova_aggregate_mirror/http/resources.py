# SPDX-License-Identifier: Apache-2.0
"""Adapters of the services that have names, and images of glance."""

from collections import abc
import dataclasses
from typing import Any

from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import loading
from oslo_config import cfg
import requests

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import library_errors
from nova_aggregate_mirror.http import repeats

# Attributes of an image that nova reads. Its objects take them as keywords.
_READ = frozenset({
    'checksum', 'container_format', 'created_at', 'disk_format', 'id',
    'min_disk', 'min_ram', 'name', 'owner', 'size', 'status', 'updated_at',
    'visibility'})
# Others, which nova omits (nova/image/glance.py); all else are properties.
_OMITTED = frozenset({
    'direct_url', 'file', 'locations', 'os_hash_algo', 'os_hash_value',
    'os_hidden', 'protected', 'schema', 'self', 'stores', 'tags',
    'virtual_size'})


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of resource that has a name."""

    noun: str
    service: str
    group: str
    """Section of nova.conf that selects the endpoint."""
    credentials: str
    """Section of nova.conf that has the account."""
    path: str
    versions: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, hash=False)
    """The versions to discover; by default ``path`` has one."""


PROJECT = Kind('project', 'keystone', 'keystone', 'placement', '/projects',
               {'min_version': (3, 0), 'max_version': (3, 'latest')})
IMAGE = Kind('image', 'glance', 'glance', 'placement', '/v2/images')
NETWORK = Kind('network', 'neutron', 'neutron', 'neutron', '/v2.0/networks')


def adapter(conf: cfg.ConfigOpts, kind: Kind) -> ks_adapter.Adapter:
    """Build an adapter for the service with the options of nova.conf."""
    return loading.load_adapter_from_conf_options(
        conf, kind.group, session=auth.session(conf, kind.credentials),
        **kind.versions)


def get(adapter: ks_adapter.Adapter, call: errors.Call, path: str,
        *statuses: int) -> requests.Response:
    """Send a GET request; raise a MirrorError unless 200 or ``statuses``."""
    # The session parses the token and the catalog.
    with errors.parsing(), library_errors.looking_up(
            adapter.session, adapter.service_type, adapter.region_name,
            adapter.interface):
        response: requests.Response = adapter.get(path, raise_exc=False)
    if response.status_code not in (200, *statuses):
        raise errors.unexpected(call, response)
    return response


def party(conf: cfg.ConfigOpts, kind: Kind) -> errors.Parties:
    """Return a function that describes the service with its options."""
    return lambda: auth.party(conf, kind.credentials, kind.group)


@repeats.repeating
def read_image(conf: cfg.ConfigOpts, image: str) -> dict[str, Any]:
    """Read an image, in the form that nova makes of glance's document.

    :raises MirrorError: glance could not be read, or does not have it
    :raises RuntimeError: the caller has set no deadline
    """
    call = errors.Call(
        party(conf, IMAGE), 'reading image %s' % image,
        step='give its properties with --image-property instead')
    with errors.translated(call):
        response = get(adapter(conf, IMAGE), call,
                       '%s/%s' % (IMAGE.path, image), 404)
        if response.status_code == 404:
            raise exceptions.UnknownName(
                'glance has no image %s that this user can see; give its ID, '
                'or its properties with --image-property' % image)
        with errors.parsing():
            items = response.json().items()
            attributes = {name: value for name, value in items
                          if name in _READ}
            properties = {name: value for name, value in items
                          if name not in _READ | _OMITTED}
            return {**attributes, 'properties': properties}
