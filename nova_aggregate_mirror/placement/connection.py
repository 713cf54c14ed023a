# SPDX-License-Identifier: Apache-2.0
"""Access to placement, by nova.conf or as the caller opens a connection."""

import atexit
from collections import abc
import contextlib
import dataclasses
import functools
import math
import threading
import time

import openstack
from openstack import proxy
from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import library_errors
from nova_aggregate_mirror.limits import deadline

LOG = logging.getLogger(__name__)
_GROUP = 'placement'
REDISCOVERY = 5.0
"""Minimum seconds between two reads of the catalog, each of which takes a new
token: failures for one provider must not cost the others that much."""


@dataclasses.dataclass(frozen=True)
class Target:
    """An SDK client with the URL of placement."""

    client: proxy.Proxy
    selection: str
    """What was looked for in the catalog."""
    endpoint: str
    sdk: openstack.connection.Connection
    """The connection of ``client``, which only has a weak reference to it."""

    def close(self) -> None:
        """Close the connections that no request uses."""
        # The SDK caches clients: their idle sockets would stay open.
        self.client.session.session.close()


class Access:
    """Access to placement: an SDK client that the first request creates.

    :param open: returns an SDK connection; it makes no request yet
    :param party: returns placement, as errors name it
    :param timeout: returns seconds per method call outside of a deadline
    """

    def __init__(self, open: abc.Callable[[], openstack.connection.Connection],
                 party: errors.Parties, timeout: abc.Callable[[], float]
                 ) -> None:
        self._open = open
        self.party = party
        self.timeout = timeout
        self._lock = threading.Lock()
        self.target: Target | None = None
        self.has_answered = False
        self.may_have_moved = False
        """Whether placement may have moved since the catalog was read."""
        self._rediscovered = -math.inf

    @property
    def endpoint(self) -> str:
        """URL of placement; empty if it is not known yet."""
        return self.target.endpoint if self.target else ''

    def connect(self) -> tuple[Target, abc.Mapping[str, str]]:
        """Return a client with a known endpoint, and the token headers."""
        # Keystoneauth also locks around tokens, but without a timeout.
        if not self._lock.acquire(timeout=deadline.remaining()):
            raise TimeoutError('another request is still waiting for a token')
        try:
            target, now = self.target, time.monotonic()
            if target is None:
                target = self.target = _connect(self._open())
            elif (self.may_have_moved
                  and now >= self._rediscovered + REDISCOVERY):
                self._rediscovered, self.may_have_moved = now, False
                if not target.client.endpoint_override:
                    target = self.target = self._rediscover(target)
            with errors.parsing():
                return target, target.client.session.get_auth_headers() or {}
        finally:
            self._lock.release()

    def _rediscover(self, target: Target) -> Target:
        """Return a client of the current catalog, if it has another URL."""
        call = errors.Call(self.party, 'looking at the catalog')
        try:
            # Half of the time is left to the request.
            with deadline.within(deadline.remaining() / 2), \
                    errors.translated(call), contextlib.ExitStack() as stack:
                sdk = self._open()
                if sdk is target.sdk:
                    sdk.session.invalidate()
                else:
                    # Nothing else closes the connections opened here; if this
                    # client replaces the other one, it opens them again.
                    stack.callback(sdk.session.session.close)
                current = _connect(sdk)
        except exceptions.MirrorError as exc:
            # The failure after which placement may have moved is reported.
            LOG.debug('The catalog could not be looked at: %s', exc)
            return target
        if current.endpoint == target.endpoint:
            return target
        target.close()
        LOG.info('Placement has moved: %s',
                 errors.without_secrets(current.endpoint))
        return current

    def drop(self, target: Target | None) -> None:
        """Drop the given client, unless it has been replaced."""
        if target is not None and self.target is target:
            self.target = None
            # The next client may share the session: it needs a new token.
            target.client.session.invalidate()
            target.close()


def configured(conf: cfg.ConfigOpts) -> Access:
    """Return the access by the ``[placement]`` section of nova.conf."""
    def open() -> openstack.connection.Connection:
        sdk = openstack.connection.Connection(
            session=auth.session(conf, _GROUP), oslo_conf=conf,
            service_types=[_GROUP])
        # The SDK would keep it until the process exits.
        atexit.unregister(sdk.close)
        return sdk

    return Access(
        open, functools.cache(lambda: auth.party(conf, _GROUP)),
        lambda: float(conf.aggregate_mirror.request_timeout))


def _connect(sdk: openstack.connection.Connection) -> Target:
    """Request a token, the catalog and the version document of placement.

    The endpoint is empty if discovery finds none.
    """
    selected = (sdk.config.get_region_name(_GROUP),
                sdk.config.get_interface(_GROUP))
    with errors.parsing(), library_errors.naming_missing_endpoint(
            sdk.session, _GROUP, *selected):
        client = sdk.placement
        # Found once for all requests, because it searches the catalog.
        endpoint = client.get_endpoint() or ''
    return Target(client, library_errors.selection(*selected), endpoint, sdk)
