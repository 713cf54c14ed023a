# SPDX-License-Identifier: Apache-2.0
"""Effect of ``journal bind`` on the journal of each nova."""

import fixtures

from nova_aggregate_mirror.cmd import journal_binding
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal import nova_identity
from tests.unit import doubles

OF_OTHER = '1f6a2f0e-6a3c-4f0e-9a7c-2f3f6b1f7b11'


class TestBind(doubles.TestCase):

    def setUp(self):
        super().setUp()
        self.err = self.useFixture(fixtures.StringStream('err'))
        for name, stream in (('stderr', self.err), (
                'stdout', self.useFixture(fixtures.StringStream('out')))):
            self.useFixture(
                fixtures.MonkeyPatch('sys.' + name, stream.stream))

    def bind(self, force=False):
        return journal_binding.bind(self.journal, self.nova, force)

    def stored(self):
        return self.journal.database.run(nova_identity.cells)

    def belong_to_another(self):
        binding.replace(self.journal.database, {'other': ''})
        self.journal.ledger.remember({OF_OTHER})

    def test_journal_of_another_nova(self):
        """The ledger is kept, and it has no rows that might be another's."""
        self.belong_to_another()
        self.assertEqual(0, self.bind())
        self.assertEqual({doubles.CELL}, self.stored())
        self.assertEqual({OF_OTHER}, {*self.journal.ledger.entries()})

    def test_rows_of_another_nova(self):
        """They are kept as well, and only with --force."""
        self.belong_to_another()
        row = self.hand_over('h1')
        self.assertEqual(exit_status.REFUSED, self.bind())
        self.assertEqual({'other'}, self.stored())
        self.assertEqual(0, self.bind(force=True))
        self.assertEqual({doubles.CELL}, self.stored())
        self.assertEqual(
            [row.id], [row.id for row in self.journal.rows.all()])

    def test_rows_of_this_nova(self):
        """It is bound already, or to nothing yet."""
        self.hand_over('h1')
        for _time in range(2):
            self.assertEqual(0, self.bind())
            self.assertEqual({doubles.CELL}, self.stored())

    def test_nova_without_cells(self):
        """Nothing would tell it from another nova."""
        self.belong_to_another()
        self.nova.mapped = {}
        self.assertEqual(exit_status.COULD_NOT_RUN, self.bind(force=True))
        self.assertEqual({'other'}, self.stored())
