# SPDX-License-Identifier: Apache-2.0
"""Meaning of the errors of HTTP libraries, each of which has many classes."""

from collections import abc
import contextlib
import http.client
import itertools
from typing import Any
import urllib.parse

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import session as ks_session
from openstack import exceptions as sdk_exceptions
from oslo_config import cfg
from requests import exceptions as requests_exceptions
from requests import utils
from urllib3 import exceptions as urllib3_exceptions

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import driver_failures

Meaning = type[exceptions.MirrorError]  # What an error means in our tree.
# The first row with the class of the error, or a base class of it, applies.
_MEANING: tuple[tuple[Meaning, tuple[type[Exception], ...]], ...] = (
    (exceptions.ServiceUnreachable, (
        # Urllib3 derives this class from its timeouts.
        urllib3_exceptions.NewConnectionError,
        sdk_exceptions.ServiceDisabledException,
        ks_exceptions.ImpliedVersionMismatch,
        ks_exceptions.InvalidDiscoveryEndpoint,
        ks_exceptions.InvalidOidcDiscoveryDocument,
        ks_exceptions.OidcAccessTokenEndpointNotFound,
        ks_exceptions.OidcAuthorizationEndpointNotFound)),
    (exceptions.DeadlineExceeded, (
        ks_exceptions.ConnectTimeout, requests_exceptions.Timeout,
        urllib3_exceptions.TimeoutError, TimeoutError)),
    (exceptions.NotAuthorized, (
        ks_exceptions.AuthorizationFailure, ks_exceptions.MissingAuthMethods)),
    (exceptions.MissingCredentials, (ks_exceptions.AuthPluginException,)),
    (exceptions.InvalidConfiguration, (
        cfg.Error, sdk_exceptions.ConfigException,
        requests_exceptions.URLRequired, requests_exceptions.MissingSchema,
        requests_exceptions.InvalidSchema, requests_exceptions.InvalidURL,
        urllib3_exceptions.LocationValueError)),
    (exceptions.RequestRejected, (requests_exceptions.InvalidHeader,)),
    (exceptions.MalformedAnswer, (
        ks_exceptions.InvalidResponse, requests_exceptions.InvalidJSONError,
        requests_exceptions.ChunkedEncodingError,
        requests_exceptions.ContentDecodingError,
        urllib3_exceptions.InvalidHeader)),
    (exceptions.ServiceFailed, (
        requests_exceptions.HTTPError, requests_exceptions.TooManyRedirects)),
    (exceptions.ServiceUnreachable, (
        ks_exceptions.ClientException,
        ks_exceptions.RetriableConnectionFailure,
        sdk_exceptions.SDKException, urllib3_exceptions.HTTPError, OSError)),
    # ValueError: a redirect to an invalid URL, or a body that is logged.
    (exceptions.MalformedAnswer, (http.client.HTTPException, ValueError)))
_STATUSES: dict[int, Meaning] = {
    **dict.fromkeys((401, 403), exceptions.NotAuthorized),
    # Only placement's own error message proves that a provider is missing.
    **dict.fromkeys((404, 410), exceptions.MalformedAnswer),
    **dict.fromkeys((408, 409, 425, 429), exceptions.ServiceFailed)}
CLASSES = (*itertools.chain.from_iterable(row[1] for row in _MEANING),)
"""Every class that is translated."""
CATALOG = (ks_exceptions.CatalogException,
           sdk_exceptions.ServiceDisabledException)
"""Classes for what the catalog does not have."""
OFFERED = 3  # Other endpoints that a message names.
# Of errors that are raised above the socket.
_CAUSES: tuple[tuple[type[Exception], causes.Cause], ...] = (
    (http.client.IncompleteRead, causes.TRUNCATED),
    (requests_exceptions.ContentDecodingError, causes.UNDECODABLE),
    (http.client.HTTPException, causes.NOT_HTTP),
    (requests_exceptions.TooManyRedirects, causes.REDIRECTS))


class UnreadableBody(requests_exceptions.ContentDecodingError):
    """The body is not read; the text says what the service sent."""


class NoEndpoint(ks_exceptions.EndpointNotFound):
    """The catalog has no endpoint of a service that meets the selection."""

    def __init__(self, cause: causes.Cause) -> None:
        super().__init__()
        self.cause = cause


def selection(region: str | None, interfaces: str | list[str] | None) -> str:
    """Describe what is looked for in the catalog."""
    if not isinstance(interfaces, str):
        interfaces = ','.join(interfaces or ['public'])
    return '%sinterface %s' % (
        'region %s, ' % region if region else '', interfaces)


@contextlib.contextmanager
def naming_missing_endpoint(
        session: ks_session.Session, service_type: str | None,
        region: str | None, interfaces: str | list[str] | None
) -> abc.Iterator[None]:
    """Let errors about the catalog be ``NoEndpoint``, with its endpoints."""
    try:
        yield
    except CATALOG:
        auth: Any = session.auth
        if not hasattr(auth, 'get_access'):
            raise
        catalog = auth.get_access(session).service_catalog
        endpoints = catalog.get_endpoint_data_list(service_type, None)
        offered = sorted((endpoint.region_name or '', endpoint.interface)
                         for endpoint in endpoints)
        cause = causes.NOT_IN_CATALOG if catalog.catalog else causes.NO_CATALOG
        if offered:
            others = (selection(*endpoint) for endpoint in offered[:OFFERED])
            cause = causes.NO_ENDPOINT.with_detail(' for %s, but for %s' % (
                selection(region, interfaces), ' or '.join(others)))
        raise NoEndpoint(cause)


def meaning(exc: Exception) -> Meaning:
    """Return the class in our tree for an error that is one of ``CLASSES``."""
    exc = _wrapped(exc)
    # Keystoneauth's errors have the first attribute, the SDK's the second.
    status = getattr(exc, 'http_status', getattr(exc, 'status_code', None))
    if isinstance(status, int):
        return meaning_of_status(status)
    return next(cls for cls, classes in _MEANING if isinstance(exc, classes))


def meaning_of_status(status: int) -> Meaning:
    """Return the class in our tree for an HTTP status other than 200."""
    other: Meaning = (exceptions.RequestRejected if 400 <= status < 500
                      else exceptions.ServiceFailed)
    return _STATUSES.get(status, other)


def cause(exc: Exception, waited: float, handled: BaseException | None
          ) -> causes.Cause:
    """Return what the other party did; ``handled`` is no part of the chain."""
    chain = driver_failures.chain(exc, handled)
    if meaning(exc) is exceptions.DeadlineExceeded:
        is_connect = any(isinstance(
            error, urllib3_exceptions.ConnectTimeoutError) for error in chain)
        return (causes.NO_CONNECTION.with_detail(waited) if is_connect
                else causes.silent(waited))
    observed = next(filter(None, map(_of_error, chain)), None)
    if observed and isinstance(exc, requests_exceptions.ProxyError):
        url, variable = _proxy(exc)
        return causes.PROXY.with_detail(
            (url, observed.phrase)).with_step(variable)
    return observed or causes.UNASKED.with_detail(type(_wrapped(exc)).__name__)


def _proxy(exc: requests_exceptions.ProxyError) -> tuple[str, str]:
    """Return the URL of a proxy, without user, and its variable's name."""
    url = getattr(exc.request, 'url', None) or ''
    proxies = utils.get_environ_proxies(url)
    scheme = urllib.parse.urlsplit(url).scheme
    name = scheme if scheme in proxies else 'all'
    proxy = proxies.get(name, '')
    if '://' not in proxy:
        proxy = 'http://' + proxy
    return utils.urldefragauth(proxy), name + '_proxy'


def _of_error(error: BaseException) -> causes.Cause | None:
    if isinstance(error, UnreadableBody):
        return causes.MALFORMED.with_detail(error)
    return driver_failures.of_socket(error) or next(
        (row for cls, row in _CAUSES if isinstance(error, cls)), None)


def _wrapped(exc: Exception) -> Exception:
    """Return the innermost error that a library has wrapped, or itself."""
    inner: BaseException | None = None
    if isinstance(exc, ks_exceptions.ConnectionError):
        inner = exc.__context__
    elif isinstance(exc, (requests_exceptions.ConnectionError,
                          urllib3_exceptions.MaxRetryError,
                          urllib3_exceptions.ProtocolError)):
        reasons = getattr(exc, 'reason', None), *reversed(exc.args)
        inner = next((reason for reason in reasons
                      if isinstance(reason, Exception)), None)
    return _wrapped(inner) if isinstance(inner, CLASSES) else exc
