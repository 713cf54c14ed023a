# SPDX-License-Identifier: Apache-2.0
"""What every error of the HTTP libraries means: retry, or give up."""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import contextvars
import http.client
import re

from keystoneauth1 import exceptions as ks_exceptions
from openstack import exceptions as sdk_exceptions
from oslo_config import cfg
from oslo_utils import strutils
from requests import exceptions as requests_exceptions
from urllib3 import exceptions as urllib3_exceptions

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import deadline

Kind = type[exceptions.MirrorError]

_DETAIL_LENGTH = 300

# What to do about an error, to somebody who can change nova.conf.
_NOVA_CONF: Mapping[Kind, str] = {
    exceptions.PlacementUnreachable:
        'Check that keystone and placement run, that the catalog has the '
        'placement endpoint, and auth_url, region_name, valid_interfaces, '
        'endpoint_override and cafile in [placement].',
    exceptions.DeadlineExceeded:
        'Check the load of keystone and placement and the network to them.',
    exceptions.NotAuthorized:
        'Check user, password, project and their domains in [placement], and '
        'that the user has the service or admin role.',
    exceptions.PlacementFailed:
        'Check the logs of placement and of the proxy before it.',
    exceptions.MalformedAnswer:
        'Check that the endpoint is placement\'s and what proxy is before it.',
    exceptions.GenerationConflict:
        'Read the provider again before the next write.',
    exceptions.ProviderNotFound:
        'Nova-compute creates it when it starts.',
    exceptions.RequestRejected:
        'Check that placement is at least of the release of nova 29.',
    exceptions.MissingCredentials:
        'Complete that section of nova.conf.',
    exceptions.InvalidConfiguration:
        'Correct [placement] in nova.conf, or the endpoint in the catalog.',
}

_ADVICE: contextvars.ContextVar[Mapping[Kind, str]] = contextvars.ContextVar(
    'aggregate_mirror_advice', default=_NOVA_CONF)

# The first row that has the error's class, or a parent of it, holds.
_MEANING: tuple[tuple[Kind, tuple[type[Exception], ...]], ...] = (
    (exceptions.PlacementUnreachable, (
        # Urllib3 derives it from its timeouts.
        urllib3_exceptions.NewConnectionError,
        sdk_exceptions.ServiceDisabledException,
        ks_exceptions.ImpliedVersionMismatch)),
    (exceptions.DeadlineExceeded, (
        ks_exceptions.ConnectTimeout, sdk_exceptions.ResourceTimeout,
        requests_exceptions.Timeout, urllib3_exceptions.TimeoutError,
        TimeoutError)),
    (exceptions.NotAuthorized, (
        ks_exceptions.AuthorizationFailure, ks_exceptions.MissingAuthMethods,
        sdk_exceptions.ForbiddenException)),
    (exceptions.PlacementUnreachable, (
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
    (exceptions.RequestRejected, (
        sdk_exceptions.BadRequestException, sdk_exceptions.InvalidRequest,
        sdk_exceptions.PreconditionFailedException,
        sdk_exceptions.InvalidResourceQuery, sdk_exceptions.MethodNotSupported,
        sdk_exceptions.ValidationException,
        requests_exceptions.InvalidHeader)),
    (exceptions.MalformedAnswer, (
        ks_exceptions.InvalidResponse, sdk_exceptions.InvalidResponse,
        sdk_exceptions.NotFoundException, sdk_exceptions.DuplicateResource,
        requests_exceptions.InvalidJSONError,
        requests_exceptions.ChunkedEncodingError,
        requests_exceptions.ContentDecodingError,
        urllib3_exceptions.DecodeError, urllib3_exceptions.IncompleteRead,
        urllib3_exceptions.InvalidChunkLength,
        urllib3_exceptions.ResponseNotChunked,
        urllib3_exceptions.BodyNotHttplibCompatible,
        urllib3_exceptions.InvalidHeader,
        urllib3_exceptions.HeaderParsingError)),
    (exceptions.PlacementFailed, (
        sdk_exceptions.HttpException, sdk_exceptions.ResourceFailure,
        requests_exceptions.HTTPError, requests_exceptions.TooManyRedirects)),
    (exceptions.PlacementUnreachable, (
        ks_exceptions.ClientException,
        ks_exceptions.RetriableConnectionFailure,
        sdk_exceptions.SDKException, urllib3_exceptions.HTTPError, OSError)),
    # ValueError is all that is raised for a redirect to an invalid URL, or for
    # the encoding of a body that is logged.
    (exceptions.MalformedAnswer, (http.client.HTTPException, ValueError)),
)

_FOREIGN = tuple(cls for _kind, classes in _MEANING for cls in classes)

# What libraries raise over a token, catalog or version document of another
# shape. Keystoneauth also asserts that it still has the token it has fetched,
# which another thread may have dropped.
_PARSING = (LookupError, TypeError, AttributeError, AssertionError,
            RecursionError, OverflowError)


@contextlib.contextmanager
def advising(advice: Mapping[Kind, str]) -> Iterator[None]:
    """Tell somebody else what to do about errors inside.

    :param advice: sentences that take the place of those about nova.conf
    """
    token = _ADVICE.set({**_ADVICE.get(), **advice})
    try:
        yield
    finally:
        _ADVICE.reset(token)


@contextlib.contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise our error in place of a library's, from it.

    :param doing: what is done inside: the start of the message
    """
    try:
        yield
    except _FOREIGN as exc:
        kind = meaning(exc)
        if kind is exceptions.PlacementUnreachable and deadline.missed():
            kind = exceptions.DeadlineExceeded
        raise error(kind, doing, _text(exc)) from exc


@contextlib.contextmanager
def parsing(doing: str) -> Iterator[None]:
    """Raise MalformedAnswer for a library's failure to parse an answer.

    Anywhere else these are programming errors, which pass ``translated``.

    :param doing: the start of the message
    """
    try:
        yield
    except _FOREIGN:
        raise
    except _PARSING as exc:
        raise error(exceptions.MalformedAnswer, doing, _text(exc)) from exc


def error(kind: Kind, doing: str, happened: str) -> exceptions.MirrorError:
    """Make an error that says what happened and what to do, and no secret."""
    happened = ' '.join(without_secrets(happened).split())
    happened = happened[:_DETAIL_LENGTH].rstrip('. ')
    return kind('%s: %s. %s' % (doing, happened, _ADVICE.get()[kind]))


def without_secrets(text: str) -> str:
    """Mask passwords and tokens, and who is named before a URL's host."""
    text = re.sub(r'(?<=//)[^/\s]*@', '', text)
    # Headers as libraries quote them, of which oslo.utils knows other names.
    text = re.sub(r'''(?i)(x-[a-z]+-token['"]?\s*[:=]\s*)[^\s,;]+''',
                  r'\1***', text)
    return strutils.mask_password(text)


def meaning(exc: Exception) -> Kind:
    """Say what an error of a library is in our tree."""
    exc = _innermost(exc)
    status = getattr(exc, 'http_status', getattr(exc, 'status_code', None))
    if isinstance(status, int):
        return meaning_of_status(status)
    return next(kind for kind, classes in _MEANING if isinstance(exc, classes))


def meaning_of_status(status: int) -> Kind:
    """Say what an HTTP status other than 200 is in our tree."""
    if status in (401, 403):
        return exceptions.NotAuthorized
    if status in (404, 410):
        # Only placement's own words can say that a provider is not there.
        return exceptions.MalformedAnswer
    if 400 <= status < 500 and status not in (408, 409, 425, 429):
        return exceptions.RequestRejected
    return exceptions.PlacementFailed


def _innermost(exc: Exception) -> Exception:
    """Unwrap what requests and keystoneauth put around an error."""
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
    return _innermost(inner) if isinstance(inner, _FOREIGN) else exc


def _text(exc: Exception) -> str:
    exc = _innermost(exc)
    if isinstance(exc, requests_exceptions.InvalidHeader):
        # It quotes the header, which may be the token.
        return 'a header of the request is not valid'
    return '%s: %s' % (type(exc).__name__, exc)
