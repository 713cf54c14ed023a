# SPDX-License-Identifier: Apache-2.0
"""Nova's answers about host aggregates, with and without this package."""

import contextlib
import http.server
import threading

from keystoneauth1 import adapter
from keystoneauth1 import exceptions

from tests.cloud.integration import aggregate_calls
from tests.cloud.integration import base
from tests.cloud.integration import pages
from tests.cloud.integration import stock
from tests.cloud import processes
from tests.cloud import seed
from tests.cloud import services
from tests.cloud.situations import furnish
from tests.cloud.situations import servers
from tests import databases

WELL = 'answers'
# States of placement, and the status that a stand-in answers; 0 for none.
UNWELL = {'refuses': 0, '401': 401, '503': 503}
PLACEMENT = (WELL, *UNWELL)
STATUSES = [how for how, status in UNWELL.items() if status]
ALWAYS = ', always'

WITH_NODE = (aggregate_calls.GOING, aggregate_calls.GOING_FREE)
MADE = (*aggregate_calls.WITHOUT_NODE, *WITH_NODE)
ADDS_FIRST = (
    'Nova adds the host before it calls placement, and then reports a '
    'failure to the user. A second attempt returns 409, and the host is '
    'never mirrored. With this package, the host is mirrored as soon as '
    'placement is available.')
REMOVES_LAST = (
    'Nova calls placement first and does nothing if that fails. With this '
    'package the host is removed, and placement is updated as soon as it is '
    'available.')
LOOKS_LATE = (
    'Nova calls placement before it checks whether the host is a member. '
    'With this package the response is the same as without an outage.')
DELETES_TOO = (
    'Nova first removes the host from its aggregates, and fails if that '
    'fails. It then deletes the resource provider, with and without this '
    'package, and fails at 401 and 503, and also when placement refuses '
    'connections if the process has not called placement before. Deleting the '
    'service again, when placement is available, completes the deletion.')
# Why answers differ, by operation and situation.
EXPLAINED = {('add host', 'a host'): ADDS_FIRST,
             ('add host', 'a host with three nodes'): ADDS_FIRST,
             ('remove host', 'a host'): REMOVES_LAST,
             ('remove host', 'a host with three nodes'): REMOVES_LAST,
             ('remove host', 'a host that is not there'): LOOKS_LATE,
             ('delete a service', 'a host in an aggregate'): DELETES_TOO}
# Operations in which nova itself needs placement, and fails without it.
OF_NOVA = {('delete a service', situation) for situation in (
    'a host in an aggregate', 'a host in no aggregate')}


class _Unwell(http.server.BaseHTTPRequestHandler):

    def do_GET(self):
        # Unread data would reset the connection.
        self.rfile.read(int(self.headers.get('Content-Length', 0)))
        self.send_response(self.server.status)
        self.send_header('Content-Length', '0')
        self.end_headers()

    do_PUT = do_POST = do_DELETE = do_GET

    def log_message(self, *_arguments):
        pass


class TestResponseCodes(base.TestCase):

    def test_answers_are_those_of_a_healthy_placement(self):
        """Placement's state changes no answer; the page has all answers."""
        # They would repair what stock nova misses; at the end, they do.
        self.stop_agents()
        self._furnish()
        nova, package = self._measure()
        for call in aggregate_calls.CALLS:
            key = call.operation, call.situation
            of_nova = STATUSES if key in OF_NOVA else ()
            for how in PLACEMENT:
                expected = nova[key][how] if how in of_nova else (
                    package[key][WELL])
                self.assertEqual(expected, package[key][how], (key, how))
            self.assertEqual(nova[key][WELL], package[key][WELL], key)
        different = [key for key in nova if nova[key] != package[key]]
        self.assertEqual(set(EXPLAINED), set(different))
        rows = []
        for key in different:
            with_it = _described(package[key]).removesuffix(ALWAYS)
            rows.append((*key, _described(nova[key]), with_it, EXPLAINED[key]))
        self.assertEqual('', pages.difference('response-codes', pages.texts(
            'Where the answers differ',
            ('Operation', 'Situation', 'Nova alone', 'With it', 'Why'),
            (12, 18, 18, 12, 40), rows)))
        columns = zip(nova, nova.values(), package.values())
        rows = [(*key, *without.values(), *with_it.values())
                for key, without, with_it in columns]
        header = ('Operation', 'Situation', *PLACEMENT,
                  *('with: %s' % each for each in PLACEMENT))
        widths = (12, 30, *[9] * 8)
        everything = pages.figures('All answers, by what placement does',
                                   header, widths, rows)
        self.assertEqual('', pages.difference('all-response-codes',
                                              everything))

    def _furnish(self):
        """Create what the calls need, for this test alone."""
        zone = furnish.aggregate(
            self.scene, aggregate_calls.ZONED, name=aggregate_calls.ZONE,
            availability_zone=aggregate_calls.ZONE)
        self.zone = self.cloud.aggregates()[zone]['id']
        self.boot(zone=zone)
        self.boot(zone='nova:%s' % aggregate_calls.BUSY)
        self.addCleanup(self.cloud.delete_aggregates, aggregate_calls.PREFIX)
        # Before the aggregates: nova removes no host without a compute node.
        self.addCleanup(self._forget_services)
        self._service(aggregate_calls.BARE)
        self.scene.wait_until(
            self._has_asked(self.cloud.process('nova-api-1')),
            'each process of nova-api has asked placement')

    def _has_asked(self, process):
        """Return a check that makes all nova-api processes use placement.

        A process of nova creates its placement client on first use, which
        fails while placement refuses connections.
        """
        log = processes.NewLines(process.log)

        def ask():
            service = self._service(aggregate_calls.GOING_FREE)
            self.cloud.nova().delete('/os-services/%s' % service)
            asked = {line.split()[2] for line in log.read().splitlines()
                     if '"DELETE /v2.1/os-services/' in line
                     and ' status: 204 ' in line}
            return len(asked) == services.WORKERS

        return ask

    def _service(self, host):
        """Return the UUID of a host's nova-compute; create it if necessary."""
        nova = self.cloud.nova()
        url = '/os-services?binary=nova-compute&host=%s' % host
        if not nova.get(url).json()['services']:
            if host in WITH_NODE:
                # Placement may be unavailable; the provider is not needed
                # then.
                with contextlib.suppress(exceptions.ClientException):
                    self.cloud.seed_hosts([host])
            else:
                seed.services(self.cloud.config, [host])
        service, = nova.get(url).json()['services']
        return service['id']

    def _forget_services(self):
        for host in MADE:
            for database, table in (('nova', 'services'),
                                    ('nova', 'compute_nodes'),
                                    ('nova_api', 'aggregate_hosts'),
                                    ('nova_api', 'host_mappings')):
                databases.execute(
                    self.cloud.config.database_url(database),
                    "DELETE FROM %s WHERE host = '%s'" % (table, host))
        placement = self.cloud.placement()
        for each in placement.get('/resource_providers').json()[
                'resource_providers']:
            if each['name'] in WITH_NODE:
                placement.delete('/resource_providers/%s' % each['uuid'])

    def _measure(self):
        """Return the answers without and with this package, by call."""
        answers = tuple({(call.operation, call.situation): {}
                         for call in aggregate_calls.CALLS} for _ in range(2))
        member = furnish.account(self.scene, 'member')
        with stock.StockNova(self.cloud) as nova:
            self.assertFalse(nova.has_package())
            callers = [self._caller(self.cloud.nova(url), member)
                       for url in (nova.url, '')]
            for how in PLACEMENT:
                with self._unwell(how) if how != WELL else (
                        contextlib.nullcontext()):
                    for caller, column in zip(callers, answers):
                        for call in aggregate_calls.CALLS:
                            column[call.operation, call.situation][how] = (
                                caller.answer(call))
        return answers

    @contextlib.contextmanager
    def _unwell(self, how):
        """Stop placement; a stand-in answers on its port, if any does."""
        placement = self.cloud.process('placement')
        try:
            placement.kill()
            with contextlib.ExitStack() as stack:
                if UNWELL[how]:
                    server = stack.enter_context(
                        http.server.ThreadingHTTPServer(
                            ('127.0.0.1', placement.port), _Unwell))
                    server.status = UNWELL[how]
                    thread = threading.Thread(target=server.serve_forever)
                    thread.start()
                    stack.callback(thread.join)
                    stack.callback(server.shutdown)
                yield
        finally:
            self.cloud.start('placement')

    def _caller(self, admin, name):
        """Return a sender of calls to a nova-api."""
        member = adapter.Adapter(
            self.cloud.new_session(name, name), service_type='compute',
            endpoint_override=admin.endpoint_override,
            default_microversion=admin.default_microversion)
        return aggregate_calls.Caller(
            {'': admin, aggregate_calls.MEMBER: member}, self.cloud.nova(),
            self.zone, servers.image_of(self.scene), self._service)


def _described(answers):
    """Describe answers, as in ``500* when it refuses``."""
    if len(set(answers.values())) == 1:
        return answers[WELL] + ALWAYS
    texts = []
    for how, answer in answers.items():
        when = 'when it' if how in (WELL, 'refuses') else 'at'
        if answer != answers[WELL]:
            texts.append('%s %s %s' % (answer, when, how))
    return ', '.join(texts)
