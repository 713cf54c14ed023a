# SPDX-License-Identifier: Apache-2.0
"""The report client against a real placement and scripted keystones."""

from concurrent import futures
import gc
import os
import socket
import struct
import threading
from typing import Any

import fixtures
import openstack
from oslo_config import cfg
from oslo_utils import uuidutils

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import transport
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror.placement import workers
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror.reconcile import survey
from tests import patience
from tests import placement_service
from tests.unit import servers

PROVIDER = uuidutils.generate_uuid()
AGGREGATE = uuidutils.generate_uuid()
PATH = '/resource_providers/%s/aggregates' % PROVIDER
LIMITED = client.Client._limited


def client_of(url: str) -> client.Client:
    """Return a client that needs no token."""
    return client.Client(servers.make_conf(
        auth_type='none', endpoint_override=url))


class PlacementTestCase(servers.LoopbackTestCase):
    """The client with a real placement."""

    def setUp(self) -> None:
        super().setUp()
        self.placement = self.useFixture(placement_service.PlacementService())
        self.conf = self.make_conf()
        self.client = client.Client(self.conf)
        self.placement.create_provider(PROVIDER, 'node')

    def make_conf(self, **placement: Any) -> cfg.ConfigOpts:
        return servers.make_conf(
            auth_type='admin_token', endpoint=self.placement.url,
            token=placement_service.TOKEN, **placement)

    def test_client_that_only_reads(self) -> None:
        """A write is not even sent."""
        reader = client.Client(self.conf, reads_only=True)
        provider = reader.get(PROVIDER)
        self.assertRaises(RuntimeError, reader.put, provider, frozenset())
        self.assertEqual(
            ['GET'], [request.method for request in self.placement.requests
                      if 'aggregates' in request.path])

    def warm_up(self) -> None:
        self.client.providers()
        self.placement.requests.clear()

    def test_written_aggregates_are_read_back(self) -> None:
        """With a new generation, even if they are the same.

        A PUT of them invalidates every older write.
        """
        provider = self.client.get(PROVIDER)
        self.assertEqual(client.Provider(PROVIDER, frozenset(), 0), provider)
        for aggregates in {AGGREGATE}, {AGGREGATE}, set():
            self.client.put(provider, frozenset(aggregates))
            self.assertRaises(exceptions.GenerationConflict, self.client.put,
                              provider, frozenset())
            provider = self.client.get(PROVIDER)
            self.assertEqual(aggregates, provider.aggregates)

    def test_failed_attempts_leave_no_connection(self) -> None:
        """The agent probes an unavailable placement every second."""
        def live() -> list[openstack.connection.Connection]:
            gc.collect()
            return [one for one in gc.get_objects()
                    if isinstance(one, openstack.connection.Connection)]

        self.placement.refuse()
        # Those of earlier tests may end at any time.
        before = {id(one): one for one in live()}
        for _attempt in range(5):
            self.assertRaises(exceptions.ServiceUnreachable, self.client.probe)
        self.assertEqual([], [one for one in live() if id(one) not in before])

    def test_stale_write_is_a_conflict(self) -> None:
        """A concurrent change is never overwritten."""
        stale = self.client.get(PROVIDER)
        self.placement.set_aggregates(PROVIDER, [AGGREGATE])
        self.assertRaises(exceptions.GenerationConflict, self.client.put,
                          stale, frozenset())
        self.assertEqual({AGGREGATE}, self.placement.aggregates(PROVIDER))

    def test_missing_provider_is_not_found(self) -> None:
        """A missing provider has its own error."""
        missing = uuidutils.generate_uuid()
        self.assertRaises(exceptions.ProviderNotFound, self.client.get,
                          missing)
        self.assertRaises(
            exceptions.ProviderNotFound, self.client.put,
            client.Provider(missing, frozenset(), 0), frozenset())

    def test_upper_case_uuid_is_kept_as_it_is(self) -> None:
        """A foreign aggregate keeps its spelling."""
        foreign = AGGREGATE.upper()
        self.placement.set_aggregates(PROVIDER, [foreign])
        provider = self.client.get(PROVIDER)
        self.assertEqual({foreign}, provider.aggregates)
        provider = self.client.put(provider, provider.aggregates | {AGGREGATE})
        self.assertEqual({foreign, AGGREGATE},
                         self.placement.aggregates(PROVIDER))

    def test_members_of_many_aggregates(self) -> None:
        """Lists are complete; no request is longer than web servers allow."""
        aggregates = [uuidutils.generate_uuid() for _number in range(120)]
        other = uuidutils.generate_uuid()
        self.placement.create_provider(other, 'other')
        self.placement.set_aggregates(PROVIDER, aggregates[:1])
        self.placement.set_aggregates(other, aggregates[-1:])
        self.assertEqual({PROVIDER, other}, self.client.providers())
        self.placement.requests.clear()
        self.assertEqual({PROVIDER, other}, self.client.members(*aggregates))
        self.assertEqual(3, len(self.placement.requests))
        self.assertEqual(frozenset(), self.client.members())

    def test_memberships_take_few_requests(self) -> None:
        """Fifty aggregates that probably have no provider share a request.

        If one of them has a provider, each of the fifty is read. A provider
        in none of them is left out.
        """
        # However busy this machine is.
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.placement.isolation.PATIENCE',
            patience.LONGEST_CALL))
        self.warm_up()
        self.placement.create_provider(uuidutils.generate_uuid(), 'lonely')
        self.placement.set_aggregates(
            PROVIDER, [AGGREGATE, uuidutils.generate_uuid()])
        # Whichever fifty have the aggregate, by chance of their UUIDs.
        unused = [uuidutils.generate_uuid() for _ in range(929)]
        for used, rare, requests in (
                ([AGGREGATE], unused[29:], 1 + 900 / 50),
                (unused[:30], [AGGREGATE, *unused], 30 + 900 / 50 + 50)):
            # As after its first pass, when it knows of many providers.
            self.client = client.Client(self.conf)
            self.client.probe()
            self.placement.requests.clear()
            memberships, _unread = survey.read_memberships(
                provider_writes.Context(journal.Ledger(), None, self.client),
                frozenset(used), frozenset(rare))
            self.assertEqual({PROVIDER: {AGGREGATE}}, memberships)
            self.assertEqual(requests, len(self.placement.requests))

    def test_requests_carry_microversion_and_request_id(self) -> None:
        """Placement's log can be searched for the user's request.

        Once connected, a GET and a PUT are two requests.
        """
        self.warm_up()
        with self.client.request_id('req-of-the-user'):
            self.client.put(self.client.get(PROVIDER), frozenset())
        self.client.providers()
        self.assertEqual(
            [('GET', PATH, 'req-of-the-user', 'placement 1.36'),
             ('PUT', PATH, 'req-of-the-user', 'placement 1.36'),
             ('GET', '/resource_providers', None, 'placement 1.3')],
            [(sent.method, sent.path,
              sent.headers.get('X-Openstack-Request-Id'),
              sent.headers.get('Openstack-Api-Version'))
             for sent in self.placement.requests])

    def test_configured_retries_are_not_made(self) -> None:
        """Retries in [placement] do not multiply the load of an outage.

        After one answer per backend, the last one is the error.
        """
        self.client = client.Client(self.make_conf(
            connect_retries=3, status_code_retries=3))
        self.warm_up()
        self.placement.fail_with(503)
        self.assertRaises(exceptions.ServiceFailed, self.client.providers)
        self.assertEqual(1 + transport.REPEATS, len(self.placement.requests))

    def test_statuses_of_a_proxy(self) -> None:
        """A proxy's HTML page is never read as "provider not found"."""
        for expected, *statuses in (
                (exceptions.MalformedAnswer, 400, 404),
                (exceptions.Retriable, 401), (exceptions.NotAuthorized, 403),
                (exceptions.ServiceFailed, 409, 429, 500, 502, 503)):
            for status in statuses:
                self.warm_up()
                self.placement.fail_with(status)
                self.assertRaises(expected, self.client.get, PROVIDER)
                self.placement.recover()

    def limit_attempts(self) -> None:
        self.useFixture(fixtures.MonkeyPatch(
            placement_service.LIMITED, LIMITED))

    def test_silent_backend(self) -> None:
        """A read asks the next one, and a write can be begun again.

        Only if such requests were answered quickly before.
        """
        self.limit_attempts()
        self.client.put(self.client.get(PROVIDER), frozenset())
        self.placement.hang(every=2)
        with deadline.within(servers.PATIENCE):
            provider = self.client.get(PROVIDER)
            error = self.assertRaises(
                exceptions.DeadlineExceeded, self.client.put, provider,
                frozenset({AGGREGATE}))
            self.assertTrue(error.is_repeatable)
        self.placement.recover()

    def test_time_for_one_attempt(self) -> None:
        """Of a batch, a request that is its last attempt has it all."""
        self.limit_attempts()
        self.warm_up()
        self.placement.hang()
        with deadline.within(isolation.PATIENCE):
            self.assertRaises(
                exceptions.DeadlineExceeded, self.client.providers)
        self.assertEqual(1, len(self.placement.requests))
        self.placement.recover()

    def test_placement_that_becomes_slow(self) -> None:
        """Each attempt waits for longer than the one before it."""
        self.limit_attempts()
        self.warm_up()
        self.placement.slow(1.0)
        self.assertEqual({PROVIDER}, self.client.providers())
        self.assertGreater(len(self.placement.requests), 2)

    def test_lost_answer_is_an_error(self) -> None:
        """The outcome of a PUT without a response is unknown."""
        provider = self.client.get(PROVIDER)
        self.placement.drop_connection(lands=True)
        self.assertRaises(exceptions.ServiceUnreachable, self.client.put,
                          provider, frozenset({AGGREGATE}))
        self.assertEqual({AGGREGATE}, self.placement.aggregates(PROVIDER))

    def test_request_timeout(self) -> None:
        """A full sync has it; inside of a deadline, only that applies.

        The timeout of [placement] applies where it is shorter, and is final.
        """
        shorter = client.Client(self.make_conf(timeout=1))
        shorter.probe()
        self.placement.hang()
        placement = client.Client(self.conf, request_timeout=0.5)
        self.assertRaises(exceptions.DeadlineExceeded, placement.providers)
        self.placement.requests.clear()
        with deadline.within(servers.PATIENCE * 10):
            self.assertRaises(exceptions.DeadlineExceeded, shorter.providers)
        self.assertEqual(1, len(self.placement.requests))
        self.placement.recover()
        placement = client.Client(self.conf, request_timeout=0)
        self.assertRaises(exceptions.DeadlineExceeded, placement.providers)
        with deadline.within(servers.PATIENCE):
            self.assertEqual({PROVIDER}, placement.providers())

    def test_threads_share_one_client(self) -> None:
        """Many threads that start together connect once."""
        with futures.ThreadPoolExecutor(8) as pool:
            found = [pool.submit(self.client.providers) for _ in range(8)]
        self.assertEqual([{PROVIDER}] * 8, [each.result() for each in found])
        paths = [sent.path for sent in self.placement.requests]
        self.assertEqual(1, paths.count('/'))

    def test_forked_child_connects_for_itself(self) -> None:
        """Parent and child never share a socket or a lock."""
        self.warm_up()
        child = os.fork()
        if not child:
            try:
                os._exit(0 if self.client.providers() == {PROVIDER} else 1)
            finally:
                os._exit(2)
        _pid, status = os.waitpid(child, 0)
        self.assertEqual(0, status)
        self.assertEqual(['/', '/resource_providers'],
                         [sent.path for sent in self.placement.requests])


class KeptConnectionTestCase(servers.LoopbackTestCase):
    """The client with a server that keeps connections open."""

    def test_released_connection_is_closed(self) -> None:
        """Without an error, and the next call opens a new connection."""
        server = self.useFixture(servers.Server(_keeps_open))
        placement = client_of(server.url)
        placement.release()
        for _call in range(2):
            placement.probe()
        self.assertEqual(1, server.accepted)
        placement.release()
        self.assertTrue(server.closed.wait(servers.PATIENCE))
        placement.probe()
        self.assertEqual(2, server.accepted)


def _keeps_open(server: servers.Server, connected: socket.socket) -> None:
    while True:
        path = server.request(connected).split()[1]
        server.answer(connected, servers.DISCOVERY if path == b'/'
                      else b'{"resource_providers": []}')


class KeystoneTestCase(servers.LoopbackTestCase):
    """Tokens, the catalog, and their renewal."""

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(servers.Cloud())
        self.connect()

    def connect(self) -> None:
        self.client = client.Client(servers.make_conf(
            **self.cloud.account(region_name='R')))

    def test_endpoint_is_the_one_of_the_catalog(self) -> None:
        """An operator can see which placement was asked."""
        self.assertIn('endpoint unknown', self.client.endpoint())
        self.client.providers()
        self.assertEqual(
            'region R, interface internal,public, endpoint %s/' %
            self.cloud.url, self.client.endpoint())

    def test_deadline_includes_keystone_and_discovery(self) -> None:
        """The call ends at the deadline, and its error reports it."""
        for path in ('/v3', '/v3/auth/tokens', '/', '/resource_providers'):
            self.cloud.hanging = {path}
            with deadline.within(0.5):
                self.assertRaises(exceptions.DeadlineExceeded,
                                  self.client.providers)
        self.cloud.hanging = set()
        self.assertEqual(frozenset(), self.client.providers())

    def test_waiting_for_the_token_of_another_thread_is_bounded(self) -> None:
        """A thread with a long deadline does not delay another thread."""
        self.cloud.hanging = {'/v3/auth/tokens'}
        patient = threading.Thread(target=self._wait_long)
        patient.start()
        self.addCleanup(patient.join, servers.PATIENCE)
        self.assertTrue(self.cloud.stuck.wait(servers.PATIENCE))
        with deadline.within(0.2):
            error = self.assertRaises(exceptions.DeadlineExceeded,
                                      self.client.providers)
        # This thread has asked neither of them.
        self.assertIn('keystone or placement did not answer in time',
                      str(error))
        self.assertTrue(patient.is_alive())

    def _wait_long(self) -> None:
        with deadline.within(patience.seconds(3)):
            self.assertRaises(exceptions.DeadlineExceeded,
                              self.client.providers)

    def test_wrong_password_is_tried_once(self) -> None:
        """The client does not make keystone lock the account."""
        self.cloud.answers['/v3/auth/tokens'] = (401, {'error': {
            'code': 401, 'message': 'not you', 'title': 'Unauthorized'}})
        error = self.assertRaises(
            exceptions.NotAuthorized, survey.read_memberships,
            provider_writes.Context(journal.Ledger(), None, self.client,
                                    for_each=workers.in_threads(2)),
            frozenset({AGGREGATE, PROVIDER}), frozenset())
        self.assertEqual(1, self.cloud.count('/v3/auth/tokens'))
        self.assertNotIn('s3cret', str(error))
        self.cloud.grant(self.cloud.url)
        self.assertEqual(frozenset(), self.client.providers())

    def test_discovery_of_keystone_that_is_refused(self) -> None:
        """A proxy that requires a login for discovery causes no hang."""
        self.useFixture(fixtures.Timeout(servers.PATIENCE, gentle=True))
        self.cloud.answers['/v3'] = (401, {})
        self.assertEqual(frozenset(), self.client.providers())

    def test_revoked_token_is_replaced(self) -> None:
        """A revoked token costs a new token, not an error.

        If that is refused, too, another backend gets one more.
        """
        self.client.providers()
        self.cloud.answers['/resource_providers'] = (401, b'')
        self.assertRaises(exceptions.NotAuthorized, self.client.providers)
        self.assertEqual(3, self.cloud.count('/v3/auth/tokens'))

    def test_expired_token_and_changed_password(self) -> None:
        """Credentials that failed at a renewal are read again."""
        self.cloud.grant(self.cloud.url, expires='2020-01-01')
        self.client.providers()
        self.cloud.answers['/v3/auth/tokens'] = (401, {})
        self.assertRaises(exceptions.NotAuthorized, self.client.providers)
        self.cloud.grant(self.cloud.url)
        self.client.providers()
        self.assertEqual(2, self.cloud.count('/'))

    def test_placement_that_moved_without_a_word(self) -> None:
        """The old address may be silent: the catalog has the new address."""
        self.client.providers()
        self.cloud.hanging = {'/', '/resource_providers'}
        moved = self.move()
        with deadline.within(0.5):
            self.assertRaises(exceptions.DeadlineExceeded,
                              self.client.providers)
        with deadline.within(servers.PATIENCE):
            self.assertEqual(frozenset(), self.client.providers())
        self.assertEqual(1, moved.count('/resource_providers'))

    def move(self) -> servers.Cloud:
        """Let the catalog have another address from now on."""
        moved = self.useFixture(servers.Cloud())
        self.cloud.grant(moved.url)
        return moved

    def test_placement_that_moved_and_left_a_load_balancer(self) -> None:
        """The catalog is looked at after any answer but placement's own."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.placement.connection.REDISCOVERY', 0.0))
        answers: list[tuple[int, Any]] = [(status, b'<html>') for status in (
            204, 301, 400, 403, 404, 405, 406, 409, 410, 429, 500, 501, 502,
            503, 504)]
        for answer in *answers, *((status, {'errors': [{'status': status}]})
                                  for status in (405, 406)):
            self.cloud.grant(self.cloud.url)
            self.cloud.answers['/resource_providers'] = (
                200, {'resource_providers': []})
            self.connect()
            self.client.providers()
            moved = self.move()
            self.cloud.answers['/resource_providers'] = answer
            self.assertRaises(exceptions.MirrorError, self.client.providers)
            self.assertEqual(frozenset(), self.client.providers())
            self.assertEqual(1, moved.count('/resource_providers'))
            self.assertEqual('%s/' % moved.url,
                             self.client.endpoint().rpartition(' ')[2])
        # After a write, too: this server does not have its path.
        moved = self.move()
        self.assertRaises(exceptions.MirrorError, self.client.put,
                          client.Provider(PROVIDER, frozenset(), 0),
                          frozenset())
        self.client.providers()
        self.assertEqual(1, moved.count('/resource_providers'))

    def test_answer_that_says_nothing_of_the_address(self) -> None:
        """Placement has read the request: it would answer the same again.

        No other token is requested either.
        """
        self.client.providers()
        for count, (status, error) in enumerate((
                (404, {'detail': 'No resource provider %s' % PROVIDER}),
                (409, {'code': 'placement.concurrent_update'}),
                (400, {'detail': 'Invalid UUID'})), 1):
            self.cloud.answers[PATH] = status, {
                'errors': [{'status': status, **error}]}
            self.assertRaises(exceptions.MirrorError, self.client.get,
                              PROVIDER)
            self.assertEqual(count, self.cloud.count(PATH))
        self.client.providers()
        self.assertEqual(1, self.cloud.count('/v3/auth/tokens'))

    def test_address_that_stays(self) -> None:
        """The client stays, too; the catalog is looked at once in a while."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova_aggregate_mirror.placement.connection.REDISCOVERY', 10 ** 9))
        self.client.providers()
        endpoint = self.client.endpoint()
        answer = 503, b'<html>'
        self.cloud.answers |= {'/': answer, '/resource_providers': answer}
        for _call in range(3):
            self.assertRaises(exceptions.ServiceFailed, self.client.providers)
        self.assertEqual(2, self.cloud.count('/v3/auth/tokens'))
        self.assertEqual(endpoint, self.client.endpoint())

    def test_other_address_that_does_not_answer(self) -> None:
        """The client is replaced only by one that works."""
        self.client.providers()
        gone = self.move()
        gone.answers['/'] = gone.answers['/resource_providers'] = 500, b''
        self.cloud.failures['/resource_providers'] = [
            (503, b'')] * (1 + transport.REPEATS)
        self.assertRaises(exceptions.ServiceFailed, self.client.providers)
        self.assertEqual(frozenset(), self.client.providers())

    def test_configured_address(self) -> None:
        """No catalog decides: none is looked at."""
        placement = client.Client(servers.make_conf(**self.cloud.account(
            region_name='R', endpoint_override=self.cloud.url)))
        placement.providers()
        tokens = self.cloud.count('/v3/auth/tokens')
        self.cloud.answers['/resource_providers'] = 503, b'<html>'
        self.assertRaises(exceptions.ServiceFailed, placement.providers)
        self.assertEqual(tokens, self.cloud.count('/v3/auth/tokens'))

    def test_nonsense_of_keystone(self) -> None:
        """Any malformed token response is an error of this package."""
        for body in (b'', b'<html>', b'[' * 100000, None, [], {},
                     {'token': []}, {'token': 'x'}, {'token': {'catalog': 1}},
                     {'token': {'expires_at': 'soon', 'catalog': [3]}},
                     {'token': {'expires_at': '0001-01-01T00:00:00+14:00'}},
                     self.cloud.token('http://[')):
            self.cloud.answers['/v3/auth/tokens'] = (201, body)
            self.assertRaises(exceptions.Retriable, self.client.providers)

    def test_nonsense_of_discovery(self) -> None:
        """It is an error of this package, too."""
        for body in (b'', b'<html>', [], {}, {'versions': 3},
                     {'versions': [3]}, {'versions': [{'id': []}]}):
            self.cloud.answers['/'] = (200, body)
            self.assertRaises(exceptions.Retriable, self.client.providers)


class MalformedAnswerTestCase(servers.LoopbackTestCase):
    """Malformed placement responses are errors, never empty sets."""

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(servers.Cloud())
        self.client = client_of(self.cloud.url)

    def test_bodies(self) -> None:
        """Only UUIDs, complete, and an integer are what placement has.

        The response to a PUT must repeat it, with the next generation.
        """
        providers = (
            b'', b'<html>Welcome</html>', b'{"resource_providers": [',
            b'\xff\xfe\x00', b'[' * 100000, [], 'text', None, 0, {},
            {'resource_providers': None}, {'resource_providers': {}},
            {'resource_providers': [None]}, {'resource_providers': [{}]},
            {'resource_providers': [{'uuid': 'x'}]},
            {'resource_providers': [{'uuid': PROVIDER}, {'uuid': 1}]})
        provider = (
            {}, {'aggregates': []}, {'resource_provider_generation': 1},
            *({'aggregates': aggregates, 'resource_provider_generation': 1}
              for aggregates in (None, {}, ['x'], [[]])),
            *({'aggregates': [], 'resource_provider_generation': generation}
              for generation in (None, '1', 1.0, True)))
        written = (
            {'aggregates': [], 'resource_provider_generation': 8},
            {'aggregates': [AGGREGATE], 'resource_provider_generation': 7},
            {'aggregates': [AGGREGATE, PROVIDER],
             'resource_provider_generation': 8})
        for path, bodies, call, *args in (
                ('/resource_providers', providers, self.client.providers),
                (PATH, provider, self.client.get, PROVIDER),
                (PATH, written, self.client.put,
                 client.Provider(PROVIDER, frozenset(), 7),
                 frozenset({AGGREGATE}))):
            for body in bodies:
                self.cloud.answers[path] = (200, body)
                self.assertRaises(exceptions.MalformedAnswer, call, *args)

    def test_write_of_what_is_no_json(self) -> None:
        """An argument of the wrong type is not reported as a bad response."""
        self.client.providers()
        self.assertRaises(
            TypeError, self.client.put,
            client.Provider(PROVIDER, frozenset(), 7), frozenset({object()}))

    def test_unexpected_success_is_an_error(self) -> None:
        """Only status 200 is a valid response."""
        for status in (201, 202, 204, 304):
            self.cloud.answers['/resource_providers'] = (status, b'')
            self.assertRaises(exceptions.ServiceFailed, self.client.providers)

    def test_not_found_in_other_words(self) -> None:
        """A 404 that does not name the provider is not "not found"."""
        for body in (
                {'errors': [{'status': 404, 'detail': 'No such path'}]},
                {'errors': [{'status': 500, 'detail': PROVIDER}]},
                {'errors': [PROVIDER]}, {'errors': PROVIDER}, {'errors': []},
                {'itemNotFound': {'message': PROVIDER}}, [PROVIDER]):
            self.cloud.answers[PATH] = (404, body)
            self.assertRaises(exceptions.MalformedAnswer, self.client.get,
                              PROVIDER)

    def test_conflict_of_another_kind(self) -> None:
        """Only a concurrent update is a generation conflict."""
        self.cloud.answers[PATH] = (409, {'errors': [
            {'status': 409, 'code': 'placement.undefined_code'}]})
        self.assertRaises(
            exceptions.ServiceFailed, self.client.put,
            client.Provider(PROVIDER, frozenset(), 1), frozenset())

    def test_no_answer(self) -> None:
        """The failure names the service, and quotes OpenSSL's reason."""
        for url, observation in (
                ('http://nowhere.invalid',
                 '^has a host name that does not resolve$'),
                (self.cloud.url.replace('http', 'https'),
                 '^failed the TLS handshake')):
            placement = client.Client(
                servers.make_conf(auth_type='none', endpoint_override=url),
                request_timeout=servers.PATIENCE)
            failure = self.assertRaises(
                exceptions.ServiceUnreachable, placement.providers).failure
            self.assertEqual('placement at ' + url, failure.party)
            self.assertRegex(failure.observation, observation)

    def test_secrets_stay_out_of_messages(self) -> None:
        """No password or token is in a message."""
        self.client = client_of('http://nova:s3@cret@' + self.cloud.host)
        self.cloud.answers['/resource_providers'] = (400, {'errors': [{
            'status': 400, 'detail': "'password': 's3cret'; "
            'see http://nova:s3@cret@placement/doc'}]})
        error = self.assertRaises(exceptions.RequestRejected,
                                  self.client.providers)
        for text in (str(error), self.client.endpoint()):
            self.assertNotIn('s3', text)
            self.assertNotIn('cret@', text)
        self.assertIn(self.cloud.host, self.client.endpoint())


class BodyTestCase(servers.LoopbackTestCase):
    """Responses that are damaged in transit."""

    def assert_raises(self, expected: type[exceptions.MirrorError],
                      answer: bytes, reset: bool = False) -> None:
        def script(server: servers.Server, client: socket.socket) -> None:
            while server.request(client).startswith(b'GET / '):
                server.answer(client, servers.DISCOVERY)
            if reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                  struct.pack('ii', 1, 0))
            client.sendall(answer)

        server = self.useFixture(servers.Server(script))
        self.assertRaises(expected, client_of(server.url).providers)

    def test_what_is_no_answer_of_placement(self) -> None:
        """It is not parsed, and an error of placement, not of this package."""
        chunked = b'Transfer-Encoding: chunked\r\n\r\n'
        redirect = b'HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: '
        for answer in (
                *(b'HTTP/1.1 200 OK\r\n' + rest for rest in (
                    # A body that is shorter than announced.
                    b'Content-Length: 30\r\n\r\n{"resource_providers": []}',
                    b'Content-Length: 30\r\n\r\n{"resource_prov',
                    b'Content-Length: 30\r\n\r\n',
                    # Incomplete chunks.
                    chunked + b'1a\r\n{"resource_providers": []}\r\n',
                    chunked + b'x\r\n',
                    chunked + b'ffff\r\n{"resource_providers": []}',
                    b'Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n'
                    b'nope')),
                # A redirect to what is no URL.
                *(redirect + location + b'\r\n\r\n' for location in (
                    b'http://[', b'http://\xff', b'http://x:y/')),
                # The greeting of another service.
                b'SSH-2.0-OpenSSH_9.2\r\n', b'\x15\x03\x01\x00\x02',
                b'HTTP/1.1 abc\r\n\r\n'):
            self.assert_raises(exceptions.MalformedAnswer, answer)

    def test_relative_redirect(self) -> None:
        """RFC 9110 allows one; it is followed."""
        cloud = self.useFixture(servers.Cloud())
        cloud.answers['/resource_providers'] = 302, b''
        cloud.answers['/new/providers'] = 200, {'resource_providers': []}
        cloud.headers['Location'] = '/new/providers'
        self.assertEqual(frozenset(), client_of(cloud.url).providers())

    def test_redirect_that_cannot_be_followed(self) -> None:
        """What was answered comes first, not that nothing can be asked."""
        cloud = self.useFixture(servers.Cloud())
        placement = client_of(cloud.url)
        placement.providers()
        cloud.answers['/resource_providers'] = 302, {}
        for location in 'ftp://elsewhere/', 'http://[', '//[', 'x:y':
            cloud.headers['Location'] = location
            error = self.assertRaises(exceptions.MalformedAnswer,
                                      placement.providers)
            self.assertEqual(
                'placement at %s answered 302, which cannot be used (GET '
                '/resource_providers)' % cloud.url,
                str(error).partition(': ')[0])

    def test_version_document_that_is_refused(self) -> None:
        """The error names the request that was made, and no other."""
        cloud = self.useFixture(servers.Cloud())
        for status in 503, 404, 401:
            cloud.answers['/'] = status, b''
            error = self.assertRaises(
                exceptions.MirrorError, client_of(cloud.url).providers)
            self.assertEqual('GET /', error.failure.occasion)
            self.assertEqual(0, cloud.count('/resource_providers'))

    def test_connection_that_ends(self) -> None:
        """A closed or reset connection means placement is unavailable."""
        self.assert_raises(exceptions.ServiceUnreachable, b'')
        self.assert_raises(exceptions.ServiceUnreachable, b'', reset=True)
