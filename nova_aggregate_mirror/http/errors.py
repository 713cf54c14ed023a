# SPDX-License-Identifier: Apache-2.0
"""Translation of HTTP library errors to retriable or permanent errors.

It is long because each library has many classes. Their texts, which may state
a cause that nobody observed, go to the log at DEBUG.
"""

from collections import abc
import contextlib
import contextvars
import dataclasses
import http.client
import logging as library_log
import re
import sys
import time
import urllib.parse

from keystoneauth1 import exceptions as ks_exceptions
from openstack import exceptions as sdk_exceptions
from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import strutils
import requests
from requests import exceptions as requests_exceptions
from urllib3 import exceptions as urllib3_exceptions

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import driver_failures

LOG = logging.getLogger(__name__)

Kind = type[exceptions.MirrorError]

_LONGEST = 300

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

_FOREIGN = tuple(cls for _kind, classes in _MEANING for cls in classes)

# What a party did, by errors above the socket.
_OBSERVATIONS: tuple[tuple[type[Exception], str], ...] = (
    (http.client.IncompleteRead, 'sent an incomplete body'),
    (requests_exceptions.ContentDecodingError,
     'sent a body that cannot be decoded'),
    (http.client.HTTPException, 'sent an answer that is not HTTP'),
    (requests_exceptions.TooManyRedirects, 'redirected too many times'),
)

MORE_TIME = 'raise [aggregate_mirror] inline_timeout to do more within a call'

PROXY = 'correct the proxy, or no_proxy, in the environment of this process'

MISPLACED = 'correct %s'
_IN_CATALOG = 'the URL of %s in the catalog'
REFUSED = 'refused the credentials with 401'
NOT_IN_CATALOG = 'has no endpoint in the catalog'
NO_CATALOG = 'has no endpoint, because the token has no catalog'
_UNUSABLE = ', which cannot be used'

# Errors about the catalog.
_CATALOG = (ks_exceptions.CatalogException,
            sdk_exceptions.ServiceDisabledException)

# Errors about nova.conf and about the request, whose texts name an option.
_CONFIGURATION = (exceptions.MissingCredentials,
                  exceptions.InvalidConfiguration, exceptions.RequestRejected)

# Raised by libraries for a malformed token, catalog or version document.
# Keystoneauth also asserts that it still has the token that it fetched, which
# another thread may have invalidated.
_PARSING = (LookupError, TypeError, AttributeError, AssertionError,
            RecursionError, OverflowError)


@dataclasses.dataclass(frozen=True)
class Steps:
    """The next steps that depend on where a service is configured.

    :param account: after keystone refused the credentials
    :param catalog: after keystone has sent no endpoint of the service
    :param scope: after keystone has sent a token without a catalog
    :param token: after the service did not accept a new token of keystone
    :param role: after the service refused a right
    :param cafile: the option with the authorities of certificates
    :param address: where the URL of the service is; empty for the catalog
    :param selection: the option that selects the endpoint
    """

    account: str = ''
    catalog: str = ''
    scope: str = ''
    token: str = ''
    role: str = ''
    cafile: str = 'cafile in its section of nova.conf'
    address: str = ''
    selection: str = ''


class UnreadableBody(requests_exceptions.ContentDecodingError):
    """A body that is not read; the text says what the service sent."""


@dataclasses.dataclass(frozen=True)
class Call:
    """A request to a service, for the failures of this request.

    :param url: any URL of the service, if it is known
    :param selection: what was looked for in the catalog
    :param kind: the class of all failures, instead of those that ``meaning``
        returns
    :param step: the next step after any failure
    :param steps: returns the next steps after some failures
    """

    service: str
    occasion: str
    url: str = ''
    selection: str = ''
    kind: Kind | None = None
    step: str = ''
    steps: abc.Callable[[], Steps] = Steps

    def error(self, kind: Kind, observation: str,
              party: str = '', step: str = '') -> exceptions.MirrorError:
        """Create an error, without secrets."""
        observation = ' '.join(without_secrets(observation).split())
        error = (self.kind or kind)(
            observation[:_LONGEST].rstrip('. '),
            party or _party(self.service, self.url),
            without_secrets(self.occasion), step=self.step or (
                MORE_TIME if kind is exceptions.OutOfTime
                and deadline.is_budget() else step))
        error.meaning = kind
        return error

    @property
    def address(self) -> str:
        """Where the URL of the service is configured."""
        return self.steps().address or _IN_CATALOG % self.service

    def malformed(self, content: str) -> exceptions.MirrorError:
        """Create the error for an answer that is not as it should be."""
        return self.error(exceptions.MalformedAnswer, 'sent ' + content)


@dataclasses.dataclass
class Exchange:
    """The last request of a ``Call`` as the transport saw it."""

    url: str = ''
    """Empty before the first request."""
    is_login: bool = False
    """Whether it was a request to keystone."""
    has_login: bool = False
    """Whether there was any request to keystone."""
    answer: str = ''
    """The status, and the type of a body that is not JSON."""
    failure: str = ''
    """What the party did instead of an answer with success."""
    error: Exception | None = None
    """The error of the transport, which a library may replace by another."""
    has_timeout: bool = False
    """Whether any request timed out."""
    handled: BaseException | None = dataclasses.field(
        default_factory=sys.exception)
    """The error that the caller handles, which no request caused."""


_EXCHANGE: contextvars.ContextVar[Exchange | None] = contextvars.ContextVar(
    'aggregate_mirror_exchange', default=None)


def _is_logged(record: library_log.LogRecord) -> bool:
    """Log what keystoneauth warns of in our requests at DEBUG only.

    It does so for each request, and may state a cause that nobody observed.
    """
    if _EXCHANGE.get() is None or record.levelno < library_log.WARNING:
        return True
    LOG.debug('%s: %s', record.name, without_secrets(record.getMessage()))
    return False


for _name in 'discover', 'identity.base', 'identity.generic.base', 'session':
    library_log.getLogger('keystoneauth.' + _name).addFilter(_is_logged)


@contextlib.contextmanager
def observed(url: str, is_login: bool) -> abc.Iterator[Exchange]:
    """Observe a request that the transport makes inside."""
    exchange = _EXCHANGE.get() or Exchange()
    if not deadline.remaining():
        # It is not sent: what the request before it did is the reason.
        yield exchange
        return
    exchange.url, exchange.is_login = url, is_login
    exchange.has_login |= is_login
    exchange.answer, exchange.failure, exchange.error = '', '', None
    began, handled = time.monotonic(), sys.exception()
    try:
        yield exchange
    except _FOREIGN as exc:
        waited, exchange.error = time.monotonic() - began, exc
        is_timeout = meaning(exc) is exceptions.DeadlineExceeded
        exchange.has_timeout |= is_timeout
        # A request that begins shortly before the deadline shows nothing.
        if not is_timeout or deadline.is_silence(waited):
            exchange.failure = _observation(exc, waited, handled)
        raise


def answered(exchange: Exchange, response: requests.Response) -> None:
    exchange.answer = _answer(response)
    sent = response.request
    if exchange.is_login and response.status_code == 401 and (
            # Keystone's version document is requested without credentials.
            sent.method == 'POST' or 'X-Auth-Token' in sent.headers
            or 'Authorization' in sent.headers):
        exchange.failure = REFUSED
    elif response.status_code >= 400:
        exchange.failure = exchange.answer


@contextlib.contextmanager
def translated(call: Call) -> abc.Iterator[None]:
    """Translate library errors that are raised inside to a MirrorError."""
    exchange, began = Exchange(), time.monotonic()
    token = _EXCHANGE.set(exchange)
    try:
        yield
    except _FOREIGN as exc:
        kind, waited = meaning(exc), time.monotonic() - began
        if kind is exceptions.ServiceUnreachable and (
                exchange.has_timeout or not deadline.remaining()):
            # Version discovery replaces a timeout by another error.
            kind = exceptions.DeadlineExceeded
        if kind is exceptions.DeadlineExceeded and not deadline.is_silence(
                waited):
            kind = exceptions.OutOfTime
        party = _party('keystone' if exchange.is_login else call.service,
                       exchange.url or call.url)
        if isinstance(exc, _CATALOG) and not exchange.failure:
            # Keystone has answered, and knows no URL of the service.
            party = call.service
        if kind is exceptions.DeadlineExceeded and not exchange.failure and (
                exchange.has_login or not exchange.url):
            # Which of them was slow, maybe for another thread that gets a
            # token, is not known.
            party = 'keystone or %s' % call.service
        LOG.debug('%s: %s: %s', call.occasion, type(exc).__name__,
                  _safe_text(exc))
        if exchange.is_login and exchange.failure:
            call = dataclasses.replace(call, occasion='getting a token')
        observation, step = _explanation(call, kind, exc, exchange, waited)
        raise call.error(kind, observation, party, step) from exc
    finally:
        _EXCHANGE.reset(token)


@contextlib.contextmanager
def parsing() -> abc.Iterator[None]:
    """Let ``translated`` treat errors of a library's parser as malformed.

    In other contexts these are programming errors, which it does not catch.
    """
    try:
        yield
    except _FOREIGN:
        raise
    except _PARSING as exc:
        raise ValueError(
            '%s: %s' % (type(exc).__name__, _safe_text(exc))) from exc


def unexpected(call: Call, response: requests.Response, detail: str = '',
               kind: Kind | None = None) -> exceptions.MirrorError:
    """Create the error for a response with a status other than 200.

    :param kind: the class, if the status does not decide it
    """
    return call.error(
        kind or meaning_of_status(response.status_code),
        ': '.join(filter(None, (_answer(response), detail))),
        _party(call.service, response.url or call.url),
        _step_after_refusal(call, response))


def _step_after_refusal(call: Call, response: requests.Response) -> str:
    """Return the step, unless something in front of the service refused."""
    challenge = response.headers.get('WWW-Authenticate', '').lower()
    # Keystone's middleware challenges; a policy is refused with a document.
    if response.status_code == 401 and challenge.startswith('keystone'):
        return call.steps().token
    if response.status_code == 403 and not _form(response):
        return call.steps().role
    return ''


def unusable(call: Call, response: requests.Response
             ) -> exceptions.MirrorError:
    """Create the error for a response whose body is not of the service."""
    return call.error(exceptions.MalformedAnswer, _answer(response)
                      + _UNUSABLE, _party(call.service, response.url),
                      MISPLACED % call.address)


def selection(region: str | None, interfaces: str) -> str:
    """Describe what is looked for in the catalog."""
    return '%sinterface %s' % (
        'region %s, ' % region if region else '', interfaces)


def without_secrets(text: str) -> str:
    """Mask passwords, tokens and the user information of URLs."""
    text = re.sub(r'(?<=//)[^/\s]*@', '', text)
    # Token headers as quoted by libraries; oslo.utils masks other names.
    text = re.sub(r'''(?i)(x-[a-z]+-token['"]?\s*[:=]\s*)[^\s,;]+''',
                  r'\1***', text)
    return strutils.mask_password(text)


def meaning(exc: Exception) -> Kind:
    """Return the class in our tree for an error of a library."""
    exc = _wrapped(exc)
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


def _answer(response: requests.Response) -> str:
    """Return the status, and the type of a body that is not JSON."""
    return ' with '.join(filter(None, (
        'answered %d' % response.status_code, _form(response))))


def _form(response: requests.Response) -> str:
    """Return the type of a body that is not JSON."""
    form = response.headers.get('Content-Type', '').partition(';')[0]
    return '' if form.endswith('json') else form


def _wrapped(exc: Exception) -> Exception:
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
    return _wrapped(inner) if isinstance(inner, _FOREIGN) else exc


def _observation(exc: Exception, waited: float,
                 handled: BaseException | None) -> str:
    """Say what the other party of a failed request did."""
    if meaning(exc) is exceptions.DeadlineExceeded:
        return 'was silent for %.1f s' % waited
    via = ('is behind a proxy that '
           if isinstance(exc, requests_exceptions.ProxyError) else '')
    for cause in driver_failures.causes(exc, handled):
        if isinstance(cause, UnreadableBody):
            return str(cause)
        observation = driver_failures.of_socket(cause) or next(
            (text for cls, text in _OBSERVATIONS if isinstance(cause, cls)),
            '')
        if observation:
            return via + observation
    return 'could not be asked: %s' % type(_wrapped(exc)).__name__


def _explanation(call: Call, kind: Kind, exc: Exception, exchange: Exchange,
                 waited: float) -> tuple[str, str]:
    """Return what a party did, for an error of a library, and the step."""
    if kind is exceptions.OutOfTime:
        return 'was not waited for: no time is left', ''
    if exchange.failure:
        return exchange.failure, _step(call, exchange.error or exc, exchange)
    if kind is exceptions.DeadlineExceeded:
        return 'did not answer in time: %.1f s for all requests' % waited, ''
    if kind in _CONFIGURATION:
        return 'cannot be asked: %s' % _safe_text(exc), ''
    if any(isinstance(cause, ks_exceptions.EmptyCatalog)
           for cause in driver_failures.causes(exc, exchange.handled)):
        return NO_CATALOG, call.steps().scope
    if isinstance(exc, _CATALOG):
        return (' for '.join(filter(None, (NOT_IN_CATALOG, call.selection))),
                call.steps().catalog)
    if exchange.answer:
        # The request was answered with success, but not as it should be.
        return exchange.answer + _UNUSABLE, (
            '' if exchange.is_login else MISPLACED % call.address)
    return (_observation(exc, waited, exchange.handled),
            _step(call, exc, exchange))


def _step(call: Call, exc: Exception, exchange: Exchange) -> str:
    """Return the step after a request that failed, if there is one."""
    if any(isinstance(cause, requests_exceptions.ProxyError)
           for cause in driver_failures.causes(exc, exchange.handled)):
        return PROXY
    if exchange.is_login and exchange.failure == REFUSED:
        return call.steps().account
    return driver_failures.of_certificate(
        exc, call.steps().cafile,
        'auth_url' if exchange.is_login else call.address)


def _safe_text(exc: BaseException) -> str:
    """Return the text of an error without secrets."""
    if isinstance(exc, requests_exceptions.InvalidHeader):
        # The message quotes the header, which may be the token.
        return 'a header of the request is not valid'
    return without_secrets(str(exc))


def _party(service: str, url: str) -> str:
    """Name a service and its address."""
    with contextlib.suppress(ValueError):
        address = urllib.parse.urlsplit(url)
        if address.netloc:
            return '%s at %s://%s' % (service, address.scheme,
                                      address.netloc.rpartition('@')[2])
    return service
