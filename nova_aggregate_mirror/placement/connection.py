# SPDX-License-Identifier: Apache-2.0
"""Access to placement: through nova.conf or a given SDK connection."""

import atexit
from collections import abc
import dataclasses
import math
import threading
import time

import openstack
from openstack import proxy
from oslo_config import cfg

from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import library_errors

_GROUP = 'placement'

REDISCOVERY = 5.0
"""Minimum seconds between two looks at the catalog, each of which takes a new
token: failures for one provider must not cost the others that much."""


@dataclasses.dataclass(frozen=True)
class Target:
    """An SDK client with the URL of placement."""

    client: proxy.Proxy
    selection: str
    """What was looked for in the catalog."""
    endpoint: str
    sdk: openstack.connection.Connection
    """Its connection, to which the client has a weak reference."""

    def close(self) -> None:
        """Close the connections that no request uses."""
        # The SDK caches clients: their idle sockets would stay open.
        self.client.session.session.close()


class Slot:
    """The SDK client of a process, and the lock for creating it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.target: Target | None = None
        self.is_announced = False
        """Whether the log has the first answer to this process."""
        self.is_suspect = False
        """Whether placement may have moved since the catalog was read."""
        self._looked = -math.inf

    @property
    def endpoint(self) -> str:
        """URL of placement; empty if it is not known yet."""
        return self.target.endpoint if self.target else ''

    def may_look(self) -> bool:
        """Check whether to look at the catalog again; if so, note it."""
        now = time.monotonic()
        if not self.is_suspect or now < self._looked + REDISCOVERY:
            return False
        self._looked, self.is_suspect = now, False
        return True

    def drop(self, target: Target | None) -> None:
        """Drop the given client, unless it has been replaced."""
        if target is not None and self.target is target:
            self.target = None
            # The next client may share the session, and with it the token.
            target.client.session.invalidate()
            target.close()


@dataclasses.dataclass(frozen=True)
class Access:
    """How placement is reached.

    :param connect: returns an SDK connection; it makes no request yet
    :param timeout: returns seconds per method call outside of a deadline
    """

    connect: abc.Callable[[], openstack.connection.Connection]
    party: errors.Parties
    timeout: abc.Callable[[], float]


def configured(conf: cfg.ConfigOpts) -> Access:
    """Return the access by the ``[placement]`` section of nova.conf."""
    def connect() -> openstack.connection.Connection:
        sdk = openstack.connection.Connection(
            session=auth.session(conf, _GROUP), oslo_conf=conf,
            service_types=[_GROUP])
        # The SDK would keep it until the process exits.
        atexit.unregister(sdk.close)
        return sdk

    return Access(connect, lambda: auth.party(conf, _GROUP),
                  lambda: float(conf.aggregate_mirror.request_timeout))


def connect(sdk: openstack.connection.Connection) -> Target:
    """Request a token, the catalog and the version document of placement.

    The endpoint is empty if discovery finds none.
    """
    selected = (sdk.config.get_region_name(_GROUP),
                sdk.config.get_interface(_GROUP))
    with errors.parsing(), library_errors.looking_up(
            sdk.session, _GROUP, *selected):
        client = sdk.placement
        # It is looked up once, because that searches the whole catalog;
        # keystoneauth rejects a request without one.
        endpoint = client.get_endpoint() or ''
    return Target(client, library_errors.selection(*selected), endpoint, sdk)
