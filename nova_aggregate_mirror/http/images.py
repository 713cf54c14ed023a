# SPDX-License-Identifier: Apache-2.0
"""Read an image from glance."""

from typing import Any

from oslo_config import cfg

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import errors

_ADVICE = dict.fromkeys((
    exceptions.ServiceUnreachable, exceptions.DeadlineExceeded,
    exceptions.NotAuthorized, exceptions.ServiceFailed,
    exceptions.MalformedAnswer, exceptions.RequestRejected),
    'Give the properties of the image with --image-property instead.')
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

    :param conf: nova's configuration, with the section ``[glance]``
    :param image: its ID
    :raises MirrorError: glance could not be read, or does not have it
    """
    session, options = auth.session(conf, 'placement'), conf.glance
    doing = 'Reading image %s from glance' % image
    with errors.advising(_ADVICE), errors.translated(doing):
        # The session parses the token and the catalog.
        with errors.parsing(doing):
            response = session.get(
                '/v2/images/%s' % image, raise_exc=False,
                endpoint_override=options.endpoint_override or None,
                endpoint_filter={
                    'service_type': 'image',
                    'region_name': options.region_name,
                    'interface': options.valid_interfaces})
        if response.status_code == 404:
            raise exceptions.UnknownName(
                'glance has no image %s that this user can see; give its ID, '
                'or its properties with --image-property' % image)
        if response.status_code != 200:
            raise errors.error(
                errors.meaning_of_status(response.status_code), doing,
                'returned %d' % response.status_code)
        with errors.parsing(doing):
            found = response.json()
            return {**{name: value for name, value in found.items()
                       if name in _ATTRIBUTES},
                    'properties': {name: value for name, value
                                   in found.items()
                                   if name not in _ATTRIBUTES}}
