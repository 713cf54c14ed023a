# SPDX-License-Identifier: Apache-2.0
"""Many calls during an outage, and placement seconds after it."""

import random
import sqlite3

import fixtures as base_fixtures
from keystoneauth1 import loading as ks_loading
import sqlalchemy as sa

from nova_aggregate_mirror.agent import service
from nova_aggregate_mirror import conf
from tests import fixtures
from tests import placement_service
from tests.unit import servers

CONF = fixtures.CONF
PASSWORD = ks_loading.get_auth_plugin_conf_options('password')
CALLS = 25
# An agent makes one step per second.
STEPS_IN_FIVE_SECONDS = 5


class RecoveryTest(servers.LoopbackTestCase):

    hooks = fixtures.MirroredNova

    def setUp(self):
        super().setUp()
        # After nova's fixture, which could not parse its arguments with these.
        self.addCleanup(CONF.unregister_opts, PASSWORD, 'placement')
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        conf.register_opts(CONF)
        self.random = random.Random(4711)
        self.clock = 0.0
        """How far the agent's clock is ahead of nova-api's."""
        self.hosts = [self.cloud.create_host('h%d' % number, nodes=nodes)
                      for number, nodes in enumerate((1, 1, 2, 1, 1))]
        self.members = {self.cloud.create_aggregate('a%d' % number): set()
                        for number in range(3)}
        self.begin()
        self.useFixture(self.hooks())

    def begin(self):
        """Prepare the state before nova-api starts."""

    def calls(self, count=CALLS):
        """Make mixed calls and assert that each gets nova's usual response."""
        for number in range(count):
            aggregate = self.random.choice(list(self.members))
            host = self.random.choice(self.hosts)
            inside = self.members[aggregate]
            if not inside and len(self.members) > 2 \
                    and self.random.random() < 0.5:
                self.assertEqual(200, self.cloud.delete_aggregate(aggregate))
                del self.members[aggregate]
                self.members[self.cloud.create_aggregate(
                    'new-%d' % number)] = set()
                continue
            act = (self.cloud.remove_host if host in inside
                   else self.cloud.add_host)
            inside ^= {host}
            outcome = act(aggregate, host)
            self.assertEqual((200, host in inside, True),
                             (outcome.status, outcome.member, outcome.ended))

    def wait_for(self, seconds):
        """Set the agent's timeout for placement requests."""
        CONF.set_override('request_timeout', seconds, 'aggregate_mirror')

    def recover(self, end):
        """Drain during the outage, and for five seconds after it."""
        worker = fixtures.Agent()
        worker.clock = self.clock
        self.wait_for(1.0)
        for _second in range(2):
            worker.drain()
        end()
        # It is available again, but may be slow.
        self.wait_for(30.0)
        for _second in range(STEPS_IN_FIVE_SECONDS):
            worker.drain()
            worker.clock += service.DRAIN_INTERVAL
        self.assertEqual([], worker.journal.rows.all())

    def check(self, begin, end):
        begin()
        self.calls()
        self.recover(end)
        self.assertEqual([], self.cloud.drift())


class TestPlacement(RecoveryTest):

    def check_fault(self, fault):
        self.check(lambda: getattr(self.cloud.placement, fault)(),
                   self.cloud.placement.recover)

    def check_status(self, status):
        self.check(lambda: self.cloud.placement.fail_with(status),
                   self.cloud.placement.recover)

    def test_hung_placement_is_asked_once(self):
        """A hundred calls do not wait for it in turn.

        Only a request that waited for a second shows that placement is
        silent, so that the first call needs more time than a busy machine
        takes before its request.
        """
        CONF.set_override('inline_timeout', 10.0, 'aggregate_mirror')
        # However long the calls take.
        CONF.set_override('inline_backoff', 3600.0, 'aggregate_mirror')
        self.cloud.placement.hang()
        self.calls(100)
        self.assertEqual(1, len(self.cloud.placement.requests))
        self.recover(self.cloud.placement.recover)
        self.assertEqual([], self.cloud.drift())

    def test_trickling_placement(self):
        """A response of a byte per second does not delay calls either."""
        CONF.set_override('inline_timeout', 0.3, 'aggregate_mirror')
        self.check_fault('trickle')

    def test_service_is_deleted_meanwhile(self):
        """The orphaned provider is removed from all aggregates."""
        host = self.hosts.pop()
        for aggregate in self.members:
            self.cloud.add_host(aggregate, host)
        self.cloud.placement.refuse()
        self.assertEqual(204, self.cloud.delete_service(host))
        self.recover(self.cloud.placement.recover)
        self.assertEqual([], self.cloud.drift())
        self.assertEqual(
            set(), self.cloud.placement.aggregates(host.nodes[0]))

    def test_clock_of_the_agent_is_behind(self):
        """Rows that are in the future of its clock are due as usual."""
        self.clock = -3600.0
        self.check_fault('refuse')


def _add(test, name, check, *args):
    def method(self):
        """Nova responds as usual; placement is in sync seconds later."""
        getattr(self, check)(*args)

    setattr(test, 'test_' + name, method)


for _fault in ('refuse', 'answer_with_a_page', 'answer_with_garbage',
               'drop_connection'):
    _add(TestPlacement, _fault, 'check_fault', _fault)
for _status in (401, 403, 429, 500, 503):
    _add(TestPlacement, str(_status), 'check_status', _status)


class TestKeystone(RecoveryTest):

    def begin(self):
        self.keystone = self.useFixture(servers.Cloud())
        self.keystone.token_id = placement_service.TOKEN
        self.good = (201, self.keystone.token(self.cloud.placement.url))
        CONF.register_opts(PASSWORD, group='placement')
        self.cloud.nova.conf.config(
            auth_type='password', auth_url=self.keystone.url + '/v3',
            username='nova', password='right', user_domain_name='Default',
            project_name='service', project_domain_name='Default',
            group='placement')
        self.say(*self.good)

    def say(self, status, body):
        self.keystone.answers['/v3/auth/tokens'] = status, body

    def check_answer(self, status, body):
        self.check(lambda: self.say(status, body),
                   lambda: self.say(*self.good))

    def test_catalog_with_a_wrong_scheme(self):
        """The corrected catalog is read again."""
        wrong = self.keystone.token(
            self.cloud.placement.url.replace('http:', 'https:'))
        self.check_answer(201, wrong)

    def test_token_is_revoked(self):
        """Recovers when placement and keystone refuse tokens for a time."""
        self.calls()
        self.say(401, {})
        self.check(lambda: self.cloud.placement.fail_with(401), lambda: (
            self.say(*self.good), self.cloud.placement.recover()))


_add(TestKeystone, 'keystone_is_down', 'check_answer', 503, {})
_add(TestKeystone, 'credentials_are_rotated', 'check_answer', 401,
     {'error': {'code': 401, 'title': 'Unauthorized', 'message': 'no'}})
_add(TestKeystone, 'keystone_answers_garbage', 'check_answer', 201, b'{"to')


class TestJournal(RecoveryTest):
    """A full sync repairs what an unavailable journal has missed."""

    def repair(self):
        self.assertNotEqual([], self.cloud.drift())
        fixtures.Agent().sync()
        self.assertEqual([], self.cloud.drift())

    def test_database_is_down(self):
        """With placement down too, nothing could be recorded."""
        option = ('connection', 'aggregate_mirror_database')
        right = CONF[option[1]][option[0]]
        CONF.set_override(option[0], 'mysql+pymysql://nova:x@127.0.0.1:1/j',
                          option[1])
        self.cloud.placement.refuse()
        self.calls()
        CONF.set_override(option[0], right, option[1])
        self.cloud.placement.recover()
        self.repair()

    def test_disk_is_full(self):
        """With placement down too, nothing could be recorded."""
        def transaction(_database, _lock_wait=None):
            raise sa.exc.OperationalError(
                'INSERT', {}, sqlite3.OperationalError(
                    'database or disk is full'))

        self.cloud.placement.refuse()
        with base_fixtures.MonkeyPatch(
                'nova_aggregate_mirror.journal.db.engine.Database.transaction',
                transaction):
            self.calls()
        self.cloud.placement.recover()
        self.repair()

    def test_journal_alone(self):
        """With placement available, operations are mirrored inline."""
        CONF.set_override('connection', 'sqlite:////proc/no/where',
                          'aggregate_mirror_database')
        self.calls()
        self.assertEqual([], self.cloud.drift())


class TestStock(RecoveryTest):
    """The same outage without this package leaves drift."""

    hooks = fixtures.StockNova

    def test_stock_nova_does_not_recover(self):
        """Drift that an outage leaves is never repaired."""
        self.cloud.placement.fail_with(503)
        for host in self.hosts:
            self.cloud.add_host(next(iter(self.members)), host)
        self.recover(self.cloud.placement.recover)
        self.assertNotEqual([], self.cloud.drift())
