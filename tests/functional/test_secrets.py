# SPDX-License-Identifier: Apache-2.0
"""Every failure, at DEBUG: no password and no token in any output."""

import base64
import http.server
import json
import logging
import pathlib
import threading
import traceback

import fixtures as base_fixtures
from keystoneauth1 import loading
from nova import context as nova_context
from nova import objects
from oslo_utils import uuidutils
import prometheus_client
import testtools

import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.source import database
from tests import commands
from tests import fixtures
from tests.unit import doubles

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
CONF = """
[DEFAULT]
debug = true
default_log_levels =
state_path = %(state)s
[api_database]
connection = %(api)s
max_retries = 0
[database]
connection = %(api)s
max_retries = 0
[aggregate_mirror_database]
connection = %(journal)s
[placement]
auth_type = password
auth_url = %(auth)s
username = nova
password = %(password)s
user_domain_id = default
project_domain_id = default
project_name = service
"""


class Cloud(base_fixtures.Fixture):
    """Keystone and placement servers that repeat requests in their responses.

    ``versions`` and ``keystone`` are keystone's responses to discovery and to
    a login, ``placement`` is placement's: a status and a form. A form of
    ``FORMS`` repeats the request, other forms do not.
    """

    FORMS = ('error', 'errors', 'object', 'text')

    def _setUp(self) -> None:
        self.versions: tuple[int, str] = (200, 'versions')
        self.keystone: tuple[int, str] = (201, 'token')
        self.placement: tuple[int, str] = (401, 'errors')
        cloud = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                cloud._answer(self)

            do_POST = do_PUT = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing: standard error is searched for secrets, too."""

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        server.daemon_threads = True
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.host = '127.0.0.1:%d' % server.server_port
        self.url = 'http://%s' % self.host
        threading.Thread(target=server.serve_forever, args=(0.01,),
                         daemon=True).start()

    def _answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        said = handler.rfile.read(int(
            handler.headers.get('Content-Length', 0))).decode()
        said += str(handler.headers)
        status, form = self.placement
        if handler.path == '/v3/auth/tokens':
            status, form = self.keystone
        elif handler.path.rstrip('/') == '/v3':
            status, form = self.versions
        body = {
            'versions': {'version': {
                'id': 'v3.14', 'status': 'stable', 'links': [
                    {'rel': 'self', 'href': self.url + '/v3/'}]}},
            'token': self._token(),
            'refused': {'error': {'message': 'refused', 'code': status}},
            'error': {'error': {'message': said, 'code': status,
                                'title': 'Unauthorized'}},
            'errors': {'errors': [{'status': status, 'detail': said,
                                   'title': said, 'code': said}]},
            'object': {'said': said, 'token': {'said': said}},
            'text': said}[form]
        text = (body if form == 'text' else json.dumps(body)).encode()
        handler.send_response(status)
        handler.send_header('X-Subject-Token', TOKEN)
        handler.send_header('Content-Type', 'text/plain' if form == 'text'
                            else 'application/json')
        handler.send_header('Content-Length', str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def _token(self) -> dict:
        return {'token': {
            'methods': ['password'], 'expires_at': '2099-01-01T00:00:00Z',
            'issued_at': '2020-01-01T00:00:00Z', 'user': {
                'id': 'u', 'name': 'nova',
                'domain': {'id': 'default', 'name': 'Default'}},
            'catalog': [{'type': 'placement', 'name': 'p', 'id': 'p',
                         'endpoints': [{'id': 'e', 'interface': 'internal',
                                        'region': 'R', 'region_id': 'R',
                                        'url': self.url}]}]}}


class SecretsTest(testtools.TestCase):

    excused = False
    """Whether keystoneauth may log secrets: it logs responses that repeat the
    request, and URLs that contain a password, unchanged."""

    def setUp(self):
        super().setUp()
        # Ignore the proxy settings of the machine that runs the tests.
        self.useFixture(base_fixtures.EnvironmentVariable(
            'no_proxy', '127.0.0.1'))
        self.texts = []
        """All text that was logged, printed or raised, and where."""
        self.listen()
        self.addCleanup(self.assert_no_secret)

    def listen(self):
        """Capture the records of every logger from now on."""
        handler = logging.Handler(logging.NOTSET)
        handler.emit = self.see_record
        self.useFixture(base_fixtures.LogHandler(
            handler, level=logging.DEBUG))

    def see(self, where, text):
        self.texts.append((where, str(text)))

    def see_record(self, record):
        self.see('log of ' + record.name, record.getMessage())
        self.see('arguments to ' + record.name, repr(record.args))
        if record.exc_info:
            self.see('traceback to ' + record.name, ''.join(
                traceback.format_exception(*record.exc_info)))

    def refused(self, function, *args):
        """Call a function that must fail with our error; record its text."""
        error = self.assertRaises(exceptions.MirrorError, function, *args)
        self.see('error', error)
        self.see('error', repr(error))

    def assert_no_secret(self):
        self.assertEqual([], sorted({
            (where, text[:1000]) for where, text in self.texts
            if any(mark in text for mark in MARKS)
            and not (self.excused and ' keystoneauth.' in where)}))


class TestSecrets(SecretsTest):

    def test_a_secret_would_be_found(self):
        """A secret is found in messages and tracebacks, plain or encoded."""
        self.addCleanup(self.texts.clear)
        log = logging.getLogger('any.library')
        encoded = base64.b64encode(('nova:' + PASSWORD).encode()).decode()
        for arguments in (('a %s' % TOKEN,), ('%s', PASSWORD),
                          ('%r', {'Authorization': encoded})):
            del self.texts[:]
            log.debug(*arguments)
            self.assertRaises(testtools.matchers.MismatchError,
                              self.assert_no_secret)
        del self.texts[:]
        try:
            raise ValueError(IN_URL)
        except ValueError:
            log.exception('failed')
        self.assertRaises(testtools.matchers.MismatchError,
                          self.assert_no_secret)

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
            self.refused(kept.ledger.mark, 'a')
            self.refused(kept.history.newest)


class CloudTest(SecretsTest):

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(fixtures.NovaAndPlacement())
        # That fixture captures the log for itself alone.
        self.listen()
        self.useFixture(fixtures.MirroredNova())
        self.zone = self.cloud.create_aggregate('zone')
        self.host = self.cloud.create_host('h1')
        self.wrong = self.useFixture(Cloud())
        # Registered only for this test: the next test has no auth_url.
        self.cloud.nova.conf.register_opts(
            loading.get_auth_plugin_conf_options('password'),
            group='placement')
        self.cloud.nova.conf.config(inline_backoff=0.0,
                                    group='aggregate_mirror')

    def use(self, **placement):
        self.cloud.nova.conf.config(
            group='placement', **{
                'auth_type': 'password', 'auth_url': self.wrong.url + '/v3',
                'username': 'nova', 'password': PASSWORD,
                'user_domain_id': 'default', 'project_domain_id': 'default',
                'project_name': 'service', 'endpoint_override': None,
                **placement})

    def work(self):
        """Let nova-api, the agent and a sync fail; record their output."""
        self.assertEqual(200, self.cloud.add_host(
            self.zone, self.host).status)
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


class TestCloud(CloudTest):

    def test_keystone_and_placement_that_refuse(self):
        """Responses with an error status, whichever it is."""
        for status in (400, 401, 403, 404, 500, 503):
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


class TestIndiscreet(CloudTest):

    excused = True

    def test_keystone_that_repeats_requests(self):
        """Its responses with any status, in any form."""
        for status in (201, 300, 400, 401, 403, 404, 500, 503):
            for form in Cloud.FORMS:
                self.wrong.keystone = (status, form)
                self.use()
                self.work()

    def test_keystone_whose_discovery_fails(self):
        """Its discovery with any status, in any form."""
        self.wrong.keystone = (401, 'error')
        for status in (200, 401, 403, 404, 500):
            for form in Cloud.FORMS:
                self.wrong.versions = (status, form)
                self.use()
                self.work()

    def test_placement_that_repeats_requests(self):
        """Its responses, which also repeat the token."""
        for status in (200, 400, 401, 403, 404, 409, 500, 503):
            for form in Cloud.FORMS:
                self.wrong.placement = (status, form)
                self.use(endpoint_override=self.wrong.url)
                self.work()

    def test_wrong_urls(self):
        """URLs with a password in them."""
        user = 'http://nova:%s@' % IN_URL
        for auth_url in (user + '127.0.0.1:1/v3', user + 'nowhere.invalid/v3',
                         user + self.wrong.host + '/v3', IN_URL):
            self.use(auth_url=auth_url)
            self.work()


class TestCommands(SecretsTest):

    def setUp(self):
        super().setUp()
        self.wrong = self.useFixture(Cloud())
        self.path = pathlib.Path(self.useFixture(
            base_fixtures.TempDir()).path)
        nova_aggregate_mirror.conf.register_opts(fixtures.CONF)

    def run_command(self, name, *calls):
        """Run a command several times; return its exit statuses.

        :param calls: replacements in nova.conf, and the arguments
        """
        statuses = []
        for options, *argv in calls:
            path = self.path / 'nova.conf'
            path.write_text(CONF % {
                'state': self.path, 'api': 'sqlite:///%s/nova' % self.path,
                'journal': 'sqlite:///%s/journal' % self.path,
                'auth': self.wrong.url, 'password': PASSWORD, **options})
            done = commands.run(
                'nova_aggregate_mirror.cmd.' + name,
                ['--config-file', str(path), *argv])
            for line in (done.stdout + done.stderr).splitlines():
                self.see('output of ' + name, line)
            statuses.append(done.returncode)
        return statuses

    def test_nova_that_cannot_be_read(self):
        """The URL of its database has a password."""
        wrong = {'api': REFUSED}
        for name, *argv in (
                ('manage', 'placement', 'sync_aggregates', '--verbose'),
                ('status', 'upgrade', 'check')):
            self.assertNotEqual([0], self.run_command(name, (wrong, *argv)))
        for expected, name, *argv in (
                (2, 'status', 'upgrade', 'check', '--json'),
                (255, 'manage', 'placement', 'sync_aggregates')):
            self.assertEqual(
                [(url, expected) for url in URLS],
                list(zip(URLS, self.run_command(
                    name, *(({'api': url}, *argv) for url in URLS)))))

    def test_journal_that_cannot_be_used(self):
        """An unreachable server and an invalid URL."""
        for expected, name, *argv in (
                (255, 'manage', 'journal', 'list'),
                (2, 'status', 'upgrade', 'check')):
            self.assertEqual(
                [(url, expected) for url in URLS],
                list(zip(URLS, self.run_command(
                    name, *(({'journal': url}, *argv) for url in URLS)))))
        wrong = {'journal': REFUSED}
        self.assertEqual([255] * 5, self.run_command('manage', *(
            (wrong, *argv) for argv in (
                ('db', 'sync'), ('db', 'version'), ('journal', 'retry'),
                ('journal', 'forget', '1'),
                ('placement', 'sync_aggregates')))))

    def test_keystone_that_repeats_requests(self):
        """The status command shows no secret from keystone's response."""
        check = ({}, 'upgrade', 'check')
        self.wrong.keystone = (401, 'errors')
        self.assertEqual([2], self.run_command('status', check))
        self.wrong.keystone = (201, 'token')
        self.wrong.placement = (500, 'errors')
        self.assertEqual([2], self.run_command('status', check))
