# SPDX-License-Identifier: Apache-2.0
"""A nova-api with nova's own mirroring, beside one with this package."""

from collections.abc import Iterator
import contextlib
import pathlib

from keystoneauth1 import adapter

from benchmarks import program
from tests.cloud import cloud
from tests.cloud import config

OPTIONS: config.Options = {'aggregate_mirror': {'hooks': ''}}
"""With them this package leaves nova as it is."""
NAME = 'stock'
ACTIVE = 'Host aggregates are mirrored to placement by nova-aggregate-mirror'
"""What a nova-api that this package serves logs at its start."""


@contextlib.contextmanager
def nova_api(running: cloud.Cloud, server: cloud.Server | None = None
             ) -> Iterator[adapter.Adapter]:
    """Run one beside the others.

    :raises Void: when this package is active in it
    """
    with running.another_nova_api(NAME, OPTIONS, server) as nova:
        log = pathlib.Path(running.config.path('log/%s.log' % NAME))
        if ACTIVE in log.read_text(errors='replace'):
            raise program.Void('The nova-api that is to be stock nova has '
                               'this package in it')
        yield nova
