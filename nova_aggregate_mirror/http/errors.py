# SPDX-License-Identifier: Apache-2.0
"""Translation of HTTP library errors to retriable or permanent errors."""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import contextvars
import http.client
import re
import time

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

# What an operator who can change nova.conf should check for each error.
_NOVA_CONF: Mapping[Kind, str] = {
    exceptions.ServiceUnreachable:
        'Check that keystone and placement are running, that the catalog has '
        'the placement endpoint, and auth_url, region_name, '
        'valid_interfaces, endpoint_override and cafile in [placement].',
    exceptions.DeadlineExceeded:
        'Check the load of keystone and placement, and the network to them.',
    exceptions.OutOfTime:
        'The agent completes it; to do more within the call, raise '
        '[aggregate_mirror] inline_timeout.',
    exceptions.NotAuthorized:
        'Check user, password, project and domains in [placement], and that '
        'the user has the service or admin role.',
    exceptions.ServiceFailed:
        'Check the logs of placement and of any proxy in front of it.',
    exceptions.MalformedAnswer:
        'Check that the endpoint is placement, and any proxy in front of it.',
    exceptions.GenerationConflict:
        'Read the provider again before the next write.',
    exceptions.ProviderNotFound:
        'Nova-compute creates it when it starts.',
    exceptions.RequestRejected:
        'Check that placement is from the release of nova 29 or later.',
    exceptions.MissingCredentials:
        'Complete this section of nova.conf.',
    exceptions.InvalidConfiguration:
        'Correct [placement] in nova.conf, or the endpoint in the catalog.',
}

_ADVICE: contextvars.ContextVar[Mapping[Kind, str]] = contextvars.ContextVar(
    'aggregate_mirror_advice', default=_NOVA_CONF)

# The first row with the class of the error, or a base class of it, applies.
_MEANING: tuple[tuple[Kind, tuple[type[Exception], ...]], ...] = (
    (exceptions.ServiceUnreachable, (
        # Urllib3 derives this class from its timeouts.
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
    (exceptions.ServiceFailed, (
        sdk_exceptions.HttpException, sdk_exceptions.ResourceFailure,
        requests_exceptions.HTTPError, requests_exceptions.TooManyRedirects)),
    (exceptions.ServiceUnreachable, (
        ks_exceptions.ClientException,
        ks_exceptions.RetriableConnectionFailure,
        sdk_exceptions.SDKException, urllib3_exceptions.HTTPError, OSError)),
    # A plain ValueError is raised for a redirect to an invalid URL, and for
    # the encoding of a body that is logged.
    (exceptions.MalformedAnswer, (http.client.HTTPException, ValueError)),
)

_FOREIGN = tuple(cls for _kind, classes in _MEANING for cls in classes)

# Raised by libraries for a malformed token, catalog or version document.
# Keystoneauth also asserts that it still has the token that it fetched, which
# another thread may have invalidated.
_PARSING = (LookupError, TypeError, AttributeError, AssertionError,
            RecursionError, OverflowError)


@contextlib.contextmanager
def advising(advice: Mapping[Kind, str]) -> Iterator[None]:
    """Replace the advice in errors that are raised inside.

    :param advice: sentences to use instead of those about nova.conf
    """
    token = _ADVICE.set({**_ADVICE.get(), **advice})
    try:
        yield
    finally:
        _ADVICE.reset(token)


@contextlib.contextmanager
def translated(doing: str) -> Iterator[None]:
    """Translate library errors that are raised inside to a MirrorError.

    :param doing: the action inside, as the start of the message
    """
    began = time.monotonic()
    try:
        yield
    except _FOREIGN as exc:
        kind = meaning(exc)
        if kind is exceptions.ServiceUnreachable and deadline.missed():
            kind = exceptions.DeadlineExceeded
        if kind is exceptions.DeadlineExceeded and not deadline.is_silence(
                time.monotonic() - began):
            kind = exceptions.OutOfTime
        raise error(kind, doing, _text(exc)) from exc


@contextlib.contextmanager
def parsing(doing: str) -> Iterator[None]:
    """Raise MalformedAnswer if a library fails to parse an answer.

    In other contexts these are programming errors, which ``translated`` does
    not catch.

    :param doing: the start of the message
    """
    try:
        yield
    except _FOREIGN:
        raise
    except _PARSING as exc:
        raise error(exceptions.MalformedAnswer, doing, _text(exc)) from exc


def error(kind: Kind, doing: str, happened: str) -> exceptions.MirrorError:
    """Create an error with the failure and advice, and without secrets."""
    happened = ' '.join(without_secrets(happened).split())
    happened = happened[:_DETAIL_LENGTH].rstrip('. ')
    return kind('%s: %s. %s' % (doing, happened, _ADVICE.get()[kind]))


def without_secrets(text: str) -> str:
    """Mask passwords, tokens and the user information of URLs."""
    text = re.sub(r'(?<=//)[^/\s]*@', '', text)
    # Token headers as quoted by libraries; oslo.utils masks other names.
    text = re.sub(r'''(?i)(x-[a-z]+-token['"]?\s*[:=]\s*)[^\s,;]+''',
                  r'\1***', text)
    return strutils.mask_password(text)


def meaning(exc: Exception) -> Kind:
    """Return the class in our tree for an error of a library."""
    exc = _innermost(exc)
    status = getattr(exc, 'http_status', getattr(exc, 'status_code', None))
    if isinstance(status, int):
        return meaning_of_status(status)
    return next(kind for kind, classes in _MEANING if isinstance(exc, classes))


def meaning_of_status(status: int) -> Kind:
    """Return the class in our tree for an HTTP status other than 200."""
    if status in (401, 403):
        return exceptions.NotAuthorized
    if status in (404, 410):
        # Only placement's own error message proves that a provider is missing.
        return exceptions.MalformedAnswer
    if 400 <= status < 500 and status not in (408, 409, 425, 429):
        return exceptions.RequestRejected
    return exceptions.ServiceFailed


def _innermost(exc: Exception) -> Exception:
    """Return the error that requests or keystoneauth has wrapped."""
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
        # The message quotes the header, which may be the token.
        return 'a header of the request is not valid'
    return '%s: %s' % (type(exc).__name__, exc)
