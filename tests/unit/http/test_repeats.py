# SPDX-License-Identifier: Apache-2.0
"""Answers of one sick backend of many: reads are sent again."""

import json
import math
import socket

import fixtures
from keystoneauth1 import adapter as ks_adapter

from nova_aggregate_mirror import causes
from nova_aggregate_mirror.console import lookup
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import repeats
from nova_aggregate_mirror.http import resources
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror import openstack_options
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.placement import isolation
from nova_aggregate_mirror.source import api
from nova_aggregate_mirror.source import api_connection
from tests import documents
from tests.unit import servers

LIST, TOKEN = '/resource_providers', '/v3/auth/tokens'
SICK = (503, b'<html>No server is available</html>')
LISTED = b'{"resource_providers": []}'
PAGE = (200, b'<html>Welcome</html>')
PROVIDER = 'c2a1c1f4-62c5-4ac4-b1a5-5a5b6a0c1d11'
PATH = '/resource_providers/%s/aggregates' % PROVIDER


def raising(errors: list[exceptions.MirrorError]) -> None:
    raise errors.pop(0)


class RepeatsTest(servers.LoopbackTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.cloud = self.useFixture(servers.Cloud())
        self.conf = servers.make_conf(**self.cloud.account(region_name='R'))
        self.client = client.Client(self.conf)

    def test_answer_of_a_sick_backend(self) -> None:
        """Whatever it sends: the same GET is answered by another one."""
        for failure in (SICK, PAGE, (500, {}), (502, b''), (504, b''),
                        (429, b'slow down'), (404, b'<html>'), (406, b''),
                        (200, {'nothing': 'of placement'}), (409, {})):
            self.cloud.failures[LIST] = [failure] * repeats.REPEATS
            self.assertEqual(frozenset(), self.client.providers())
            self.assertEqual([], self.cloud.failures[LIST])

    def test_backends_that_are_all_sick(self) -> None:
        """The last answer is the error; nothing is asked for ever."""
        self.client.providers()
        self.cloud.requests.clear()
        self.cloud.answers[LIST] = SICK
        self.assertRaises(exceptions.ServiceFailed, self.client.providers)
        self.assertEqual(1 + repeats.REPEATS, self.cloud.count(LIST))

    def test_answer_that_took_the_time(self) -> None:
        """It is the cause, not that no time is left for another."""
        failures = [exceptions.ServiceFailed('answered 504'),
                    exceptions.OutOfTime('no time is left')]
        with deadline.within(60.0):
            error = self.assertRaises(
                exceptions.ServiceFailed, repeats.repeating(raising), failures)
        self.assertEqual('answered 504', str(error))
        failures = [exceptions.NovaUnavailable('answered 504'),
                    exceptions.NovaUnavailable(
                        'no time is left', kind=causes.OUT_OF_TIME.kind)]
        failures[0].is_repeatable = True
        with deadline.within(60.0):
            error = self.assertRaises(
                exceptions.NovaUnavailable, repeats.repeating(raising),
                failures)
        self.assertEqual('answered 504', str(error))
        self.assertRaises(exceptions.OutOfTime, repeats.repeating(raising),
                          [exceptions.OutOfTime('no time is left')])

    def test_service_that_asks_for_pauses(self) -> None:
        """It is asked as often as any other, whoever waits."""
        self.client.providers()
        self.cloud.answers[PATH] = 429, b'slow down'
        self.cloud.headers = {'Retry-After': '1'}
        self.useFixture(fixtures.MonkeyPatch('time.sleep', lambda _s: None))
        answers = self.client.ask(
            self.client.get, [PROVIDER], isolation.in_turn, math.inf)
        self.assertIn(PROVIDER, answers.failures)
        self.assertEqual(1 + repeats.REPEATS, self.cloud.count(PATH))

    def test_answer_of_placement(self) -> None:
        """It would be the same again."""
        self.client.providers()
        for status, document in (
                (404, {'errors': [{'status': 404, 'detail': PROVIDER}]}),
                (400, {'errors': [{'status': 400, 'detail': 'no'}]}),
                (403, {'errors': [{'status': 403, 'detail': 'no'}]})):
            self.cloud.requests.clear()
            self.cloud.answers[PATH] = status, document
            self.assertRaises(exceptions.MirrorError, self.client.get,
                              PROVIDER)
            self.assertEqual(1, self.cloud.count(PATH))

    def test_write(self) -> None:
        """It begins again at its GET, if at all: nothing is sent twice."""
        self.client.providers()
        self.cloud.answers[PATH] = SICK
        self.assertRaises(
            exceptions.ServiceFailed, self.client.put,
            client.Provider(PROVIDER, frozenset(), 1), frozenset())
        self.assertEqual(1, self.cloud.count(PATH))

    def test_new_connection(self) -> None:
        """A kept connection would lead to the same backend."""
        server = self.useFixture(servers.Server(_sick_connections))
        placement = client.Client(servers.make_conf(
            auth_type='admin_token', endpoint=server.url, token='any'))
        placement.probe()
        self.assertEqual(1 + repeats.REPEATS, server.accepted)

    def test_kept_connection_that_is_closed(self) -> None:
        """The server closes it while the request is on its way."""
        server = self.useFixture(servers.Server(_closes_second_request))
        placement = client.Client(servers.make_conf(
            auth_type='none', endpoint_override=server.url))
        for _request in range(2):
            placement.probe()
        self.assertEqual(2, server.accepted)

    def test_time_that_placement_asks_for(self) -> None:
        """It is waited, if it fits into the deadline of the call."""
        self.client.providers()
        for seconds, expected, requests in (
                ('0', frozenset(), 2), ('1', None, 1), ('999999999', None, 1)):
            self.cloud.headers = {'Retry-After': seconds}
            self.cloud.failures[LIST] = [(429, b'')]
            self.cloud.requests.clear()
            with deadline.within(0.9):
                answer = None
                try:
                    answer = self.client.providers()
                except exceptions.ServiceFailed as exc:
                    self.assertEqual(float(seconds), exc.retry_after)
            self.assertEqual(expected, answer)
            self.assertEqual(requests, self.cloud.count(LIST))

    def test_pause_before_the_repetition(self) -> None:
        """So many seconds, once per 429 that has such a header."""
        pauses: list[float] = []
        self.useFixture(fixtures.MonkeyPatch('time.sleep', pauses.append))
        self.client.providers()
        for header in ('7', 'soon', '-1', 'Wed, 21 Oct 2026 07:28:00 GMT'):
            self.cloud.headers = {'Retry-After': header}
            self.cloud.failures[LIST] = [(429, b''), SICK]
            self.client.providers()
        self.assertEqual([7.0, 0.0] + [0.0] * 6, pauses)

    def test_token(self) -> None:
        """One answer of a sick keystone is no outage of placement."""
        self.cloud.failures[TOKEN] = [SICK]
        self.assertEqual(frozenset(), self.client.providers())

    def test_nova_api_of_the_openstack_client(self) -> None:
        """It has the same kind of load balancer in front."""
        self.cloud.grant(self.cloud.url, others=[
            documents.service('compute', self.cloud.url)])
        source = api.ApiSource(api_connection.Api(
            auth.session(self.conf, 'placement'), servers.PATIENCE, 'R',
            'internal'))
        self.cloud.answers['/os-aggregates'] = (200, {'aggregates': []})
        for failure in SICK, PAGE, (200, {}):
            self.cloud.failures['/os-aggregates'] = [failure]
            self.assertEqual([], source.all_aggregates())

    def test_look_up_of_a_name(self) -> None:
        """In keystone, glance or neutron, for explain."""
        self.cloud.answers['/v2/images'] = (200, {'images': [
            {'id': 'the-id', 'name': 'linux'}]})
        for path in '/v2/images', '/v2/images/linux':
            self.cloud.failures[path] = [SICK]
        with deadline.within(servers.PATIENCE):
            self.assertEqual(['the-id'], lookup.identifiers(
                self._adapter, lambda: openstack_options.party('glance'),
                resources.IMAGE, 'linux'))

    def _adapter(self) -> ks_adapter.Adapter:
        return ks_adapter.Adapter(
            auth.session(self.conf, 'placement'),
            endpoint_override=self.cloud.url)


def _answer(status: bytes, body: bytes) -> bytes:
    return (b'HTTP/1.1 %s\r\nContent-Type: application/json\r\n'
            b'Content-Length: %d\r\n\r\n%s' % (status, len(body), body))


def _closes_second_request(server: servers.Server, connected: socket.socket
                           ) -> None:
    for _request in range(2):
        path = server.request(connected).split()[1]
        connected.sendall(_answer(
            b'200 OK', json.dumps(servers.VERSIONS).encode()
            if path == b'/' else LISTED))
    server.request(connected)


def _sick_connections(server: servers.Server, connected: socket.socket
                      ) -> None:
    """Answer all requests of a connection alike; only the last one is good."""
    is_good = server.accepted > repeats.REPEATS
    while True:
        path = server.request(connected).split()[1]
        if path == b'/':
            connected.sendall(_answer(
                b'200 OK', json.dumps(servers.VERSIONS).encode()))
        elif is_good:
            connected.sendall(_answer(b'200 OK', LISTED))
        else:
            connected.sendall(_answer(b'503 No', b''))
