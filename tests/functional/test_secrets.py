# SPDX-License-Identifier: Apache-2.0
"""Every failure, at DEBUG: no password and no token in any output."""

import base64
import itertools
import logging
import pathlib
import traceback
from typing import Any
import urllib.parse

import fixtures as base_fixtures
from keystoneauth1 import loading
from nova import context as nova_context
from nova import objects
from oslo_utils import uuidutils
import prometheus_client
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.source import database
from tests import commands
from tests import documents
from tests import fixtures
from tests.unit import doubles
from tests.unit import servers

# Part of every secret, so that a fragment is found, too.
MARK = 'unmistakable'
PASSWORD = MARK + '-password'
TOKEN = MARK + '-token'
IN_URL = MARK + '-in-url'
# Base64 encodes a text in three forms, depending on its offset.
MARKS = [MARK] + [base64.b64encode(b' ' * shift + MARK.encode())[4:12].decode()
                  for shift in range(3)]
# Nothing listens on the port.
REFUSED = 'mysql+pymysql://nova:%s@127.0.0.1:1/nova' % IN_URL
URLS = (
    REFUSED,
    'postgresql+psycopg2://nova:%s@127.0.0.1:1/nova' % IN_URL,
    # Without percent-encoding.
    'mysql+pymysql://nova:pass@%s@127.0.0.1:1/nova' % IN_URL,
    'mysql+pymysql://nova:pass/%s@127.0.0.1:1/nova' % IN_URL,
    'mysql+pymysql://nova:pass:%s/word@127.0.0.1:1/nova' % IN_URL,
    'mysql+pymysql://nova:pass#%s@127.0.0.1:one/nova' % IN_URL,
    'mysql+nodriver://nova:%s@127.0.0.1:1/nova' % IN_URL,
    'nosuchdatabase://nova:%s@127.0.0.1:1/nova' % IN_URL,
    'nova:%s@127.0.0.1:1/nova' % IN_URL,
)
CONF = '[DEFAULT]\ndebug = true\ndefault_log_levels =\nstate_path = %s\n'
DATABASE = '[%s]\nconnection = %s\nmax_retries = 0\n'
DATABASES = 'api_database', 'database', 'aggregate_mirror_database'


class Echo(servers.Cloud):
    """Keystone and placement servers that repeat requests in their responses.

    ``versions`` and ``keystone`` are keystone's responses to discovery and to
    a login, ``placement`` is placement's: a status and a form. A form of
    ``FORMS`` repeats the request, other forms do not.
    """

    FORMS = ('error', 'errors', 'object', 'text')
    versions: tuple[int, str] = (200, 'versions')
    keystone: tuple[int, str] = (201, 'token')
    placement: tuple[int, str] = (401, 'errors')

    def _answer(self, handler: Any) -> None:
        status, form = {
            '/v3/auth/tokens': self.keystone, '/v3': self.versions}.get(
                handler.path.rstrip('/'), self.placement)
        request = handler.body.decode() + str(handler.headers)
        path = urllib.parse.urlsplit(handler.path).path
        self.content_type = ('text/plain' if form == 'text'
                             else 'application/json')
        self.answers[path] = status, {
            'versions': {'version': documents.identity(self.url + '/v3/')},
            'token': self.token(self.url),
            'refused': {'error': {'message': 'refused', 'code': status}},
            'error': {'error': {'message': request, 'code': status,
                                'title': 'Unauthorized'}},
            'errors': {'errors': [{'status': status, 'detail': request,
                                   'title': request, 'code': request}]},
            'object': {'said': request, 'token': {'said': request}},
            'text': request.encode()}[form]
        super()._answer(handler)


class SecretsTest(testtools.TestCase):

    excused = False
    """Whether keystoneauth may log secrets: it logs responses that repeat the
    request, and URLs that contain a password, unchanged."""

    def setUp(self):
        super().setUp()
        # Ignore the proxy settings of the machine that runs the tests.
        self.useFixture(base_fixtures.EnvironmentVariable(
            'no_proxy', '127.0.0.1'))
        self.indiscreet = set()
        """Where a secret was logged, printed or raised, with the text."""
        self.listen()
        self.addCleanup(lambda: self.assertEqual(set(), self.indiscreet))

    def listen(self):
        """Capture the records of every logger from now on."""
        handler = logging.Handler(logging.NOTSET)
        handler.emit = self.see_record
        self.useFixture(base_fixtures.LogHandler(handler, level=logging.DEBUG))

    def see(self, where, text):
        if any(mark in str(text) for mark in MARKS):
            self.indiscreet.add((where, str(text)[:1000]))

    def see_record(self, record):
        if self.excused and record.name.startswith('keystoneauth.'):
            return
        self.see('log of ' + record.name, record.getMessage())
        self.see('arguments to ' + record.name, repr(record.args))
        if record.exc_info:
            self.see('traceback to ' + record.name, ''.join(
                traceback.format_exception(*record.exc_info)))

    def refused(self, function, *args):
        """Call a function that must fail with our error; record its text."""
        error = self.assertRaises(exceptions.MirrorError, function, *args)
        self.see('error', repr([error, str(error)]))


class TestDatabases(SecretsTest):

    def test_journal_that_cannot_be_used(self):
        """An unreachable server and an invalid URL."""
        for url in URLS:
            conf = doubles.make_conf(self)
            conf.set_override('connection', url, 'aggregate_mirror_database')
            kept = store.Journal(conf)
            row = kept.rows.make(journal.Dirty('h1'))
            self.refused(kept.rows.record, row, ['a'])
            self.refused(kept.rows.hand_over, row, 'refused')
            self.refused(kept.rows.all)
            self.refused(kept.ledger.mark, uuidutils.generate_uuid())
            self.refused(full_syncs.newest, kept.database)

    def test_commands_whose_databases_cannot_be_used(self):
        """The URL of each has a password."""
        path = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path, 'nova.conf')
        for url, (status, module, *argv) in itertools.product(URLS, (
                (2, commands.STATUS, 'upgrade', 'check', '--json'),
                (255, commands.MANAGE, 'placement', 'sync_aggregates'))):
            sections = [DATABASE % (name, url) for name in DATABASES]
            path.write_text(CONF % path.parent + ''.join(sections))
            done = commands.run(module, ['--config-file', str(path), *argv])
            self.see('output of ' + module, done.stdout + done.stderr)
            self.assertEqual(status, done.returncode, url)


class TestCloud(SecretsTest):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        # That fixture captures the log for itself alone.
        self.listen()
        self.useFixture(fixtures.MirroredNova())
        self.zone = self.cloud.create_aggregate('zone')
        self.host = self.cloud.create_host('h1')
        self.wrong = self.useFixture(Echo())
        self.wrong.token_id = TOKEN
        # Registered only for this test: the next test has no auth_url.
        self.cloud.nova.conf.register_opts(
            loading.get_auth_plugin_conf_options('password'),
            group='placement')
        self.cloud.nova.conf.config(inline_backoff=0.0,
                                    group='aggregate_mirror')

    def use(self, **placement):
        self.cloud.nova.conf.config(
            group='placement', **self.wrong.account(**{
                'password': PASSWORD, 'endpoint_override': None,
                **placement}))

    def work(self):
        """Let nova-api, the agent and a sync fail; record their output."""
        self.assertEqual(200, self.cloud.add_host(self.zone, self.host).status)
        placement = client.Client(fixtures.CONF)
        for call in (placement.probe, placement.providers):
            self.refused(call)
        self.see('endpoint', placement.endpoint())
        worker = fixtures.Agent()
        for _ in range(2):
            worker.drain()
            worker.sync()
        left = worker.journal.rows.all()
        self.assertNotEqual([], left)
        for row in left:
            self.see('journal row', row)
        self.see('metrics', prometheus_client.generate_latest(
            worker.figures.registry).decode())
        self.assertEqual(200, self.cloud.remove_host(
            self.zone, self.host).status)

    def test_keystone_and_placement_that_refuse(self):
        """Responses with an error status, whichever it is."""
        for status in (401, 404, 500):
            self.wrong.keystone = (status, 'refused')
            self.use()
            self.work()
            self.wrong.keystone = (201, 'token')
            self.wrong.placement = (status, 'refused')
            self.use(endpoint_override=self.wrong.url)
            self.work()

    def test_cell_that_cannot_be_read(self):
        """Its URLs, with a password, are in nova's database."""
        objects.CellMapping(
            nova_context.get_admin_context(), uuid=uuidutils.generate_uuid(),
            name='cell9', transport_url='rabbit://nova:%s@nowhere' % IN_URL,
            database_connection=REFUSED).create()
        fixtures.CONF.set_override('max_retries', 0, 'database')
        self.addCleanup(fixtures.CONF.clear_override, 'max_retries',
                        'database')
        self.cloud.add_host(self.zone, self.host)
        self.see('scope', database.DatabaseSource().scope(1, 'unmapped'))
        self.see('read', database.DatabaseSource().read(['unmapped']))

    def test_services_that_repeat_requests(self):
        """Discovery, keystone and placement, with any status in any form."""
        self.excused = True
        override = {'endpoint_override': self.wrong.url}
        for part, statuses, options in (
                ('keystone', (201, 300, 401, 404, 503), {}),
                ('versions', (200, 401, 404, 500), {}),
                ('placement', (200, 400, 401, 404, 409, 503), override)):
            for status, form in itertools.product(statuses, Echo.FORMS):
                self.wrong.keystone = (
                    (401, 'error') if part == 'versions' else (201, 'token'))
                setattr(self.wrong, part, (status, form))
                self.use(**options)
                self.work()
            self.wrong.versions = (200, 'versions')

    def test_wrong_urls(self):
        """URLs with a password in them."""
        self.excused = True
        user = 'http://nova:%s@' % IN_URL
        for auth_url in (user + '127.0.0.1:1/v3', user + 'nowhere.invalid/v3',
                         user + self.wrong.host + '/v3', IN_URL):
            self.use(auth_url=auth_url)
            self.work()
