# SPDX-License-Identifier: Apache-2.0
"""A nova-api with nova's own mirroring, for comparison."""

from collections import abc
import contextlib
import pathlib

from keystoneauth1 import adapter

from benchmarks import services
from tests.cloud import cloud
from tests.cloud import config
from tests.cloud import programs

OPTIONS: config.Options = {'aggregate_mirror': {'mode': 'observe'}}
"""Options that disable this package."""
NAME = 'stock'
ACTIVE = 'Attached to nova\'s aggregate operations'
"""Log message of a nova-api with this package at its start."""


@contextlib.contextmanager
def nova_api(running: cloud.Cloud, server: programs.Server | None = None
             ) -> abc.Iterator[adapter.Adapter]:
    """Run an additional nova-api without this package.

    :raises Void: when this package is active in it
    """
    with running.another_nova_api(NAME, OPTIONS, server) as nova:
        log = pathlib.Path(running.config.path('log/%s.log' % NAME))
        if ACTIVE in log.read_text(errors='replace'):
            raise services.Void(
                'This package is active in the nova-api that must be stock '
                'nova')
        yield nova
