# SPDX-License-Identifier: Apache-2.0
"""What scripts rely on, compared with a record: help, documents, statuses.

After an intended change, write the record again and commit it:
AGGREGATE_MIRROR_WRITE_RECORD=1 tox -e functional -- test_record
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import fixtures as base_fixtures
import testtools

from nova_aggregate_mirror.console import syncs
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import source
from tests import commands
from tests.unit import doubles
from tests.unit.reconcile import test_result

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
LIBRARIES = ('--config-dir', '--column COLUMN', 'CSV Formatter',
             '--noindent', '--max-width', '--sort-column')
"""Options of oslo.config and cliff, whose paragraphs are not recorded."""


def compare(test, name, text):
    """Compare a text with its record, or write the record."""
    file = FOLDER / name
    if WRITE in os.environ:
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


class TestRecord(testtools.TestCase):

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

    def test_installed_scripts(self):
        """Each prints its usage, and no warning of a library."""
        for module, name in commands.PROGRAMS.items():
            done = subprocess.run(
                [commands.script(module), '--help'], capture_output=True,
                text=True, timeout=commands.TIMEOUT)
            self.assertEqual((0, ''), (done.returncode, done.stderr), name)
            self.assertIn('usage: ' + name, done.stdout)

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

    def test_sync(self):
        """It has every kind of association, and of failure."""
        invalid = source.HostAggregate('zone', 1, '', frozenset({'h1'}))
        nova = dataclasses.replace(
            test_result.NODELESS, cells_down={'cell9': doubles.SILENT},
            unmapped=frozenset({'unmapped'}),
            invalid_aggregates=frozenset({invalid}))
        document = syncs.document(test_result.judged(
            'missing', 'stale', 'foreign_aggregate', 'foreign_provider',
            'unknown_provider', 'absent', 'pending', failed=['n1'],
            unfinished=['h2'], nova=nova, refused=test_result.REFUSED))
        text = json.dumps(shape(document), indent=1)
        compare(self, 'sync.json', text + '\n')
