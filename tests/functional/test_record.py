# SPDX-License-Identifier: Apache-2.0
"""What scripts rely on, compared with a record: help, documents, statuses.

After an intended change, write the record again and commit it:
AGGREGATE_MIRROR_WRITE_RECORD=1 tox -e functional -- test_record
"""

import json
import os
import pathlib
import subprocess
import sys

import fixtures as base_fixtures
from oslo_utils import uuidutils
import testtools

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from tests import commands
from tests.functional import test_openstack_client
from tests.functional import test_sync_command

WRITE = 'AGGREGATE_MIRROR_WRITE_RECORD'
FOLDER = pathlib.Path(__file__).parent / 'record'

COMMANDS = {
    commands.MANAGE: (
        '', 'placement sync_aggregates', 'placement wait',
        'placement audit_servers', 'report', 'scheduling explain', 'db sync',
        'journal list', 'journal forget', 'journal bind'),
    commands.STATUS: ('', 'upgrade check'), commands.AGENT: ('',),
    commands.OPENSTACK: tuple(
        'aggregate mirror ' + name
        for name in ('list', 'show', 'diff', 'sync', 'wait', 'servers'))}
AGGREGATE = uuidutils.generate_uuid()
LIBRARIES = ('--config-dir', '--column COLUMN', 'CSV Formatter',
             '--noindent', '--max-width', '--sort-column')
"""Options of oslo.config and cliff, whose paragraphs are not recorded."""


def compare(test, name, text):
    """Compare a text with its record, or write the record."""
    file = FOLDER / name
    if WRITE in os.environ:
        FOLDER.mkdir(exist_ok=True)
        file.write_text(text)
    test.assertEqual(file.read_text(), text, 'if intended: %s' % __doc__)


def recorded(text):
    """Return the paragraphs of a help without options of libraries."""
    return '\n\n'.join(
        paragraph for paragraph in text.strip().split('\n\n')
        if not any(option in paragraph for option in LIBRARIES))


def shape(value):
    """Return the keys of a document, and the types of its values.

    A list has the shape of its first element.
    """
    if isinstance(value, dict):
        return {key: shape(element) for key, element in value.items()}
    if isinstance(value, list):
        return [shape(element) for element in value[:1]]
    return type(value).__name__


class TestHelp(testtools.TestCase):

    def test_every_command(self):
        """Options, their values and the exit statuses."""
        if sys.version_info >= (3, 13):
            self.skipTest('argparse formats options in another way')
        for name, value in (('COLUMNS', '80'), ('NO_COLOR', '1')):
            self.useFixture(base_fixtures.EnvironmentVariable(name, value))
        for module, names in COMMANDS.items():
            texts = []
            for name in names:
                done = commands.run(module, [*name.split(), '--help'])
                self.assertEqual((0, ''), (done.returncode, done.stderr))
                texts.append('$ %s %s\n%s\n' % (
                    commands.PROGRAMS[module], name, recorded(done.stdout)))
            compare(self, commands.PROGRAMS[module] + '.txt', '\n'.join(texts))

    def test_without_arguments(self):
        """The help is printed; the agent runs."""
        for module in commands.MANAGE, commands.STATUS:
            without, with_help = (
                commands.run(module, argv) for argv in ([], ['--help']))
            self.assertEqual((with_help.returncode, with_help.stdout),
                             (without.returncode, without.stdout))

    def test_installed_scripts(self):
        """Each prints its usage, and no warning of a library."""
        for module, name in commands.PROGRAMS.items():
            done = subprocess.run(
                [commands.script(module), '--help'], capture_output=True,
                text=True, timeout=commands.TIMEOUT)
            self.assertEqual((0, ''), (done.returncode, done.stderr), name)
            self.assertIn('usage: ' + name, done.stdout)


class TestExitStatuses(testtools.TestCase):

    def test_errors(self):
        """Every error, if placement could not be read, and not written."""
        errors = sorted((error for error in vars(exceptions).values()
                         if isinstance(error, type)
                         and issubclass(error, exceptions.MirrorError)),
                        key=lambda error: error.__name__)
        lines = ['%-22s %3d %3d\n' % (
            error.__name__, exit_status.of(error('')),
            exit_status.of(error(''), unwritten=True)) for error in errors]
        compare(self, 'exit_statuses.txt', ''.join(lines))


class TestDocuments(test_sync_command.SyncTest):

    def setUp(self):
        """Create each kind of association that a sync reports."""
        super().setUp()
        both = self.host('both')
        self.placement.set_aggregates(both.nodes[0], [
            self.rack.uuid, test_sync_command.FOREIGN])
        self.host('pending', providers=False)
        self.host('unmapped', mapped=False)
        self.host('nodeless', nodes=0)
        storage = uuidutils.generate_uuid()
        self.placement.create_provider(storage, 'storage')
        self.placement.set_aggregates(storage, [self.zone.uuid, AGGREGATE])
        self.journal.ledger.remember([AGGREGATE])
        [broken] = self.host('broken').nodes
        self.placement.fail_with(503, ('GET',), provider=broken)
        self.left_over('both')
        self.stale('stale', self.zone.uuid)

    def test_manage(self):
        """The documents of commands on a nova host."""
        documents = {}
        for name in 'placement sync_aggregates --dry-run', 'journal list':
            done = self.run_command(*name.split(), '-f', 'json')
            documents[name] = shape(json.loads(done.stdout))
        compare(self, 'manage.json', json.dumps(documents, indent=1) + '\n')


class TestClient(test_openstack_client.ClientTest):

    def test_openstack(self):
        """The documents of the openstack client; a sync's is the same."""
        self.host('h1')
        stale = self.cloud.create_host('stale')
        self.placement.set_aggregates(stale.nodes[0], [self.rack.uuid])
        documents = {}
        for name in 'list', 'show zone', 'diff', 'sync --dry-run':
            document, _errors = self.mirror(*name.split(), status=None)
            documents[name] = shape(document)
        compare(self, 'openstack.json', json.dumps(documents, indent=1) + '\n')
        recorded = json.loads((FOLDER / 'manage.json').read_text())
        self.assertEqual(
            [*recorded['placement sync_aggregates --dry-run']],
            [*documents['sync --dry-run']])
