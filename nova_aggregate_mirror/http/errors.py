# SPDX-License-Identifier: Apache-2.0
"""Translation of HTTP library errors to retriable or permanent errors.

The texts of the libraries, which may state a cause that nobody observed, go to
the log at DEBUG. It is long because the party, what it did and the next step
depend on each other.
"""

from collections import abc
import contextlib
import dataclasses
import logging as library_log
import re
import time
import urllib.parse

from keystoneauth1 import exceptions as ks_exceptions
from oslo_log import log as logging
from oslo_utils import strutils
import requests
from requests import exceptions as requests_exceptions

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import exchanges
from nova_aggregate_mirror.http import library_errors
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import driver_failures

LOG = logging.getLogger(__name__)

Kind = library_errors.Kind

_LONGEST = 300  # Characters of an observation.
PROXY = 'correct the proxy, or no_proxy, in the environment of this process'

_IN_CATALOG = 'the URL of %s in the catalog'
NOT_IN_CATALOG = 'has no endpoint in the catalog'
NO_CATALOG = 'has no endpoint, because the token has no catalog'
_UNUSABLE = ', which cannot be used'

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


@dataclasses.dataclass(frozen=True)
class Call:
    """A request to a service, for the failures of this request.

    :param occasion: what the request is for, or its method and path
    :param url: any URL of the service, if it is known
    :param selection: what was looked for in the catalog
    :param kind: the class of all failures; by default their ``meaning``
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
        """Create an error, without secrets; by default of the service."""
        observation = ' '.join(without_secrets(observation).split())
        error = (self.kind or kind)(
            observation[:_LONGEST].rstrip('. '),
            party or _party(self.service, self.url),
            without_secrets(self.occasion), step=self.step or (
                deadline.MORE_TIME if kind is exceptions.OutOfTime
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


def _filter_warning(record: library_log.LogRecord) -> bool:
    """Return False for a warning about our requests; log it at DEBUG.

    Keystoneauth warns for each request, of causes that nobody observed.
    """
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
        party = _failed_party(call, kind, exc, exchange)
        call = dataclasses.replace(call, occasion=_occasion(call, exchange))
        observation, step = _explanation(call, kind, exc, exchange, waited)
        error = call.error(kind, observation, party, step)
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
        raise
    except _PARSING as exc:
        raise ValueError(
            '%s: %s' % (type(exc).__name__, _safe_text(exc))) from exc


def unexpected(call: Call, response: requests.Response, detail: str = '',
               kind: Kind | None = None) -> exceptions.MirrorError:
    """Create the error for a response with a status other than 200.

    :param kind: the class, if the status does not decide it
    """
    error = call.error(
        kind or library_errors.meaning_of_status(response.status_code),
        ': '.join(filter(None, (exchanges.answer(response), detail))),
        _party(call.service, response.url or call.url),
        _step_after_refusal(call, response))
    error.retry_after = _retry_after(response)
    return error


def _retry_after(response: requests.Response | None) -> float:
    """Return the seconds to wait after a 429; 0 if it does not say that."""
    if response is None or response.status_code != 429:
        return 0.0
    value = response.headers.get('Retry-After', '').strip()
    # It may be a date, too, by a clock that is not this host's.
    return float(value) if re.fullmatch('[0-9]{1,9}', value) else 0.0


def _step_after_refusal(call: Call, response: requests.Response) -> str:
    """Return the next step; empty unless the service itself refused."""
    challenge = response.headers.get('WWW-Authenticate', '').lower()
    # Keystone's middleware challenges; a policy is refused with a document.
    if response.status_code == 401 and challenge.startswith('keystone'):
        return call.steps().token
    if response.status_code == 403 and not exchanges.foreign_type(response):
        return call.steps().role
    return ''


def unusable(call: Call, response: requests.Response
             ) -> exceptions.MirrorError:
    """Create the error for a body that the service itself never sends."""
    return call.error(
        exceptions.MalformedAnswer, exchanges.answer(response) + _UNUSABLE,
        _party(call.service, response.url), 'correct %s' % call.address)


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


def _occasion(call: Call, exchange: exchanges.Exchange) -> str:
    """Return what the failed request was for; discovery has its own."""
    if exchange.is_login and exchange.failure:
        return 'getting a token'
    is_request = call.occasion.startswith(exchanges.METHODS)
    if exchange.is_login or not exchange.url or not is_request:
        return call.occasion
    path = call.occasion.partition(' ')[2]
    if path in exchange.url:
        return call.occasion
    return '%s %s' % (exchange.method,
                      urllib.parse.urlsplit(exchange.url).path or '/')


def _failed_party(call: Call, kind: Kind, exc: Exception,
                  exchange: exchanges.Exchange) -> str:
    """Name the party that failed, with its address if it is known."""
    if kind is exceptions.DeadlineExceeded and not exchange.failure and (
            exchange.has_login or not exchange.url):
        # It is unknown which was slow, maybe for another thread's token.
        return 'keystone or %s' % call.service
    if isinstance(exc, library_errors.CATALOG) and not exchange.failure:
        # Keystone has answered, and knows no URL of the service.
        return call.service
    return _party('keystone' if exchange.is_login else call.service,
                  exchange.url or call.url)


def _explanation(call: Call, kind: Kind, exc: Exception,
                 exchange: exchanges.Exchange, waited: float
                 ) -> tuple[str, str]:
    """Return (what the party did, the next step or empty)."""
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
    if isinstance(exc, library_errors.CATALOG):
        return (' for '.join(filter(None, (NOT_IN_CATALOG, call.selection))),
                call.steps().catalog)
    if exchange.answer:
        # The request was answered with success, but not as it should be.
        return exchange.answer + _UNUSABLE, (
            '' if exchange.is_login else 'correct %s' % call.address)
    return (library_errors.observation(exc, waited, exchange.handled),
            _step(call, exc, exchange))


def _step(call: Call, exc: Exception, exchange: exchanges.Exchange) -> str:
    """Return the next step after a failed request; empty if unknown."""
    if any(isinstance(cause, requests_exceptions.ProxyError)
           for cause in driver_failures.causes(exc, exchange.handled)):
        return PROXY
    if exchange.is_login and exchange.failure == exchanges.REFUSED:
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
