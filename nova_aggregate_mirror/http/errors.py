# SPDX-License-Identifier: Apache-2.0
"""Translation of HTTP library errors to retriable or permanent errors.

The texts of the libraries, which may state a cause that nobody observed, go to
the log at DEBUG.
"""

from collections import abc
import contextlib
import dataclasses
import logging as library_log
import re
import time
import urllib.parse

from oslo_log import log as logging
from oslo_utils import strutils
import requests
from requests import exceptions as requests_exceptions

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import exchanges
from nova_aggregate_mirror.http import library_errors
from nova_aggregate_mirror.limits import deadline

LOG = logging.getLogger(__name__)

Kind = library_errors.Kind

_LONGEST = 300  # Characters of an observation.
# Raised by libraries for a malformed token, catalog or version document.
# Keystoneauth also asserts that it still has the token that it fetched, which
# another thread may have invalidated.
_PARSING = (LookupError, TypeError, AttributeError, AssertionError,
            RecursionError, OverflowError)

Parties = abc.Callable[[], causes.Party]
"""The options are only read for a failure."""


@dataclasses.dataclass(frozen=True)
class Call:
    """A request to a service, for the failures of this request.

    :param party: returns the service and its options
    :param occasion: what the request is for, or its method and path
    :param url: any URL of the service, if it is known
    :param kind: the class of all failures, if what happened does not decide
    :param step: the next step after any failure
    """

    party: Parties
    occasion: str
    url: str = ''
    kind: Kind | None = None
    step: str = ''

    def error(self, kind: Kind, cause: causes.Cause, url: str = '',
              party: causes.Party | None = None) -> exceptions.MirrorError:
        """Create an error without secrets; ``kind`` is for what happened."""
        party = party or self.party()
        observation = ' '.join(without_secrets(cause.phrase).split())
        if kind is exceptions.OutOfTime and deadline.is_budget():
            cause = cause.in_call()
        step = self.step or cause.step_for(party)
        error_class = self.kind or kind
        error = error_class(
            observation[:_LONGEST].rstrip('. '),
            _address(party.name, url or self.url),
            without_secrets(self.occasion), step=step, kind=cause.kind)
        # Whether to repeat the request depends on what happened.
        error.is_repeatable = kind.is_repeatable
        error.is_refusal = kind.is_refusal
        return error

    def malformed(self, content: str) -> exceptions.MirrorError:
        """Create the error for an answer that is not as it should be."""
        return self.error(exceptions.MalformedAnswer,
                          causes.MALFORMED.with_detail(content))


def _filter_warning(record: library_log.LogRecord) -> bool:
    """Return False for a warning about our requests; log it at DEBUG."""
    if exchanges.CURRENT.get() is None or record.levelno < library_log.WARNING:
        return True
    LOG.debug('%s: %s', record.name, without_secrets(record.getMessage()))
    return False


for _name in 'discover', 'identity.base', 'identity.generic.base', 'session':
    library_log.getLogger('keystoneauth.' + _name).addFilter(_filter_warning)


@contextlib.contextmanager
def translated(call: Call) -> abc.Iterator[None]:
    """Translate library errors that are raised inside to a MirrorError."""
    exchange, began = exchanges.Exchange(), time.monotonic()
    token = exchanges.CURRENT.set(exchange)
    try:
        yield
    except library_errors.CLASSES as exc:
        LOG.debug('%s: %s: %s', call.occasion, type(exc).__name__,
                  _safe_text(exc))
        waited = time.monotonic() - began
        kind = exchange.meaning(exc, waited)
        call = dataclasses.replace(call, occasion=_occasion(call, exchange))
        cause = _cause(kind, exc, exchange, waited)
        url, party = _failed_party(call, kind, exc, exchange)
        error = call.error(kind, cause, url, party)
        # Servers close kept connections while a request is on its way.
        error.is_repeatable |= cause == causes.DISCONNECTED
        error.retry_after = _retry_after(getattr(exc, 'response', None))
        raise error from exc
    finally:
        exchanges.CURRENT.reset(token)


@contextlib.contextmanager
def parsing() -> abc.Iterator[None]:
    """Let ``translated`` treat errors of a library's parser as malformed.

    In other contexts these are programming errors, which it does not catch.
    """
    try:
        yield
    except library_errors.CLASSES:
        # ``translated`` has a class for it, even if it is one of those below.
        raise
    except _PARSING as exc:
        raise ValueError(
            '%s: %s' % (type(exc).__name__, _safe_text(exc))) from exc


def unexpected(call: Call, response: requests.Response, detail: str = '',
               kind: Kind | None = None, cause: causes.Cause | None = None
               ) -> exceptions.MirrorError:
    """Create the error for a response with a status other than 200.

    :param detail: what the body says, if anything
    :param kind: the class, and ``cause``, if the status does not decide them
    """
    status = ': '.join(filter(None, (exchanges.answer(response), detail)))
    cause = cause or _refusal(response)
    error = call.error(
        kind or library_errors.meaning_of_status(response.status_code),
        cause.with_detail(status), response.url or '')
    error.retry_after = _retry_after(response)
    return error


def _retry_after(response: requests.Response | None) -> float:
    """Return the seconds to wait after a 429; 0 if it does not say that."""
    if response is None or response.status_code != 429:
        return 0.0
    value = response.headers.get('Retry-After', '').strip()
    # A date, which is allowed, too, is by a clock that is not this host's.
    return float(value) if re.fullmatch('[0-9]{1,9}', value) else 0.0


def _refusal(response: requests.Response) -> causes.Cause:
    """Return what an error status of a service, or of a proxy, means."""
    challenge = response.headers.get('WWW-Authenticate', '').lower()
    # Keystone's middleware challenges, a proxy does not for keystone.
    if response.status_code == 401 and challenge.startswith('keystone'):
        return causes.TOKEN
    # A service explains what its policy refuses in JSON, a proxy in HTML.
    if response.status_code == 403 and not exchanges.foreign_type(response):
        return causes.ROLE
    return exchanges.unavailable(response)


def without_secrets(text: str) -> str:
    """Mask passwords, tokens and the user information of URLs."""
    text = re.sub(r'(?<=//)[^/\s]*@', '', text)
    # Token headers as quoted by libraries; oslo.utils masks other names.
    text = re.sub(r'''(?i)(x-[a-z]+-token['"]?\s*[:=]\s*)[^\s,;]+''',
                  r'\1***', text)
    return strutils.mask_password(text)


def _occasion(call: Call, exchange: exchanges.Exchange) -> str:
    """Return what the failed request was for; discovery has its own."""
    if exchange.is_login:
        return 'getting a token' if exchange.cause else call.occasion
    path = call.occasion.partition(' ')[2]
    if not exchange.url or path[:1] != '/' or path in exchange.url:
        return call.occasion
    return '%s %s' % (exchange.method,
                      urllib.parse.urlsplit(exchange.url).path or '/')


def _failed_party(call: Call, kind: Kind, exc: Exception,
                  exchange: exchanges.Exchange) -> tuple[str, causes.Party]:
    """Return the URL, if it is known, and the party that failed."""
    party = call.party()
    if kind is exceptions.DeadlineExceeded and not exchange.cause and (
            exchange.has_login or not exchange.url):
        # It is unknown which was slow: a thread also waits for a token that
        # another thread requests.
        name = 'keystone or %s' % party.name
        return '', dataclasses.replace(party, name=name, server=name)
    if isinstance(exc, library_errors.CATALOG) and not exchange.cause:
        # Keystone has answered, and knows no URL of the service.
        return '', party
    if exchange.is_login:
        party = causes.keystone(party)
    return exchange.url, party


def _cause(kind: Kind, exc: Exception, exchange: exchanges.Exchange,
           waited: float) -> causes.Cause:
    """Return what the party did: the first of these that is known."""
    if kind is exceptions.OutOfTime:
        return causes.OUT_OF_TIME
    if exchange.cause:
        return exchange.cause
    if kind is exceptions.DeadlineExceeded:
        return causes.SLOW.with_detail(waited)
    if kind.is_of_configuration:
        return causes.CONFIGURATION.with_detail(_safe_text(exc))
    if isinstance(exc, library_errors.NoEndpoint):
        return exc.cause
    if isinstance(exc, library_errors.CATALOG):
        return causes.NO_ENDPOINT.with_detail('')
    if exchange.answer:
        # The request was answered with success, but not as it should be.
        return causes.UNUSABLE.with_detail(exchange.answer)
    return library_errors.cause(exc, waited, exchange.handled)


def _safe_text(exc: BaseException) -> str:
    """Return the text of an error without secrets."""
    if isinstance(exc, requests_exceptions.InvalidHeader):
        # The message quotes the header, which may be the token.
        return 'a header of the request is not valid'
    return without_secrets(str(exc))


def _address(service: str, url: str) -> str:
    """Name a service and its address."""
    with contextlib.suppress(ValueError):
        address = urllib.parse.urlsplit(url)
        if address.netloc:
            return '%s at %s://%s' % (service, address.scheme,
                                      address.netloc.rpartition('@')[2])
    return service
