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

Kind = type[exceptions.MirrorError]

# The first row with the class of the error, or a base class of it, applies.
_MEANING: tuple[tuple[Kind, tuple[type[Exception], ...]], ...] = (
    (exceptions.ServiceUnreachable, (
        # Urllib3 derives this class from its timeouts.
        urllib3_exceptions.NewConnectionError,
        sdk_exceptions.ServiceDisabledException,
        ks_exceptions.ImpliedVersionMismatch)),
    (exceptions.DeadlineExceeded, (
        ks_exceptions.ConnectTimeout, requests_exceptions.Timeout,
        urllib3_exceptions.TimeoutError, TimeoutError)),
    (exceptions.NotAuthorized, (
        ks_exceptions.AuthorizationFailure, ks_exceptions.MissingAuthMethods)),
    (exceptions.ServiceUnreachable, (
        ks_exceptions.InvalidDiscoveryEndpoint,
        ks_exceptions.InvalidOidcDiscoveryDocument,
        ks_exceptions.OidcAccessTokenEndpointNotFound,
        ks_exceptions.OidcAuthorizationEndpointNotFound)),
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
        urllib3_exceptions.DecodeError, urllib3_exceptions.IncompleteRead,
        urllib3_exceptions.InvalidChunkLength,
        urllib3_exceptions.ResponseNotChunked,
        urllib3_exceptions.BodyNotHttplibCompatible,
        urllib3_exceptions.InvalidHeader,
        urllib3_exceptions.HeaderParsingError)),
    (exceptions.ServiceFailed, (
        requests_exceptions.HTTPError, requests_exceptions.TooManyRedirects)),
    (exceptions.ServiceUnreachable, (
        ks_exceptions.ClientException,
        ks_exceptions.RetriableConnectionFailure,
        sdk_exceptions.SDKException, urllib3_exceptions.HTTPError, OSError)),
    # A plain ValueError is raised for a redirect to an invalid URL, and for
    # the encoding of a body that is logged.
    (exceptions.MalformedAnswer, (http.client.HTTPException, ValueError)),
)

CLASSES = (*itertools.chain.from_iterable(row[1] for row in _MEANING),)
"""Every class that is translated."""

CATALOG = (ks_exceptions.CatalogException,
           sdk_exceptions.ServiceDisabledException)
"""Classes for what the catalog does not have."""

# By errors above the socket.
_CAUSES: tuple[tuple[type[Exception], causes.Cause], ...] = (
    (http.client.IncompleteRead, causes.TRUNCATED),
    (requests_exceptions.ContentDecodingError, causes.UNDECODABLE),
    (http.client.HTTPException, causes.NOT_HTTP),
    (requests_exceptions.TooManyRedirects, causes.REDIRECTS),
)


class NotInCatalog(ks_exceptions.EndpointNotFound):
    """The catalog has no endpoint of a service, whatever is selected."""


class NotSelected(ks_exceptions.EndpointNotFound):
    """The catalog has other endpoints of a service."""

    def __init__(self, offered: list[tuple[str, str]]) -> None:
        super().__init__()
        self.offered = offered


class UnreadableBody(requests_exceptions.ContentDecodingError):
    """A body that is not read; the text says what the service sent."""


def endpoints(catalog: Any, service_type: str | None
              ) -> list[tuple[str, str]]:
    """List the region and interface of each endpoint of a service."""
    services = catalog.get_endpoints_data(service_type).values()
    return sorted((endpoint.region_name or '', endpoint.interface)
                  for endpoint in itertools.chain.from_iterable(services))


@contextlib.contextmanager
def looking_up(session: ks_session.Session, service_type: str | None
               ) -> abc.Iterator[None]:
    """Let the error for an endpoint that is not found tell what is missing.

    :raises EmptyCatalog: the token has no catalog
    :raises NotInCatalog: the catalog has no endpoint of the service
    :raises NotSelected: it has others
    """
    try:
        yield
    except CATALOG:
        auth: Any = session.auth
        if not hasattr(auth, 'get_access'):
            raise
        catalog = auth.get_access(session).service_catalog
        if not catalog.catalog:
            raise ks_exceptions.EmptyCatalog
        offered = endpoints(catalog, service_type)
        raise NotSelected(offered) if offered else NotInCatalog


def meaning(exc: Exception) -> Kind:
    """Return the class in our tree for an error that is of ``CLASSES``."""
    exc = _wrapped(exc)
    # Of the errors of keystoneauth, and of those of the SDK.
    status = getattr(exc, 'http_status', getattr(exc, 'status_code', None))
    if isinstance(status, int):
        return meaning_of_status(status)
    return next(kind for kind, classes in _MEANING if isinstance(exc, classes))


def meaning_of_status(status: int) -> Kind:
    """Return the class in our tree for an HTTP status other than 200."""
    if status in (401, 403):
        return (exceptions.Forbidden if status == 403
                else exceptions.NotAuthorized)
    if status in (404, 410):
        # Only placement's own error message proves that a provider is missing.
        return exceptions.MalformedAnswer
    if 400 <= status < 500 and status not in (408, 409, 425, 429):
        return exceptions.RequestRejected
    return exceptions.ServiceFailed


def cause(exc: Exception, waited: float, handled: BaseException | None
          ) -> causes.Cause:
    """Return what the other party of a failed request did.

    :param waited: seconds that the request took
    :param handled: see ``driver_failures.chain``
    """
    chain = driver_failures.chain(exc, handled)
    if meaning(exc) is exceptions.DeadlineExceeded:
        is_connect = any(isinstance(
            error, urllib3_exceptions.ConnectTimeoutError) for error in chain)
        return (causes.NO_CONNECTION.with_detail(waited) if is_connect
                else causes.silent(waited))
    observed = next(filter(None, map(_of_error, chain)), None)
    if observed is None:
        return causes.UNASKED.with_detail(type(_wrapped(exc)).__name__)
    if isinstance(exc, requests_exceptions.ProxyError):
        url, variable = _proxy(exc)
        return causes.PROXY.with_detail(
            (url, observed.phrase)).with_step(variable)
    return observed


def _proxy(exc: requests_exceptions.ProxyError) -> tuple[str, str]:
    """Return the URL of a proxy, without user, and its variable."""
    url = getattr(exc.request, 'url', None) or ''
    scheme = urllib.parse.urlsplit(url).scheme
    proxies = utils.get_environ_proxies(url)
    name = scheme if scheme in proxies else 'all'
    found = utils.select_proxy(url, proxies) or ''
    if '://' not in found:
        found = 'http://' + found
    return utils.urldefragauth(found), name + '_proxy'


def _of_error(error: BaseException) -> causes.Cause | None:
    if isinstance(error, UnreadableBody):
        return causes.MALFORMED.with_detail(error)
    return driver_failures.of_socket(error) or next(
        (row for cls, row in _CAUSES if isinstance(error, cls)), None)


def _wrapped(exc: Exception) -> Exception:
    """Return the innermost error that a library has wrapped, or itself."""
    if isinstance(exc, ks_exceptions.ConnectionError):
        inner = exc.__context__
        if not isinstance(inner, requests_exceptions.RequestException):
            return exc
    elif isinstance(exc, (requests_exceptions.ConnectionError,
                          urllib3_exceptions.MaxRetryError,
                          urllib3_exceptions.ProtocolError)):
        inner = getattr(exc, 'reason', None) or next(
            (arg for arg in reversed(exc.args)
             if isinstance(arg, Exception)), None)
    else:
        return exc
    return _wrapped(inner) if isinstance(inner, CLASSES) else exc
