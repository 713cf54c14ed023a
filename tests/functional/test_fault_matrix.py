# SPDX-License-Identifier: Apache-2.0
"""The matrix of faults by the places where somebody looks.

Each fault is made for real, and the advice is followed by the test. It is
long because it is one table.
"""

import dataclasses
import pathlib
import re

from oslo_utils import uuidutils
import testtools
from testtools import content
from testtools import matchers

from tests import faults

ROOT = pathlib.Path(__file__).parents[2]
STATUS, SYNC, ROWS, AGENT, API = EVERY = faults.PLACES


@dataclasses.dataclass(frozen=True)
class Fault:
    """A row of the matrix.

    :param make: makes it and returns what follows the printed step, given
        the text of the status check; None to type what is printed
    :param cause: what every place says, whatever its case
    :param step: what the status check advises, if anything
    :param places: where it shows
    :param result: of the agent's sync, in the log and in the metrics
    :param client: whether the openstack client shows it as well
    :param repair: why the step cannot be followed here: ``make`` returns a
        repair instead
    """

    make: faults.Make
    cause: str
    step: str = ''
    places: tuple[str, ...] = (STATUS, SYNC, AGENT, API)
    result: str = 'failure'
    repair: str = ''
    client: bool = False

    @property
    def shown(self) -> tuple[str, ...]:
        """Return the places: the report shows what a sync prints."""
        return (*self.places, *([faults.REPORT] if SYNC in self.places
                                else ()),
                *([faults.DIFF] if self.client else ()))


STARTED = ' Start placement, whose service may also be named'
PLACEMENT: dict[str, Fault] = {
    'refuses': Fault(
        faults.placement(lambda service: service.refuse()),
        'placement at {placement} refused the connection', STARTED,
        client=True),
    'silent': Fault(
        faults.silent_placement,
        'placement at {placement} was silent for', STARTED),
    '503': Fault(
        faults.placement(lambda service: service.fail_with(503)),
        'placement at {placement} answered 503 with text/html', STARTED,
        client=True),
    'page': Fault(
        faults.placement(lambda service: service.answer_with_a_page()),
        'placement at {placement} answered 200 with text/html, which cannot '
        'be used', 'openstack endpoint list --service placement',
        repair='the catalog is scripted', client=True),
    'token': Fault(
        faults.placement(lambda service: service.fail_with(
            401, provider='/resource_providers')),
        'placement at {placement} answered 401',
        'correct [keystone_authtoken] in placement.conf',
        repair='placement authenticates nobody here', client=True),
    'role': Fault(
        faults.without_role,
        'placement at {placement} answered 403',
        '  openstack role add --project service --user mirror service',
        (STATUS, AGENT, API), 'partial'),
    'application credential': Fault(
        faults.secret_without_role, 'placement at {placement} answered 403',
        '  openstack application credential create --role service ',
        (STATUS,)),
    'certificate': Fault(
        faults.certificate, 'has a certificate that is not accepted: '
        'self-signed certificate', '  cafile = FILE', client=True),
}
KEYSTONE: dict[str, Fault] = {
    'refuses': Fault(
        faults.restored('placement', auth_url='http://127.0.0.1:1/v3'),
        'keystone at http://127.0.0.1:1 refused the connection',
        'Start keystone, or correct:\n  [placement]\n  auth_url = '),
    'silent': Fault(
        faults.silent_keystone, 'keystone at {keystone} was silent for',
        'Start keystone, or correct:'),
    '503': Fault(
        faults.keystone(503), 'keystone at {keystone} answered 503',
        'Start keystone, or correct:'),
    'password': Fault(
        faults.another_password,
        'keystone at {keystone} refused the credentials with 401',
        '  openstack user set --password-prompt mirror'),
    'application credential': Fault(
        faults.another_secret,
        'keystone at {keystone} refused the credentials with 401',
        '  application_credential_secret = SECRET', (STATUS, SYNC)),
    'region': Fault(
        faults.option('placement', region_name='Elsewhere'),
        'placement has no endpoint in the catalog for region Elsewhere, '
        'interface internal,public', '  region_name = R\n'),
    'interface': Fault(
        faults.option('placement', valid_interfaces='admin'),
        'placement has no endpoint in the catalog for region not set, '
        'interface admin',
        '  valid_interfaces = internal'),
    'scope': Fault(
        faults.unscoped, 'placement has no endpoint, because the token has no '
        'catalog', '  project_name = service\n'),
    'credentials': Fault(
        faults.option('placement', password=None),
        '[placement] has no password', '  password = secret'),
    'unknown option': Fault(
        faults.restored(faults.MIRROR, sync_intervall=10),
        'sets sync_intervall, which is no option',
        'the option is sync_interval.', (STATUS,)),
    'invalid option': Fault(
        faults.option(faults.MIRROR, inline_timeout='soon'),
        '[aggregate_mirror] inline_timeout: could not convert string to '
        'float: \'soon\'',
        '  inline_timeout = 5.0', (STATUS, SYNC, ROWS)),
}
JOURNALS: dict[str, Fault] = {
    'stopped': Fault(
        faults.moved(port=1), 'the journal refused the connection',
        'start the database server, or correct host and port', EVERY),
    'host': Fault(
        faults.moved(host='nowhere.invalid'),
        'the journal has a name that does not resolve',
        'correct the host in', EVERY),
    'database': Fault(
        faults.moved(database='nothing'),
        'the journal has no database of this name',
        'create the database, or correct its name in', EVERY),
    'driver': Fault(
        faults.moved(drivername='mysql+nonexistent'),
        'the journal has a driver that SQLAlchemy does not know',
        'correct the driver in', EVERY),
    'package': Fault(
        faults.moved(drivername='mysql+mysqldb'),
        'the journal needs the Python package MySQLdb, which is not installed',
        'install it in this Python environment', EVERY,
        repair='nothing is installed here'),
    'no tables': Fault(
        faults.without_tables, 'the journal has no tables; this release needs '
        'version 0001', '  ' + faults.MANAGE + 'db sync', EVERY),
    'reader': Fault(
        faults.reader, 'the journal refused the user a right that is required',
        'grant all rights on the database to the user', (STATUS, API)),
    'replica': Fault(
        faults.replica, 'the journal is read-only',
        'to a server that accepts writes', (STATUS, API)),
    'password': Fault(
        faults.wrong_password, 'the journal refused the user or the password',
        'correct user and password in', EVERY),
    'wiki': Fault(
        faults.altered('DROP TABLE dirty', 'CREATE TABLE wiki (id INT)'),
        'is not a journal: it has the tables wiki, but no table dirty',
        'give the journal an empty database of its own', EVERY),
    'development': Fault(
        faults.altered('ALTER TABLE dirty DROP COLUMN attempts'),
        'lacks a column', 'drop the database and create it again',
        (STATUS, ROWS, API)),
    'another nova': Fault(
        faults.altered('INSERT INTO cells (cell_uuid) VALUES (\'%s\')'
                       % uuidutils.generate_uuid()),
        'the journal belongs to another nova, with the cells',
        'Give each nova a database of its own', (STATUS, SYNC, API)),
    'no URL': Fault(
        faults.restored(faults.JOURNAL, connection='nonsense'),
        'connection is not a database URL like', 'Correct it;',
        (STATUS, SYNC, ROWS)),
    'damaged': Fault(
        faults.damaged, 'the journal is no SQLite database, or is damaged',
        'Move it to another directory', EVERY),
}
NOVA: dict[str, Fault] = {
    'another placement': Fault(
        faults.other_placement, 'compute nodes, with no UUID in common',
        'correct [placement] in nova.conf', (STATUS, SYNC, AGENT),
        repair='the placement is changed, not the options', client=True),
    'no providers': Fault(
        faults.rebuilt, 'placement has 0 resource providers and nova has 13 '
        'compute nodes, with no UUID in common',
        'restart nova-compute on each compute host', (STATUS, SYNC, AGENT),
        client=True),
    'stopped': Fault(
        faults.restored('api_database', connection=faults.REFUSED),
        'nova\'s API database refused the connection',
        'start the database server, or correct host and port',
        (STATUS, SYNC)),
    'no tables': Fault(
        faults.restored('api_database', connection='sqlite://'),
        'nova\'s API database lacks a table', '  nova-manage api_db sync',
        (STATUS, SYNC), repair='the other database has nothing'),
    'cell': Fault(
        faults.cell, 'did not answer: refused the connection',
        'Start its database, or correct its connection', result='partial'),
    'unmapped': Fault(
        faults.unmapped, 'no host mapping',
        '  nova-manage cell_v2 discover_hosts', (STATUS, SYNC)),
    'no provider': Fault(
        faults.without_provider, 'no resource provider yet',
        '  systemctl restart nova-compute', (STATUS, SYNC), client=True),
    'reinstalled': Fault(
        faults.reinstalled, 'its nova-compute cannot create the resource '
        'provider, because another one has the name host1',
        'then restart nova-compute on that host',
        (STATUS, SYNC, AGENT), 'partial', client=True),
    'no node': Fault(
        faults.without_node, 'no compute node for',
        '  systemctl restart nova-compute', (STATUS,)),
    'retired': Fault(
        faults.retired, 'neither host mapping nor compute node',
        'start nova-compute with this host name once', (STATUS, SYNC)),
    'two cells': Fault(
        faults.two_cells, 'the compute node is on host', '',
        (STATUS, SYNC, AGENT), 'partial', repair='a row is deleted'),
    'brake': Fault(
        faults.removed, 'removals refused', '  ' + faults.MANAGE + 'placement '
        'sync_aggregates --prune --force', (STATUS, SYNC, AGENT), 'partial'),
    'no members': Fault(
        faults.emptied, 'removals refused', '  ' + faults.MANAGE + 'placement '
        'sync_aggregates --prune --force', (STATUS, SYNC, AGENT), 'partial'),
}
TABLES = PLACEMENT, KEYSTONE, JOURNALS, NOVA


def select(table: dict[str, Fault], *names: str) -> list[Fault]:
    return [table[name] for name in names]


RUNBOOK = {
    'placement-down': select(PLACEMENT, 'refuses', 'silent', '503'),
    'credentials-refused': [
        *select(PLACEMENT, 'token', 'role', 'application credential'),
        *select(KEYSTONE, 'password', 'application credential', 'scope',
                'credentials')],
    'certificate-refused': select(PLACEMENT, 'certificate'),
    'keystone-down': select(KEYSTONE, 'refuses', 'silent', '503'),
    'option-wrong': [*select(KEYSTONE, 'unknown option', 'invalid option'),
                     *select(JOURNALS, 'no URL')],
    'wrong-placement': [
        *select(PLACEMENT, 'page'), *select(KEYSTONE, 'region', 'interface'),
        *select(NOVA, 'another placement')],
    'placement-rebuilt': select(NOVA, 'no providers'),
    'journal-down': select(
        JOURNALS, 'stopped', 'host', 'database', 'driver', 'package',
        'no tables', 'password'),
    'journal-read-only': select(JOURNALS, 'reader', 'replica'),
    'wrong-database': select(JOURNALS, 'wiki', 'development'),
    'another-nova': select(JOURNALS, 'another nova'),
    'journal-lost': select(JOURNALS, 'damaged'),
    'nova-database': select(NOVA, 'stopped', 'no tables'),
    'cell-down': select(NOVA, 'cell'),
    'no-mapping': select(NOVA, 'unmapped'),
    'host-pending': select(NOVA, 'no provider', 'reinstalled'),
    'no-compute-node': select(NOVA, 'no node', 'retired'),
    'several-hosts': select(NOVA, 'two cells'),
    'brake-tripped': select(NOVA, 'brake', 'no members'),
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
        for text in texts.values():
            self.assert_named(scene, fault, text)
        self.assert_client(fault, texts.get(faults.DIFF, ''))
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

    def assert_client(self, fault: Fault, text: str) -> None:
        """Assert that the advice is for somebody without the controllers."""
        for word in 'nova.conf', '[placement]', 'nova-aggregate-mirror-':
            self.assertNotIn(word, text)

    def assert_named(self, scene: faults.Scene, fault: Fault, text: str
                     ) -> None:
        """Assert that a text has the cause, and nothing that is not so."""
        def fill(row: Fault) -> str:
            return row.cause.format(placement=scene.placement.url,
                                    keystone=scene.keystone.url).lower()

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
