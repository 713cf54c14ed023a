# SPDX-License-Identifier: Apache-2.0
"""Read an image from glance."""

from typing import Any

from oslo_config import cfg

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import resource_names

# Attributes of an image that are not image properties.
_ATTRIBUTES = frozenset({
    'checksum', 'container_format', 'created_at', 'direct_url', 'disk_format',
    'file', 'id', 'locations', 'min_disk', 'min_ram', 'name', 'os_hash_algo',
    'os_hash_value', 'os_hidden', 'owner', 'protected', 'schema', 'self',
    'size', 'status', 'stores', 'tags', 'updated_at', 'virtual_size',
    'visibility'})


def read(conf: cfg.ConfigOpts, image: str) -> dict[str, Any]:
    """Read an image, in the form that nova uses.

    The credentials are those of ``[placement]``. The deadline of the caller
    bounds it; without one it raises ``RuntimeError``.

    :raises MirrorError: glance could not be read, or does not have it
    """
    call = errors.Call(
        'glance', 'reading image %s' % image,
        step='give its properties with --image-property instead')
    with errors.translated(call):
        glance = resource_names.adapter(conf, resource_names.IMAGE)
        # The session parses the token and the catalog.
        with errors.parsing():
            response = glance.get(
                '%s/%s' % (resource_names.IMAGE.path, image), raise_exc=False)
        if response.status_code == 404:
            raise exceptions.UnknownName(
                'glance has no image %s that this user can see; give its ID, '
                'or its properties with --image-property' % image)
        if response.status_code != 200:
            raise errors.unexpected(call, response)
        with errors.parsing():
            document = response.json()
            return {**{name: value for name, value in document.items()
                       if name in _ATTRIBUTES},
                    'properties': {name: value for name, value
                                   in document.items()
                                   if name not in _ATTRIBUTES}}
