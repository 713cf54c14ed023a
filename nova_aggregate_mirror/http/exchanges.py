# SPDX-License-Identifier: Apache-2.0
"""Requests of a call, as the transport sees them."""

from collections import abc
import contextvars
import dataclasses
import sys
import time

import requests

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import library_errors
from nova_aggregate_mirror.limits import deadline


@dataclasses.dataclass
class Exchange:
    """The last request of a call."""

    url: str = ''
    """Empty before the first request."""
    method: str = ''
    is_login: bool = False
    """Whether it was a request to keystone."""
    has_login: bool = False
    """Whether there was any request to keystone."""
    answer: str = ''
    """The status, and the type of a body that is not JSON."""
    is_redirected: bool = False
    """Whether the answer names another address to ask."""
    cause: causes.Cause | None = None
    """What the party did instead of an answer with success."""
    has_timeout: bool = False
    """Whether any request timed out."""
    handled: BaseException | None = dataclasses.field(
        default_factory=sys.exception)
    """The error that the caller handles, which no request caused."""

    def meaning(self, exc: Exception, waited: float) -> library_errors.Kind:
        """Return the class of an error that ended a call of these seconds."""
        kind = library_errors.meaning(exc)
        if kind is exceptions.InvalidConfiguration and self.is_redirected:
            # The address that is not valid is not that of an option.
            return exceptions.MalformedAnswer
        if kind is exceptions.ServiceUnreachable and (
                self.has_timeout or not deadline.remaining()):
            # Version discovery replaces a timeout by another error.
            kind = exceptions.DeadlineExceeded
        if kind is not exceptions.DeadlineExceeded:
            return kind
        # If each request was answered, or the call began shortly before its
        # deadline, the time was this process's own.
        is_answered = bool(self.answer) and not self.has_timeout
        if is_answered or not deadline.is_silence(waited):
            return exceptions.OutOfTime
        return kind


CURRENT: contextvars.ContextVar[Exchange | None] = contextvars.ContextVar(
    'aggregate_mirror_exchange', default=None)
"""The exchange of the innermost ``errors.translated``, if any."""


def observe(send: abc.Callable[[], requests.Response],
            request: requests.PreparedRequest, is_login: bool
            ) -> requests.Response:
    """Send a request; note in the current exchange what becomes of it."""
    if not deadline.remaining():
        # The transport refuses to send it: what the request before it did
        # stays the reason.
        return send()
    exchange = CURRENT.get() or Exchange()
    exchange.url, exchange.method = request.url or '', request.method or ''
    exchange.is_login = is_login
    exchange.has_login |= is_login
    # Of a request before it.
    exchange.answer, exchange.cause, exchange.is_redirected = '', None, False
    # What is handled already is no cause of what is raised inside.
    began, handled = time.monotonic(), sys.exception()
    try:
        response = send()
    except library_errors.CLASSES as exc:
        waited = time.monotonic() - began
        is_timeout = library_errors.meaning(exc) is exceptions.DeadlineExceeded
        exchange.has_timeout |= is_timeout
        # A request that begins shortly before the deadline shows nothing.
        if not is_timeout or deadline.is_silence(waited):
            exchange.cause = library_errors.cause(exc, waited, handled)
        raise
    exchange.answer, sent = answer(response), response.request
    exchange.is_redirected = 300 <= response.status_code < 400
    # Keystone's version document is requested without credentials, and a 401
    # for it does not refuse them.
    has_credentials = sent.method == 'POST' or 'Authorization' in sent.headers
    if is_login and response.status_code == 401 and has_credentials:
        exchange.cause = causes.LOGIN
    elif response.status_code >= 400:
        exchange.cause = unavailable(response).with_detail(exchange.answer)
    return response


def unavailable(response: requests.Response) -> causes.Cause:
    """Return the cause for an error status of the service or of a proxy."""
    if response.status_code in (404, 410):
        return causes.WRONG_ADDRESS
    return (causes.NO_BACKEND if 502 <= response.status_code <= 504
            else causes.ANSWERED)


def answer(response: requests.Response) -> str:
    """Return the status, and the type of a body that is not JSON."""
    return ' with '.join(filter(None, (
        'answered %d' % response.status_code, foreign_type(response))))


def foreign_type(response: requests.Response) -> str:
    """Return the content type of a body that is not JSON; else empty."""
    kind = response.headers.get('Content-Type', '').partition(';')[0]
    return '' if kind.endswith('json') else kind
