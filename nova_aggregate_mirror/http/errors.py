# SPDX-License-Identifier: Apache-2.0
"""Translation of HTTP library errors to retriable or permanent errors.

The texts of the libraries, which may state a cause that nobody observed, go to
the log at DEBUG: what the transport observes decides. It is long because that
observation and the error are of the same request.
"""

from collections import abc
import contextlib
import contextvars
import dataclasses
import logging as library_log
import re
import sys
import time
import urllib.parse

from oslo_log import log as logging
from oslo_utils import strutils
import requests

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import library_errors
from nova_aggregate_mirror.limits import deadline

LOG = logging.getLogger(__name__)
_LONGEST = 300  # Characters of an observation in an error.
# Raised by parsers of a malformed token, catalog or version document, and by
# keystoneauth if another thread has invalidated the token that it fetched.
_PARSING = (LookupError, TypeError, AttributeError, AssertionError,
            RecursionError, OverflowError)
Parties = abc.Callable[[], causes.Party]
"""Returns the party; its options are read only if a request has failed."""


@dataclasses.dataclass(frozen=True)
class Call:
    """A request to a service, for the failures of this request.

    :param party: returns the service and its options
    :param occasion: what the request is for, or its method and path
    :param url: any URL of the service, if it is known
    :param kind: the class of all errors; by default what happened decides
    :param step: the next step after any failure
    """

    party: Parties
    occasion: str
    url: str = ''
    kind: library_errors.Meaning | None = None
    step: str = ''

    def error(self, meaning: library_errors.Meaning, cause: causes.Cause
              ) -> exceptions.MirrorError:
        """Create an error for what happened, without secrets."""
        party = self.party()
        phrase = ' '.join(without_secrets(cause.phrase).split())
        if meaning is exceptions.OutOfTime and deadline.is_budget():
            cause = cause.in_call()
        error = (self.kind or meaning)(
            phrase[:_LONGEST].rstrip('. '), _address(party.name, self.url),
            without_secrets(self.occasion), kind=cause.kind,
            step=self.step or cause.step_for(party))
        # Whether to repeat the request depends on what happened.
        error.is_repeatable = meaning.is_repeatable
        error.is_refusal = meaning.is_refusal
        return error

    def malformed(self, content: str) -> exceptions.MirrorError:
        """Create the error for an answer that is not as it should be."""
        return self.error(exceptions.MalformedAnswer,
                          causes.MALFORMED.with_detail(content))


@dataclasses.dataclass
class _Exchange:
    """The last request of a call, as the transport sees it."""

    url: str = ''
    method: str = ''
    last_is_login: bool = False
    """Whether the last request was to keystone."""
    any_is_login: bool = False
    """Whether any request of the call was to keystone."""
    # A response would keep its connection as long as an error keeps this.
    answer: str = ''
    """The status, and the type of a body that is not JSON."""
    is_redirected: bool = False
    """Whether the answer redirected to another URL."""
    cause: causes.Cause | None = None
    """What the party did instead of answering with success."""
    has_timeout: bool = False
    """Whether any request of the call timed out."""
    handled: BaseException | None = dataclasses.field(
        default_factory=sys.exception)
    """The error that the caller was handling when the call began."""

    def meaning(self, exc: Exception, waited: float) -> library_errors.Meaning:
        """Return the class for an error that ended a call of these seconds."""
        meaning = library_errors.meaning(exc)
        if meaning is exceptions.InvalidConfiguration and self.is_redirected:
            # The invalid URL is that of the redirect, not of an option.
            return exceptions.MalformedAnswer
        if meaning is exceptions.ServiceUnreachable and (
                self.has_timeout or not deadline.remaining()):
            # Version discovery replaces a timeout by another error.
            meaning = exceptions.DeadlineExceeded
        # If each request was answered, or the call began shortly before its
        # deadline, this process itself has spent the time.
        is_answered = bool(self.answer) and not self.has_timeout
        if meaning is exceptions.DeadlineExceeded and (
                is_answered or not deadline.is_silence(waited)):
            return exceptions.OutOfTime
        return meaning


_CURRENT: contextvars.ContextVar[_Exchange | None] = contextvars.ContextVar(
    'aggregate_mirror_exchange', default=None)
"""The exchange of the innermost ``translated``, if any."""


def observe(send: abc.Callable[[], requests.Response],
            request: requests.PreparedRequest, is_login: bool
            ) -> requests.Response:
    """Send a request; note in the current exchange what becomes of it."""
    if not deadline.remaining():
        # The transport refuses this request, because of the noted one.
        return send()
    exchange = _CURRENT.get() or _Exchange()
    exchange.url, exchange.method = request.url or '', request.method or ''
    exchange.last_is_login = is_login
    exchange.any_is_login |= is_login
    exchange.answer, exchange.cause, exchange.is_redirected = '', None, False
    # An error that is handled already is no cause of one that is raised here.
    began, handled = time.monotonic(), sys.exception()
    try:
        response = send()
    except library_errors.CLASSES as exc:
        waited = time.monotonic() - began
        is_timeout = library_errors.meaning(exc) is exceptions.DeadlineExceeded
        exchange.has_timeout |= is_timeout
        # A timeout so shortly before the deadline shows nothing of the party.
        if not is_timeout or deadline.is_silence(waited):
            exchange.cause = library_errors.cause(exc, waited, handled)
        raise
    exchange.answer = _answer(response)
    exchange.is_redirected = 300 <= response.status_code < 400
    sent = response.request
    # A request for keystone's version document has none that it may refuse.
    has_credentials = sent.method == 'POST' or 'Authorization' in sent.headers
    if is_login and response.status_code == 401 and has_credentials:
        exchange.cause = causes.LOGIN
    elif response.status_code >= 400:
        exchange.cause = _unavailable(response).with_detail(exchange.answer)
    return response


def _filter_warning(record: library_log.LogRecord) -> bool:
    """Return False for a warning about our requests; log it at DEBUG."""
    if _CURRENT.get() is None or record.levelno < library_log.WARNING:
        return True
    LOG.debug('%s: %s', record.name, without_secrets(record.getMessage()))
    return False


for _name in 'discover', 'identity.base', 'identity.generic.base', 'session':
    library_log.getLogger('keystoneauth.' + _name).addFilter(_filter_warning)


@contextlib.contextmanager
def translated(call: Call) -> abc.Iterator[None]:
    """Translate library errors that are raised inside to a MirrorError."""
    exchange, began = _Exchange(), time.monotonic()
    token = _CURRENT.set(exchange)
    try:
        yield
    except library_errors.CLASSES as exc:
        LOG.debug('%s: %s: %s', call.occasion, type(exc).__name__,
                  _safe_text(exc))
        waited = time.monotonic() - began
        meaning = exchange.meaning(exc, waited)
        cause = _cause(meaning, exc, exchange, waited)
        failed_call = _failed_call(call, meaning, exc, exchange)
        error = failed_call.error(meaning, cause)
        # A kept connection may be closed meanwhile, or one backend be down.
        error.is_repeatable |= cause in (causes.DISCONNECTED, causes.REFUSED)
        error.retry_after = _retry_after(getattr(exc, 'response', None))
        raise error from exc
    finally:
        _CURRENT.reset(token)


@contextlib.contextmanager
def parsing() -> abc.Iterator[None]:
    """Let ``translated`` treat errors of a library's parser as malformed.

    In other contexts these are programming errors, which it does not catch.
    """
    try:
        yield
    except library_errors.CLASSES:
        # ``translated`` knows it, even if it is one of _PARSING as well.
        raise
    except _PARSING as exc:
        raise ValueError(
            '%s: %s' % (type(exc).__name__, _safe_text(exc))) from exc


def unexpected(call: Call, response: requests.Response, detail: str = '',
               kind: library_errors.Meaning | None = None,
               cause: causes.Cause | None = None) -> exceptions.MirrorError:
    """Create the error for a response that is not as it should be.

    :param detail: what the body says, if anything
    :param kind: the class, and ``cause``, if the status does not decide them
    """
    status = ': '.join(filter(None, (_answer(response), detail)))
    meaning = kind or library_errors.meaning_of_status(response.status_code)
    cause = cause or _refusal(response)
    call = dataclasses.replace(call, url=response.url or call.url)
    error = call.error(meaning, cause.with_detail(status))
    # One of several backends may refuse what the others accept.
    error.is_repeatable |= error.is_refusal
    error.retry_after = _retry_after(response)
    return error


def _retry_after(response: requests.Response | None) -> float:
    """Return the seconds to wait after a 429; 0 if it names none."""
    if response is None or response.status_code != 429:
        return 0.0
    value = response.headers.get('Retry-After', '').strip()
    # Instead it may be a date, but that is by the clock of another host.
    return float(value) if re.fullmatch('[0-9]{1,9}', value) else 0.0


def _refusal(response: requests.Response) -> causes.Cause:
    """Return what an error status of a service, or of a proxy, means."""
    challenge = response.headers.get('WWW-Authenticate', '').lower()
    # Only keystone's middleware sends a challenge that names keystone.
    if response.status_code == 401 and challenge.startswith('keystone'):
        return causes.TOKEN
    # A service explains what its policy refuses in JSON, a proxy in HTML.
    if response.status_code == 403 and not _foreign_type(response):
        return causes.ROLE
    return _unavailable(response)


def _unavailable(response: requests.Response) -> causes.Cause:
    """Return the cause for an error status of the service or of a proxy."""
    if response.status_code in (404, 410):
        return causes.WRONG_ADDRESS
    return (causes.NO_BACKEND if 502 <= response.status_code <= 504
            else causes.ANSWERED)


def _answer(response: requests.Response) -> str:
    """Return the status, and the type of a body that is not JSON."""
    return ' with '.join(filter(None, (
        'answered %d' % response.status_code, _foreign_type(response))))


def _foreign_type(response: requests.Response) -> str:
    """Return the content type of a body that is not JSON; else empty."""
    media_type = response.headers.get('Content-Type', '').partition(';')[0]
    return '' if media_type.endswith('json') else media_type


def without_secrets(text: str) -> str:
    """Mask passwords, tokens and the user information of URLs."""
    text = re.sub(r'(?<=//)[^/\s]*@', '', text)
    # Token headers as quoted by libraries; oslo.utils masks other names.
    text = re.sub(r'''(?i)(x-[a-z]+-token['"]?\s*[:=]\s*)[^\s,;]+''',
                  r'\1***', text)
    return strutils.mask_password(text)


def _failed_call(call: Call, meaning: library_errors.Meaning, exc: Exception,
                 exchange: _Exchange) -> Call:
    """Return the call, but about the request and the party that failed."""
    party, occasion, url = call.party(), call.occasion, exchange.url
    # If the call names a path that the last URL lacks, that was discovery.
    path = occasion.partition(' ')[2]
    is_discovery = path.startswith('/') and path not in url
    has_failed = bool(exchange.cause)  # The last request itself.
    if exchange.last_is_login and has_failed:
        occasion = 'getting a token'
    elif url and is_discovery and not exchange.last_is_login:
        occasion = '%s %s' % (exchange.method,
                              urllib.parse.urlsplit(url).path or '/')
    # Without a request, it may have waited for the token of another thread.
    may_be_keystone = exchange.any_is_login or not url
    if (meaning is exceptions.DeadlineExceeded and may_be_keystone
            and not has_failed):
        # It is unknown which of the two was slow.
        name, url = 'keystone or %s' % party.name, call.url
        party = dataclasses.replace(party, name=name, server=name)
    elif isinstance(exc, library_errors.CATALOG) and not has_failed:
        # The last URL is that of keystone, whose catalog has no endpoint.
        url = call.url
    elif exchange.last_is_login:
        party = causes.keystone(party)
    return dataclasses.replace(call, party=lambda: party, occasion=occasion,
                               url=url or call.url)


def _cause(meaning: library_errors.Meaning, exc: Exception,
           exchange: _Exchange, waited: float) -> causes.Cause:
    """Return what the party did, by the best evidence there is."""
    if meaning is exceptions.OutOfTime:
        return causes.OUT_OF_TIME
    if exchange.cause:
        return exchange.cause
    if meaning is exceptions.DeadlineExceeded:
        return causes.SLOW.with_detail(waited)
    if issubclass(meaning, exceptions.Permanent):
        # Of what libraries raise, only a wrong configuration is permanent.
        return causes.CONFIGURATION.with_detail(_safe_text(exc))
    if isinstance(exc, library_errors.NoEndpoint):
        return exc.cause
    if isinstance(exc, library_errors.CATALOG):
        return causes.NO_ENDPOINT.with_detail('')
    if exchange.answer:
        # The answer had a status of success, and an unexpected body.
        return causes.UNUSABLE.with_detail(exchange.answer)
    return library_errors.cause(exc, waited, exchange.handled)


def _safe_text(exc: BaseException) -> str:
    if isinstance(exc, requests.exceptions.InvalidHeader):
        # The message quotes the header, which may be the token.
        return 'a header of the request is not valid'
    return without_secrets(str(exc))


def _address(service: str, url: str) -> str:
    """Return a name for errors, with the scheme and host of a valid URL."""
    with contextlib.suppress(ValueError):
        address = urllib.parse.urlsplit(url)
        if address.netloc:
            return '%s at %s://%s' % (service, address.scheme,
                                      address.netloc.rpartition('@')[2])
    return service
