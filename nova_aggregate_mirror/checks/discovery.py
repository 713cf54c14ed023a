# SPDX-License-Identifier: Apache-2.0
"""Service discovery in single steps: token, endpoint, microversions."""

from collections import abc
import contextlib
import functools
import re
from typing import Any

from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading
from oslo_config import cfg

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import library_errors
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import responses

_VERSION = re.compile(r'\d+\.\d+')

PATIENCE = 15.0
"""Seconds for an answer: a diagnosis tells a slow party from a silent one."""


class Discovery:
    """Step-by-step discovery of one service, to find the step that fails.

    Each step takes at most ``PATIENCE``, and raises only ``Retriable`` and
    ``Permanent`` errors of this package.
    """

    def __init__(self, conf: cfg.ConfigOpts, group: str) -> None:
        self.conf = conf
        self.group = group
        self.account = auth.Account(conf, group)

    def authenticate(self) -> None:
        """Get a token.

        :raises MissingCredentials: with the names of the missing options
        :raises NotAuthorized: when keystone refuses the credentials
        """
        with self._request(self._call('getting a token')) as adapter:
            adapter.session.get_auth_headers()

    def endpoint(self) -> str:
        """Return the endpoint.

        :raises ServiceUnreachable: when the catalog has none, as nova.conf
            selects it
        """
        with self._request(self._call('finding the endpoint')) as adapter:
            with library_errors.looking_up(
                    adapter.session, adapter.service_type):
                url: str | None = adapter.get_endpoint()
                if not url:
                    raise ks_exceptions.EndpointNotFound
            return url

    def offered(self) -> list[tuple[str, str]]:
        """List the region and interface of each endpoint in the catalog."""
        with self._request(self._call('reading the catalog')) as adapter:
            plugin: Any = adapter.session.auth
            if not hasattr(plugin, 'get_access'):
                return []
            catalog = plugin.get_access(adapter.session).service_catalog
            return library_errors.endpoints(catalog, adapter.service_type)

    def microversions(self, endpoint: str) -> tuple[str, str]:
        """Return the oldest and the newest microversion of the service.

        The request needs no token.
        """
        url = endpoint.rstrip('/') + '/'
        call = self._call('GET %s' % url, url)
        with self._request(call) as adapter:
            response = adapter.session.get(
                url, authenticated=False, raise_exc=False,
                headers={'Accept': 'application/json'})
        match responses.document(call, response, None):
            case {'versions': [{'min_version': str(oldest),
                                'max_version': str(newest)}, *_]} if all(
                    map(_VERSION.fullmatch, (oldest, newest))):
                return oldest, newest
        raise call.malformed('no microversions')

    def _call(self, occasion: str, url: str = '') -> errors.Call:
        options = self.conf[self.group]
        interfaces = ','.join(options.valid_interfaces or ['public'])
        return errors.Call(
            lambda: self.account.party, occasion, url,
            errors.selection(options.region_name, interfaces))

    @contextlib.contextmanager
    def _request(self, call: errors.Call) -> abc.Iterator[ks_adapter.Adapter]:
        """Yield the adapter; bound its requests and translate errors."""
        with deadline.within(PATIENCE), \
                errors.translated(call):
            adapter = self._adapter
            with errors.parsing():
                yield adapter

    @functools.cached_property
    def _adapter(self) -> ks_adapter.Adapter:
        session = auth.session(self.conf, self.group)
        try:
            return loading.load_adapter_from_conf_options(
                self.conf, self.group, session=session)
        except TypeError as exc:
            # Mutually exclusive options, or an unknown interface.
            raise exceptions.InvalidConfiguration(
                '[%s] is not valid: %s' % (self.group, exc)) from exc


def unset(conf: cfg.ConfigOpts, group: str, names: abc.Iterable[str]
          ) -> list[str]:
    """Register options for a password; return which have no value, nor ID."""
    values = conf[auth.section(conf, group)]
    for option in loading.get_auth_plugin_conf_options('password'):
        # Another plugin may have it, with another help.
        with contextlib.suppress(cfg.DuplicateOptError):
            conf.register_opt(option, group=auth.section(conf, group))
    absent = []
    for name in names:
        regular = name.replace('username', 'user_name')
        if not values[name] and not values[regular.replace('_name', '_id')]:
            absent.append(name)
    return absent
