# SPDX-License-Identifier: Apache-2.0
"""Access to placement: through nova.conf or a given SDK connection."""

import atexit
from collections import abc
import math
import threading
import time
from typing import Any

import openstack
from openstack import exceptions as sdk_exceptions
from openstack import proxy
from oslo_config import cfg
import requests

from nova_aggregate_mirror.http import adapter
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import errors

_GROUP = 'placement'

# Minimum seconds between two replacements of a client whose endpoint may be
# stale. Each takes a token and discovery; a bad answer about one provider must
# not cost the requests for others that much.
REDISCOVERY = 5.0


class Slot:
    """The SDK client of a process, and the lock for creating it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.client: proxy.Proxy | None = None
        self.endpoint = ''
        self.sdk: openstack.connection.Connection | None = None
        """Keeps the client's connection, to which it has a weak reference."""
        self.is_announced = False
        """Whether the log has the first answer to this process."""
        self._suspected = -math.inf

    def suspect(self, client: proxy.Proxy | None) -> None:
        """Drop a client whose endpoint may be stale, but not repeatedly."""
        now = time.monotonic()
        if now >= self._suspected + REDISCOVERY:
            self._suspected = now
            self.drop(client)

    def drop(self, client: proxy.Proxy | None) -> None:
        """Drop the given client, unless it has been replaced."""
        if client is not None and self.client is client:
            self.client = self.sdk = None
            # The next client may share the session, and with it the token.
            client.session.invalidate()
            # The SDK caches clients: their idle sockets would stay open.
            client.session.session.close()

    def release(self) -> None:
        """Close the connections that no request uses; keep the token."""
        client = self.client
        if client is not None:
            client.session.session.close()


class Configured:
    """Access configured by the ``[placement]`` section of nova.conf."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._account = auth.Account(conf, _GROUP)

    @property
    def steps(self) -> errors.Steps:
        return self._account.steps

    @property
    def timeout(self) -> float:
        return float(self._conf.aggregate_mirror.request_timeout)

    def connect(self) -> openstack.connection.Connection:
        """Return an SDK connection; it makes no request yet."""
        sdk = openstack.connection.Connection(
            session=auth.session(self._conf, _GROUP),
            oslo_conf=self._conf, service_types=[_GROUP])
        # The SDK would keep it until the process exits.
        atexit.unregister(sdk.close)
        return sdk

    def place(self) -> tuple[str, str, str]:
        """Return the configured region, interfaces and endpoint, or empty."""
        group = self._conf[_GROUP]
        return (group.region_name or '',
                ','.join(group.valid_interfaces or ('public',)),
                group.endpoint_override or '')


CLIENT_STEPS = errors.Steps(
    account='correct the account in the options of the openstack client',
    catalog='correct the options of the openstack client',
    scope='add a project to the options of the openstack client',
    # The token may have been given, and be old.
    token='unless your token has expired, correct auth_url of '
          '[keystone_authtoken] in placement.conf, and restart placement',
    role='give your user the role admin, or another that may do this',
    cafile='OS_CACERT', selection='the options of the openstack client')


class Connected:
    """Access through an SDK connection, with clouds.yaml and the catalog.

    :param sdk: the connection; its session is bounded by deadlines from now
        on, for all its users
    :param timeout: seconds per method call outside of a deadline
    """

    steps = CLIENT_STEPS

    def __init__(self, sdk: openstack.connection.Connection,
                 timeout: float) -> None:
        self._sdk = sdk
        self.timeout = timeout
        adapter.bound(sdk.session)

    def connect(self) -> openstack.connection.Connection:
        return self._sdk

    def place(self) -> tuple[str, str, str]:
        config = self._sdk.config
        interface = config.get_interface(_GROUP) or 'public'
        if not isinstance(interface, str):
            interface = ','.join(interface)
        return (config.get_region_name(_GROUP) or '', interface,
                config.get_endpoint(_GROUP) or '')


def endpoint(sdk: openstack.connection.Connection, client: proxy.Proxy
             ) -> str:
    """Return the URL of placement; empty if its discovery finds none.

    :raises ServiceDisabledException: when the catalog has no placement; older
        SDKs raise another error before this call
    :raises EmptyCatalog: when the token has no catalog, which the SDK does
        not tell from that
    """
    try:
        return client.get_endpoint() or ''
    except sdk_exceptions.ServiceDisabledException:
        auth.check_catalog(sdk.session)
        raise


def send(client: proxy.Proxy, method: str, url: str, microversion: str,
         headers: abc.Mapping[str, str], **options: Any) -> requests.Response:
    """Send one request; return its response, whatever the status."""
    # The SDK's own request method looks up the token's project and may return
    # a cached response.
    return client.session.request(
        url, method, microversion=microversion,
        microversion_service_type=_GROUP,
        headers={**headers, 'Accept': 'application/json'}, raise_exc=False,
        # Only the deadline limits, even if the session has retries.
        connect_retries=0,
        # The token has been fetched, where waiting is bounded.
        authenticated=False, **options)
