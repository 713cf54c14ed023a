# SPDX-License-Identifier: Apache-2.0
"""The matrix of faults by the places where somebody looks.

Each fault is made for real, and the advice of the status check is followed.
That each place has the sentence of a cause is tested in
``tests.unit.test_causes``: here one fault of each kind of error is looked for
in all of them. It is long because it is one table.
"""

import dataclasses
import pathlib
import re

import testtools
from testtools import content
from testtools import matchers

from nova_aggregate_mirror import causes
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import models
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import api
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import database
from tests import faults
from tests.unit import servers

ROOT = pathlib.Path(__file__).parents[2]
STATUS, SYNC, ROWS, AGENT, API = faults.PLACES
WAIT, EXPLAIN, AUDIT = faults.WAIT, faults.EXPLAIN, faults.AUDIT
DIFF = faults.DIFF
COMMANDS = STATUS, SYNC, ROWS, WAIT, EXPLAIN, AUDIT
ASKED = STATUS, SYNC, AGENT, API, WAIT, EXPLAIN
"""Places that ask placement."""
PATIENT = STATUS, SYNC, AGENT, API, EXPLAIN
"""Of these, the ones that wait longer than a second, which is too short to
call a service silent on a busy machine."""
READERS = (*faults.PLACES, EXPLAIN, AUDIT)
"""Places that read the journal."""
COMPARED = STATUS, SYNC, AGENT, WAIT
"""Places that compare compute nodes with their resource providers."""
NOVA_READ = STATUS, SYNC, WAIT, EXPLAIN, AUDIT
"""Commands that read nova's databases."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """A row of the matrix.

    :param make: makes it and returns what follows the printed step, given
        the text of the status check; None to type what is printed
    :param cause: what every place says, whatever its case
    :param step: what the status check advises, if anything
    :param places: where it shows
    :param result: of the agent's sync, in the log and in the metrics
    :param client: what the openstack client says, if it is not the cause
    :param line: what logs and other commands advise, if not ``step``
    :param reason: what explain says of a host, if it is not the cause
    """

    make: faults.Make
    cause: str
    step: str = ''
    places: tuple[str, ...] = (STATUS,)
    result: str = 'failure'
    client: str = ''
    line: str = ''
    reason: str = ''

    @property
    def shown(self) -> tuple[str, ...]:
        """Return the places: the report shows what a sync prints."""
        return (*self.places, *[faults.REPORT] * (SYNC in self.places))

    @property
    def advice(self) -> str:
        """What logs and other commands advise: an error's own step."""
        return self.line or (self.step if self.step[:1].islower() else '')


def caused(make: faults.Make, cause: causes.Cause, party: causes.Party,
           places: tuple[str, ...] = (STATUS,), **values: str) -> Fault:
    """Return the row of a cause, whose words are in ``causes`` alone."""
    return Fault(make, '%s %s' % (party.name, cause.phrase),
                 cause.step_for(party), places, **values)


def account(kind: str) -> causes.Party:
    """Return placement, as an account of this kind asks it."""
    return auth.party(servers.make_conf(
        auth_type=kind, username='mirror'), 'placement')


JOURNAL, API_DATABASE = engine.PARTY, connections.PARTY
PASSWORD, CREDENTIAL = map(account, ('password', 'v3applicationcredential'))
USED, OTHER = (dataclasses.replace(PASSWORD, name='placement at {%s}' % url)
               for url in ('placement', 'other'))
LOGIN, LOGIN_BY_CREDENTIAL = (
    dataclasses.replace(causes.keystone(party), name='keystone at {keystone}')
    for party in (PASSWORD, CREDENTIAL))
REGISTER = 'register it: "openstack service create" if '
SYNCED = faults.MANAGE + 'placement sync_aggregates'
APPLY = 'list them by a sync with "--prune --dry-run"; if a host is to stay '
BRAKED = (APPLY + 'in its aggregates, correct [api_database] connection or, '
          'if that names nova\'s database, add the host to the aggregates in '
          'nova; only if each removal is right, run a sync with "--prune '
          '--force".'
          '\n  %s --prune --dry-run' % SYNCED)

PLACEMENT: dict[str, Fault] = {
    'refuses': caused(
        faults.placement(lambda service: service.refuse()),
        causes.REFUSED, USED, (*ASKED, DIFF)),
    'silent': caused(
        faults.silent_placement, causes.silent(0), USED, PATIENT),
    '503': caused(
        faults.placement(lambda service: service.fail_with(503)),
        causes.NO_BACKEND.with_detail('answered 503 with text/html'), USED),
    'page': caused(
        faults.page,
        causes.UNUSABLE.with_detail('answered 200 with text/html'), OTHER),
    'token': caused(
        faults.distrusted, causes.TOKEN.with_detail('answered 401'), USED),
    '500': caused(
        faults.placement(lambda service: service.fail_with(
            500, provider='/resource_providers')),
        causes.ANSWERED.with_detail('answered 500'), USED),
    'closes': caused(
        faults.placement(lambda service: service.drop_connection()),
        causes.DISCONNECTED, USED),
    'role': caused(
        faults.without_role, causes.ROLE.with_detail('answered 403'), USED,
        (STATUS, AGENT, API, DIFF), result='partial',
        client='2 associations to add.'),
    'application credential': Fault(
        faults.secret_without_role, 'placement at {placement} answered 403',
        CREDENTIAL.role),
    'certificate': caused(
        faults.certificate,
        causes.certificate_refused(18, 'self-signed certificate'), OTHER),
    'expired': caused(
        faults.expired,
        causes.certificate_refused(10, 'certificate has expired'), OTHER),
    'another name': caused(
        faults.misnamed, causes.certificate_refused(
            64, 'ip address mismatch, certificate is not valid for '
            '\'127.0.0.1\''), OTHER),
}
KEYSTONE: dict[str, Fault] = {
    'refuses': Fault(
        faults.restored('placement', auth_url='http://127.0.0.1:1/v3'),
        'keystone at http://127.0.0.1:1 refused the connection',
        'start keystone; if it runs, correct host and port in auth_url of '
        '[placement] in nova.conf', ASKED),
    'silent': caused(faults.silent_keystone, causes.silent(0), LOGIN),
    'proxy': caused(
        faults.proxy, causes.PROXY.with_detail((
            'http://127.0.0.1:1', causes.REFUSED.phrase)).with_step(
                'http_proxy'), LOGIN),
    'password': caused(faults.another_password, causes.LOGIN, LOGIN, ASKED),
    'application credential': caused(
        faults.another_secret, causes.LOGIN, LOGIN_BY_CREDENTIAL),
    'region': caused(
        faults.restored('placement', region_name='Elsewhere'),
        causes.NO_ENDPOINT.with_detail(
            ' for region Elsewhere, interface internal,public'), PASSWORD,
        (*ASKED, DIFF), client='placement has no endpoint in the catalog for '
        'region Elsewhere, interface internal'),
    'no endpoint': Fault(
        faults.keystone(201, servers.Cloud.token()),
        'placement is not in the catalog',
        'then "openstack endpoint create"', line=REGISTER),
    'scope': caused(faults.unscoped, causes.NO_CATALOG, PASSWORD),
    'credentials': Fault(
        faults.option('placement', password=None),
        '[placement] has no password', 'Set:\n'
        '  [placement]\n  password = PASSWORD', ASKED),
    'unknown option': Fault(
        faults.restored(faults.MIRROR, sync_intervall=10),
        'sets sync_intervall, which is no option',
        'rename it to sync_interval'),
    'no hook': Fault(
        faults.restored(faults.MIRROR, hooks=''), 'nova.conf is empty',
        'delete it for the default, mirror; if nova\'s own mirroring is '
        'to stay in effect, also set mode = observe'),
    'unknown hook': Fault(
        faults.option(faults.MIRROR, hooks='nothing'),
        'until this is corrected, nova mirrors host aggregates itself',
        'The default is:\n  [aggregate_mirror]\n  hooks = mirror'),
    'invalid option': Fault(
        faults.restored(faults.MIRROR, inline_timeout='soon'),
        'nova.conf is "soon"', 'set it to a number of seconds from 0.1 to 120',
        COMMANDS),
    'option of a section': Fault(
        faults.restored('placement', timeout='1m'),
        '[placement] timeout in ', 'is "1m": set it to a number',
        (STATUS, SYNC, WAIT, EXPLAIN)),
    'option of a database': Fault(
        faults.restored('api_database', max_pool_size='many'),
        '[api_database] max_pool_size in ', 'is "many": set it to a whole '
        'number', NOVA_READ),
}
EMPTY = models.USE_ANOTHER % 'an empty'
MOVED = 'to another directory, and restart nova-api and the agent'
MOVING = MOVED + '.\n  mkdir '
JOURNALS: dict[str, Fault] = {
    'stopped': caused(
        faults.moved(port=1), causes.REFUSED, JOURNAL, (*READERS, DIFF),
        client='Placement matches nova: '),
    'host': caused(
        faults.moved(host='nowhere.invalid'), causes.UNRESOLVED, JOURNAL),
    'database': caused(
        faults.moved(database='nothing'), causes.ABSENT, JOURNAL),
    'driver': caused(
        faults.driven('mysql+nonexistent'), causes.DRIVERLESS, JOURNAL),
    'module': caused(
        faults.driven('mysql+mysqldb'), causes.module_missing('MySQLdb'),
        JOURNAL),
    'no tables': Fault(
        faults.without_tables, 'the journal has no tables; this release needs '
        'version 0001', 'Run once, on one controller:\n  ' + faults.MANAGE
        + 'db sync', READERS),
    'reader': caused(faults.reader, causes.RIGHTS, JOURNAL, (STATUS, API)),
    'replica': caused(faults.replica, causes.READ_ONLY, JOURNAL),
    'password': caused(faults.wrong_password, causes.PASSWORD, JOURNAL),
    'wiki': Fault(
        faults.altered('DROP TABLE dirty', 'CREATE TABLE wiki (id INT)'),
        'is not a journal: it has tables such as wiki, but no table dirty',
        models.USE_ANOTHER % 'the journal\'s own, or an empty'),
    'file of another program': Fault(
        faults.wiki_file, 'has tables such as pages, but no table dirty',
        models.USE_ANOTHER_FILE),
    'column': Fault(
        faults.altered('ALTER TABLE dirty DROP COLUMN attempts'),
        models.INCOMPLETE % 'column dirty.attempts', EMPTY,
        (STATUS, ROWS, API, EXPLAIN)),
    'another nova': Fault(
        faults.foreign,
        'the journal belongs to another nova, with the cells',
        'give each nova a database of its own', (STATUS, SYNC, API)),
    'no URL': Fault(
        faults.restored(faults.JOURNAL, connection='nonsense'),
        'connection is not a database URL like', 'correct it, and percent-',
        READERS),
    'in memory': Fault(
        faults.restored(faults.JOURNAL, connection='sqlite://'),
        'connection is a database in memory, which no other process can read',
        'name a file, such as '),
    'parameter': caused(
        faults.moved(query={'charset': 'nonsense'}),
        causes.url_unusable('pymysql', 'charset', ''), JOURNAL),
    'damaged': Fault(
        faults.damaged, 'the journal is not an SQLite database, or is damaged',
        MOVING, line=MOVED),
}
NOVA: dict[str, Fault] = {
    'another placement': Fault(
        faults.other_placement, 'compute nodes, with no UUID in common',
        'if that is nova\'s placement, correct its [placement_database] '
        'connection or nova\'s [api_database] connection, whichever has the '
        'database of another cloud; otherwise correct endpoint_override of '
        '[placement] in nova.conf',
        (*COMPARED, EXPLAIN, DIFF)),
    'no providers': Fault(
        faults.rebuilt, 'placement has 0 resource providers and nova has 13 '
        'compute nodes; ',
        'if that is nova\'s placement, correct [placement_database] '
        'connection in placement.conf; if it is right, restore that '
        'database from a backup, or without one restart nova-compute on each '
        'compute host, then run "nova-manage placement heal_allocations" for '
        'the servers; otherwise correct '
        'region_name or valid_interfaces of [placement] in nova.conf',
        (*COMPARED, EXPLAIN, DIFF)),
    'stopped': caused(
        faults.restored('api_database', connection=faults.REFUSED),
        causes.REFUSED, API_DATABASE, NOVA_READ),
    'no tables': caused(
        faults.without_nova, causes.lacking(causes.TABLE, 'table'),
        API_DATABASE, NOVA_READ),
    'cell': Fault(
        faults.cell, causes.REFUSED.phrase,
        causes.REFUSED.step_for(causes.cell('cell2')),
        (*NOVA_READ, AGENT, API), 'partial'),
    'unmapped': Fault(
        faults.unmapped, 'host host1: no host mapping',
        database.MAP, COMPARED, 'partial'),
    'other cell': Fault(
        faults.other_cell, 'host host1: mapped to cell cell2 (',
        '", then "nova-manage cell_v2 discover_hosts --by-service"',
        COMPARED, 'partial'),
    'renamed': Fault(
        faults.renamed,
        'host short: no compute node, and nova has host short.example.org',
        ' in the rows of its table aggregate_hosts, ', COMPARED,
        'partial'),
    'renamed with servers': Fault(
        faults.renamed_with_servers,
        'host old: no compute node, and nova has host old.example.org',
        'otherwise stop its nova-compute, back up the database of its cell, '),
    'no provider': Fault(
        faults.without_provider, 'no resource provider yet',
        result.NO_PROVIDER, (STATUS, SYNC, WAIT, EXPLAIN, DIFF),
        reason='placement has no provider of this compute node'),
    'reinstalled': Fault(
        faults.reinstalled, 'its nova-compute cannot create the resource '
        'provider, because another one has the name host1',
        'run "openstack resource provider set --name host1-old ',
        (*COMPARED, DIFF), 'partial'),
    'no node': Fault(
        faults.without_node, 'host host2: no compute node: ',
        source.RESTART, COMPARED, 'partial'),
    'drift': Fault(
        faults.drift, 'in placement, aggregate rack lacks host host7',
        'To repair this now, run:\n  ' + SYNCED, (STATUS, DIFF),
        client='1 association to add.'),
    'retired': Fault(
        faults.retired, 'host retired: neither nova-compute nor compute node, '
        'so that nova-api answers 404 to its removal',
        'if it does not return, back up nova\'s API database, and delete the '
        'rows of the host in its table aggregate_hosts', COMPARED, 'partial'),
    'two cells': Fault(
        faults.two_cells, 'nova has the compute node on host host5',
        'run "openstack compute service delete" for the host that does not '
        'run nova-compute now, which removes it from its aggregates; restart '
        'nova-compute on the other',
        (*COMPARED, DIFF), 'partial'),
    'brake': Fault(
        faults.removed, 'removals refused', BRAKED,
        (STATUS, SYNC, AGENT, DIFF), 'partial', line=APPLY),
}
TABLES = PLACEMENT, KEYSTONE, JOURNALS, NOVA


def select(table: dict[str, Fault], *names: str) -> list[Fault]:
    return [table[name] for name in names]


RUNBOOK = {
    'placement-down': select(
        PLACEMENT, 'refuses', 'silent', '503', '500', 'closes'),
    'drift-found': select(NOVA, 'drift'),
    'credentials-refused': [
        *select(PLACEMENT, 'token', 'role', 'application credential'),
        *select(KEYSTONE, 'password', 'application credential', 'scope',
                'credentials')],
    'certificate-refused': select(
        PLACEMENT, 'certificate', 'expired', 'another name'),
    'keystone-down': select(KEYSTONE, 'refuses', 'silent', 'proxy'),
    'option-wrong': select(
        KEYSTONE, 'unknown option', 'invalid option', 'no hook',
        'unknown hook', 'option of a section', 'option of a database'),
    'wrong-placement': [
        *select(PLACEMENT, 'page'), *select(
            KEYSTONE, 'region', 'no endpoint'),
        *select(NOVA, 'another placement')],
    'placement-rebuilt': select(NOVA, 'no providers'),
    'journal-down': select(
        JOURNALS, 'stopped', 'host', 'database', 'driver', 'module',
        'no tables', 'password', 'no URL', 'in memory', 'parameter'),
    'journal-read-only': select(JOURNALS, 'reader', 'replica'),
    'wrong-database': select(
        JOURNALS, 'wiki', 'file of another program', 'column'),
    'another-nova': select(JOURNALS, 'another nova'),
    'journal-lost': select(JOURNALS, 'damaged'),
    'nova-database': select(NOVA, 'stopped', 'no tables'),
    'cell-down': select(NOVA, 'cell'),
    'no-mapping': select(NOVA, 'unmapped', 'other cell'),
    'host-pending': select(NOVA, 'no provider', 'reinstalled'),
    'no-compute-node': select(
        NOVA, 'no node', 'retired', 'renamed', 'renamed with servers'),
    'several-hosts': select(NOVA, 'two cells'),
    'brake-tripped': select(NOVA, 'brake'),
}
"""Sections of the runbook, and the rows that lead to each."""


class TestFaults(testtools.TestCase):
    """Each cause has the same words in every place, and its advice works."""

    def check(self, table: dict[str, Fault]) -> None:
        scene = faults.Scene(self)
        for name, fault in table.items():
            self.addDetail('fault', content.text_content(name))
            self.assert_advised(scene, fault)

    def assert_advised(self, scene: faults.Scene, fault: Fault) -> None:
        """Make a fault, read each place, and follow the advice."""
        follow = fault.make(scene) or scene.type
        texts = {place: scene.text(place) for place in fault.shown}
        causes = {DIFF: fault.client, EXPLAIN: fault.reason}
        for place, text in texts.items():
            self.assert_named(scene, dataclasses.replace(
                fault, cause=causes.get(place) or fault.cause), text)
        for place in texts.keys() & {SYNC, AGENT, API, WAIT, EXPLAIN, AUDIT}:
            self.assertIn(fault.advice, texts[place])
        self.assert_client(texts.get(DIFF, ''))
        if DIFF in texts and ('placement', 'endpoint_override') in (
                scene.options):
            self.assertIn('correct placement_endpoint_override of the '
                          'openstack client, in clouds.yaml', texts[DIFF])
        status = texts[STATUS]
        self.assertIn(fault.step, status)
        self.assertNotIn('upgrade check', status, 'it advises itself')
        # A finding has its step in its sentence, or in indented lines.
        self.assertThat(re.findall('(?m)^(?!  ).*\\n  ', status),
                        matchers.HasLength(int('\n  ' in status)))
        if AGENT in texts:
            self.assertEqual('result=' + fault.result,
                             texts[AGENT].splitlines()[-1])
        follow(status)
        self.assertEqual('', scene.manage(
            'placement', 'sync_aggregates', '--prune', '--quiet'))
        self.assertEqual({}, scene.status())
        scene.restore()

    def assert_client(self, text: str) -> None:
        """Assert that the advice is for somebody without the controllers.

        Only what their databases show has to be looked up there.
        """
        text = text.replace(': '.join(api.UNLISTED), '')
        for word in 'nova.conf', '[placement]', 'nova-aggregate-mirror-':
            self.assertNotIn(word, text)

    def assert_named(self, scene: faults.Scene, fault: Fault, text: str
                     ) -> None:
        """Assert that a text has the cause, and nothing that is not so."""
        def fill(row: Fault) -> str:
            return row.cause.format(placement=scene.placement.url,
                                    keystone=scene.keystone.url,
                                    other=scene.other).lower()

        self.assertIn(fill(fault), text.lower())
        for other in (fill(row) for table in TABLES for row in table.values()):
            if other not in fill(fault) and fill(fault) not in other:
                self.assertNotIn(other, text.lower())
        for word in 'Traceback', faults.PASSWORD:
            self.assertNotIn(word, text)

    def test_runbook(self) -> None:
        """Each row, alert and section of the runbook leads to another."""
        self.assertEqual(
            sorted(id(row) for table in TABLES for row in table.values()),
            sorted(id(row) for rows in RUNBOOK.values() for row in rows))
        admin = ROOT / 'doc' / 'source' / 'admin'
        sections = dict(re.findall(
            r'(?m)^(?:\.\. _([\w-]+):\n\n)?(.+)\n---+$',
            (admin / 'runbook.rst').read_text()))
        self.assertNotIn('', sections, 'a section without a label')
        alerts = re.findall(r'runbook\.html#([\w-]+)', (
            ROOT / 'etc' / 'prometheus' / 'nova-aggregate-mirror.rules.yaml'
        ).read_text())
        messages = re.findall(
            ':ref:`([^`]+)`', (admin / 'log.rst').read_text())
        self.assertEqual(set(), {*RUNBOOK, *alerts} - sections.keys())
        self.assertEqual(
            set(), sections.keys() - {*RUNBOOK, *alerts, *messages})

    def test_placement(self) -> None:
        self.check(PLACEMENT)

    def test_keystone(self) -> None:
        self.check(KEYSTONE)

    def test_journal(self) -> None:
        self.check(JOURNALS)

    def test_nova(self) -> None:
        self.check(NOVA)
