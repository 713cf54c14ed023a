# SPDX-License-Identifier: Apache-2.0
"""How placement is reached: as nova.conf says, or by a given connection."""

import threading
from typing import Protocol

import openstack
from openstack import proxy
from oslo_config import cfg

from nova_aggregate_mirror.http import adapter
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import errors

_GROUP = 'placement'


class Access(Protocol):
    """What the client needs to know of a deployment."""

    @property
    def timeout(self) -> float:
        """Seconds for one call."""

    def check(self) -> None:
        """Raise MissingCredentials if some are not there; no network."""

    def client(self) -> proxy.Proxy:
        """Make a client of the SDK; it may ask keystone and placement."""

    def place(self) -> tuple[str, str, str]:
        """Region, interfaces and endpoint that are asked for, or empty."""


class Slot:
    """The SDK's client in one process, and who may build it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.client: proxy.Proxy | None = None
        self.endpoint = ''

    def drop(self, client: proxy.Proxy | None) -> None:
        """Forget this client, unless another one has taken its place."""
        if client is not None and self.client is client:
            self.client = None
            # The next client may have the same session, and so its token.
            client.session.invalidate()
            # The SDK caches by client, so that its idle sockets would stay.
            client.session.session.close()


class Configured:
    """As the ``[placement]`` section of nova.conf says.

    :param conf: nova's configuration with ``[placement]`` registered
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    @property
    def timeout(self) -> float:
        return float(self._conf.aggregate_mirror.request_timeout)

    def check(self) -> None:
        auth.load(self._conf, _GROUP)

    def client(self) -> proxy.Proxy:
        return _placement(openstack.connection.Connection(
            session=auth.session(self._conf, _GROUP),
            oslo_conf=self._conf, service_types=[_GROUP]))

    def place(self) -> tuple[str, str, str]:
        group = self._conf[_GROUP]
        return (group.region_name or '',
                ','.join(group.valid_interfaces or ('public',)),
                group.endpoint_override or '')


class Connected:
    """By a connection of the SDK, which knows clouds.yaml and the catalog.

    :param sdk: the connection, whose session is bounded by deadlines from now
        on, whoever uses it
    :param timeout: seconds for one call
    """

    def __init__(self, sdk: openstack.connection.Connection,
                 timeout: float) -> None:
        self._sdk = sdk
        self.timeout = timeout
        adapter.bound(sdk.session)

    def check(self) -> None:
        """Do nothing: whoever gave the connection has seen to them."""

    def client(self) -> proxy.Proxy:
        return _placement(self._sdk)

    def place(self) -> tuple[str, str, str]:
        config = self._sdk.config
        interface = config.get_interface(_GROUP) or 'public'
        if not isinstance(interface, str):
            interface = ','.join(interface)
        return (config.get_region_name(_GROUP) or '', interface,
                config.get_endpoint(_GROUP) or '')


def _placement(sdk: openstack.connection.Connection) -> proxy.Proxy:
    # The SDK gets a token, the catalog and the version document.
    with errors.parsing('Looking for placement'):
        return sdk.placement
