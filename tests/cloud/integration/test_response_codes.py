# SPDX-License-Identifier: Apache-2.0
"""Nova's answers about host aggregates, with and without this package."""

import contextlib
import http.server
import json
import threading
import uuid

from keystoneauth1 import exceptions

from tests.cloud import access
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
ALWAYS = ', always'
PREFIX = 'answers-'
# Marks an answer that contradicts what nova has done.
BUT_DONE = '*'

WITH_NODE = (aggregate_calls.GOING, aggregate_calls.GOING_FREE)
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
        for key in nova:
            for how in PLACEMENT:
                of_nova = key in OF_NOVA and UNWELL.get(how)
                expected = nova[key][how] if of_nova else package[key][WELL]
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
        rows = [(*key, *nova[key].values(), *package[key].values())
                for key in nova]
        with_it = ['with: %s' % how for how in PLACEMENT]
        header = ('Operation', 'Situation', *PLACEMENT, *with_it)
        everything = pages.figures('All answers, by what placement does',
                                   header, (12, 30, *[9] * 8), rows)
        self.assertEqual('', pages.difference('all-response-codes',
                                              everything))

    def _furnish(self):
        """Create what the calls need, for this test alone."""
        zone = furnish.aggregate(
            self.scene, aggregate_calls.ZONED, name=aggregate_calls.ZONE,
            availability_zone=aggregate_calls.ZONE)
        self.zone = self.cloud.aggregates()[zone]['id']
        self.image = servers.image_of(self.scene)
        self.boot(zone=zone)
        self.boot(zone='nova:%s' % aggregate_calls.BUSY)
        self.addCleanup(self.cloud.delete_aggregates, PREFIX)
        # Before the aggregates: nova removes no host without a compute node.
        self.addCleanup(self._forget_services)
        self._service(aggregate_calls.BARE)
        log = processes.NewLines(self.cloud.process('nova-api-1').log)

        def asked():
            # A process of nova creates its placement client on first use,
            # which fails while placement refuses connections.
            service = self._service(aggregate_calls.GOING_FREE)
            self.cloud.nova().delete('/os-services/%s' % service)
            found = {line.split()[2] for line in log.read().splitlines()
                     if '"DELETE /v2.1/os-services/' in line
                     and ' status: 204 ' in line}
            return len(found) == services.WORKERS

        self.scene.wait_until(
            asked, 'each process of nova-api has asked placement')

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
        for host in (*aggregate_calls.WITHOUT_NODE, *WITH_NODE):
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
        name = furnish.account(self.scene, 'member')
        member = self.cloud.new_session(name, name)
        answers = {}, {}
        with stock.StockNova(self.cloud) as nova:
            self.assertFalse(nova.has_package())
            for how in PLACEMENT:
                with self._unwell(how):
                    for url, column in zip((nova.url, ''), answers):
                        for call in aggregate_calls.CALLS:
                            key = call.operation, call.situation
                            column.setdefault(key, {})[how] = self._answer(
                                call, self.cloud.nova(url), member.auth)
        return answers

    def _answer(self, call, nova, member):
        """Send a call; return its status, flagged if it contradicts nova.

        Another nova-api prepares aggregates even while placement fails.
        """
        helper, number = self.cloud.nova(), self.zone
        service = self._service(call.service) if call.service else ''
        if call.hosts is not None:
            number = access.create(helper, '/os-aggregates', aggregate={
                'name': _name(), 'availability_zone': call.zone})['id']
        for host in call.hosts or ():
            # Nova also adds a host without a compute node, but answers 404.
            helper.post('/os-aggregates/%s/action' % number,
                        json={'add_host': {'host': host}},
                        raise_exc=host not in aggregate_calls.WITHOUT_NODE)
        body = json.dumps(call.body).replace('IMAGE', self.image)
        status = nova.request(
            call.path.format(id=number, service=service), call.method,
            json=json.loads(body.replace('NAME', _name())), raise_exc=False,
            auth=member if call.user == aggregate_calls.MEMBER else None,
            authenticated=call.user != aggregate_calls.NOBODY).status_code
        if not call.changes:
            return str(status)
        shown = helper.get('/os-aggregates/%s' % number).json()
        is_member = call.changes in shown['aggregate']['hosts']
        done = is_member != (call.changes in call.hosts)
        return str(status) + BUT_DONE * (done != (status < 400))

    @contextlib.contextmanager
    def _unwell(self, how):
        """Stop placement; a stand-in answers on its port, if any does."""
        if how == WELL:
            yield
            return
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


def _name():
    return PREFIX + uuid.uuid4().hex[:8]


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
