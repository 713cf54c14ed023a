# SPDX-License-Identifier: Apache-2.0
"""The translation of every library's errors into this package's errors."""

import http.client
import json
import logging
from typing import Any

import fixtures
from keystoneauth1 import exceptions as ks_exceptions
from openstack import exceptions as sdk_exceptions
from oslo_config import cfg
import requests
import testtools
import urllib3

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors


CALL = errors.Call(lambda: causes.openstack_client('placement'), 'GET /path')


def _classes(module: Any) -> list[type[Exception]]:
    return [cls for _name, cls in sorted(vars(module).items())
            if isinstance(cls, type) and issubclass(cls, Exception)
            and not issubclass(cls, Warning)]


def _make(cls: type[Exception]) -> Exception:
    # Their constructors, and some texts, require various arguments.
    subclass = type(cls.__name__, (cls,), {'__str__': lambda self: 'text'})
    return subclass.__new__(subclass)


# Older keystoneauth has no class for it and raises the base class.
TooManyRequests = getattr(ks_exceptions, 'TooManyRequests',
                          ks_exceptions.HTTPClientError)
MEANINGS: tuple[tuple[type[exceptions.MirrorError], list[Exception]], ...] = (
    (exceptions.ServiceUnreachable, [
        ConnectionRefusedError(), ConnectionResetError(), OSError(),
        http.client.RemoteDisconnected(),
        ks_exceptions.ConnectFailure(), ks_exceptions.SSLError(),
        ks_exceptions.EndpointNotFound(), ks_exceptions.EmptyCatalog(),
        ks_exceptions.DiscoveryFailure(), sdk_exceptions.NotSupported(),
        ks_exceptions.InvalidOidcDiscoveryDocument('no document'),
        sdk_exceptions.ServiceDisabledException(),
        sdk_exceptions.ServiceDiscoveryException(),
        requests.exceptions.SSLError(), requests.exceptions.ProxyError()]),
    (exceptions.DeadlineExceeded, [
        TimeoutError(), ks_exceptions.ConnectTimeout(),
        requests.exceptions.ReadTimeout(),
        requests.exceptions.ConnectTimeout()]),
    (exceptions.NotAuthorized, [
        ks_exceptions.Unauthorized(), ks_exceptions.Forbidden(),
        ks_exceptions.AuthorizationFailure()]),
    (exceptions.ServiceFailed, [
        ks_exceptions.InternalServerError(), ks_exceptions.BadGateway(),
        ks_exceptions.ServiceUnavailable(), ks_exceptions.GatewayTimeout(),
        TooManyRequests(http_status=429), ks_exceptions.RequestTimeout(),
        ks_exceptions.Conflict(), requests.exceptions.TooManyRedirects()]),
    (exceptions.MalformedAnswer, [
        ks_exceptions.NotFound(),
        requests.exceptions.ChunkedEncodingError(),
        requests.exceptions.ContentDecodingError(),
        requests.exceptions.InvalidJSONError(),
        json.JSONDecodeError('', '', 0),
        UnicodeDecodeError('x', b'', 0, 0, ''),
        http.client.BadStatusLine('x')]),
    (exceptions.RequestRejected, [
        ks_exceptions.BadRequest(), ks_exceptions.NotAcceptable()]),
    (exceptions.MissingCredentials, [
        ks_exceptions.MissingAuthPlugin(),
        ks_exceptions.NoMatchingPlugin('x')]),
    (exceptions.InvalidConfiguration, [
        cfg.NoSuchOptError('x'), sdk_exceptions.ConfigException(),
        requests.exceptions.MissingSchema(),
        requests.exceptions.InvalidURL()]),
)


# The last error is keystoneauth's when another thread dropped the token.
PROGRAMMING = (TypeError(), AttributeError(), KeyError(), IndexError(),
               RecursionError(), OverflowError(), AssertionError())


class TranslationTestCase(testtools.TestCase):
    """Every error of every library is translated."""

    def translate(self, error: Exception) -> exceptions.MirrorError:
        return self.assertRaises(exceptions.MirrorError, self._raise, error)

    def test_every_class_is_translated(self) -> None:
        """No library error class can reach the callers."""
        seen = 0
        for module in (ks_exceptions, sdk_exceptions, requests.exceptions,
                       urllib3.exceptions, http.client):
            for cls in _classes(module):
                error = _make(cls)
                translated = self.translate(error)
                self.assertIs(error, translated.__cause__, cls)
                self.assertIn('(GET /path)', str(translated))
                seen += 1
        self.assertGreater(seen, 150)

    def test_proxy(self) -> None:
        """It is named with its variable, and without its password."""
        for variable, value in (('https_proxy', 'http://user:secret@proxy:1'),
                                ('all_proxy', 'proxy:1')):
            names = 'https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'
            for name in names:
                self.useFixture(fixtures.EnvironmentVariable(
                    name, value if name == variable else None))
            error = requests.exceptions.ProxyError(
                ConnectionRefusedError(), request=requests.Request(
                    'GET', 'https://keystone.example/v3').prepare())
            text = str(self.translate(error))
            self.assertIn('is behind the proxy http://proxy:1, which refused '
                          'the connection', text)
            self.assertIn('correct %s; both' % variable, text)

    def test_meaning_of_the_important_ones(self) -> None:
        """Retriable or permanent, also while a response is parsed."""
        for expected, samples in MEANINGS:
            for error in samples:
                for call in self._raise, self._parse:
                    translated = self.assertRaises(
                        exceptions.MirrorError, call, error)
                    self.assertIs(expected, type(translated), repr(error))

    def test_programming_errors(self) -> None:
        """They mean a malformed response only while a library parses one."""
        for error in PROGRAMMING:
            self.assertIs(error, self.assertRaises(
                type(error), self._raise, error))
            parsed = self.assertRaises(
                exceptions.MalformedAnswer, self._parse, error)
            self.assertIs(error, getattr(parsed.__cause__, '__cause__'))
            self.assertIn('(GET /path)', str(parsed))

    def test_refused_header_is_not_quoted(self) -> None:
        """A token that cannot be a header stays out of the message."""
        error = requests.exceptions.InvalidHeader('X-Auth-Token: gAAAAA')
        self.assertNotIn('gAAA', str(self.translate(error)))

    def test_error_that_the_caller_handles(self) -> None:
        """It is not taken for that of the request."""
        try:
            raise ConnectionResetError
        except ConnectionResetError:
            error = self.translate(ConnectionRefusedError())
        self.assertIn('refused the connection', str(error))

    def test_own_errors_pass(self) -> None:
        """An error of this package is not wrapped again."""
        error = exceptions.ProviderNotFound('x')
        self.assertIs(error, self.assertRaises(
            exceptions.ProviderNotFound, self._raise, error))

    @staticmethod
    def _raise(error: Exception) -> None:
        with errors.translated(CALL):
            raise error

    @staticmethod
    def _parse(error: Exception) -> None:
        with errors.translated(CALL), errors.parsing():
            raise error

    def test_warning_of_keystoneauth(self) -> None:
        """It is logged at DEBUG for our requests, and for nova's as ever."""
        log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        logger = logging.getLogger('keystoneauth.identity.base')
        with errors.translated(CALL):
            logger.warning('Failed')
        self.assertEqual('', log.output)
        logger.warning('Failed')
        self.assertEqual('Failed\n', log.output)
