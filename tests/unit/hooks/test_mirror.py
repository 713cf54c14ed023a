# SPDX-License-Identifier: Apache-2.0
"""What the hook does with a row that it could not close."""

from collections import abc
import dataclasses
import logging
import math
import sys
import types
from typing import Any
from unittest import mock

import fixtures

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import hooks
from nova_aggregate_mirror.hooks import mirror
from nova_aggregate_mirror.hooks import processes
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror.source import host_database
from tests.unit import doubles

ADD = 'add_host_to_aggregate'


class Mirror(mirror.Mirror):
    """The hook in a process whose converge fails."""

    def __init__(self, process: Any, error: exceptions.MirrorError) -> None:
        super().__init__(process.conf)
        self._of_test = process
        self._error = error

    def _process(self) -> Any:
        return self._of_test

    def _converge(self, *_what: object) -> None:
        raise self._error


class Process(processes.Process):
    """Journal, nova and placement of a test, as far as the hook uses them."""

    def __init__(self, test: doubles.TestCase,
                 scope: abc.Callable[..., host_database.Scope] = (
                     lambda *_operation: host_database.Scope('agg'))) -> None:
        self.conf = test.conf
        self.rows, self.ledger = test.journal.rows, test.journal.ledger
        self.placement = test.placement
        self.context = test.reconciler
        self.without_ledger = dataclasses.replace(
            self.context, ledger=journal.Ledger())
        self.limits = engines.Limits(5)
        self.source = types.SimpleNamespace(scope=scope)

    def check_nova(self) -> None:
        """Accept the journal: there is only one nova."""


class Formatter(logging.Formatter):
    """Appends the exception that is being handled, as oslo.log does."""

    def format(self, record: logging.LogRecord) -> str:
        error = sys.exc_info()[1]
        text = super().format(record)
        return '%s %r' % (text, error) if error and (
            record.levelno >= logging.WARNING) else text


class HookTest(doubles.TestCase):

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(
            'nova_aggregate_mirror', format='%(levelname)s %(message)s',
            formatter=Formatter))

    def run_hook(self, error: exceptions.MirrorError, method: str,
                 host: str = '', raised: str = '',
                 scopes: abc.Iterable[
                     host_database.Scope | exceptions.MirrorError] = (
                         host_database.Scope('agg'),)) -> None:
        """Run both parts of the hook, with what nova raised between them.

        :param scopes: what each operation of the request reads, or the error
        """
        answers = iter(scopes)

        def scope(*_operation: object) -> host_database.Scope:
            answer = next(answers)
            if isinstance(answer, exceptions.MirrorError):
                raise answer
            return answer

        hook = Mirror(Process(self, scope), error)
        operation = hooks.Operation(method, 1, host, 'req-of-the-user')
        for _scope in scopes:
            state = hook.before(operation)
            hook.after(dataclasses.replace(operation, raised=raised), state)


class TestWithoutTheJournal(HookTest):
    """Operations that have no other attempt."""

    def asked(self, method: str, host: str = '') -> tuple[bool, float]:
        """Run an operation; return what it asks for.

        :returns: whether the back-off knows of another attempt, and the
            patience with a provider
        """
        asked: list[Any] = []

        def note(context: object, _what: object, mode: provider_writes.Mode
                 ) -> outcome.Outcome:
            # A mark, too, says all that the ledger would.
            is_recorded = bool(host) and asked[0]
            self.assertIs(
                process.context if is_recorded else process.without_ledger,
                context)
            asked.append(mode.patience)
            return outcome.Outcome()

        def reconcile(call: abc.Callable[[], outcome.Outcome],
                      _request_id: str, recorded: bool) -> outcome.Outcome:
            asked.append(recorded)
            return call()

        process = Process(self)
        process.reconcile = reconcile
        with mock.patch.object(
                mirror.Mirror, '_process', lambda _hook: process), \
                mock.patch.multiple(
                    provider_writes, converge=note, remove=note):
            hook = mirror.Mirror(self.conf)
            operation = hooks.Operation(method, 1, host, 'req-1')
            hook.after(operation, hook.before(operation))
        recorded, patience = asked
        return recorded, patience

    def test_line_of_the_log(self) -> None:
        """A request has one, whatever its operations are."""
        failing = mock.Mock(
            side_effect=exceptions.JournalUnavailable('closed'))
        with mock.patch.object(self.journal.rows, 'record', failing):
            self.run_hook(exceptions.ServiceFailed('500'), ADD, 'h1',
                          scopes=[host_database.Scope('agg')] * 2)
        self.assertEqual(1, self.log.output.count('without the journal'))

    def test_all_the_time_of_the_call(self) -> None:
        """A refusal keeps none of them from its only attempt."""
        locked = mock.Mock(side_effect=exceptions.JournalLocked('locked'))
        with mock.patch.multiple(self.journal.rows, record=locked), \
                mock.patch.multiple(self.journal.ledger, mark=locked):
            for method, host in (ADD, 'h1'), ('delete_aggregate', ''):
                self.assertEqual((False, math.inf), self.asked(method, host))

    def test_deletion_that_is_marked(self) -> None:
        """A full sync makes the next attempt."""
        self.assertEqual((True, math.inf), self.asked('delete_aggregate'))


class TestHandOver(HookTest):

    def test_process_that_changes(self) -> None:
        """A forked child uses nothing of its parent, in a request either."""
        hook = Mirror(Process(self), exceptions.ServiceUnreachable('refused'))
        operation = hooks.Operation(ADD, 1, 'h1', 'req', 'req')
        hook.before(operation)
        hook._of_test = Process(self)
        self.assertIs(hook._of_test, hook._request(operation).process)

    def test_cell_that_is_down_later_in_the_request(self) -> None:
        """Each row has the compute nodes that were read before."""
        self.run_hook(
            exceptions.CellUnavailable('refused'), ADD, 'h1', scopes=[
                host_database.Scope('agg', frozenset({'n1'})),
                host_database.Scope(
                    'agg', cells_down={'cell9': doubles.SILENT}),
                host_database.Scope('agg')])
        self.assertEqual([[], ['n1'], ['n1']], sorted(
            sorted(row.dirty.nodes) for row in self.journal.rows.all()))
        self.assertIn(': ' + doubles.SILENT.step, self.log.output)

    def test_error_without_a_text(self) -> None:
        """Rule 3: the row is handed over, and the log says so."""
        self.run_hook(exceptions.CellUnavailable(''), ADD, 'h1')
        row, = self.journal.rows.all()
        self.assertEqual((False, 'h1'), (row.running, row.dirty.host))
        self.assertIn('it stays in the journal and is retried',
                      self.log.output)

    def test_line_of_the_log(self) -> None:
        """What waits, where it waits, and whether it is a warning."""
        host = 'Aggregate 1, host h1 (request req-of-the-user): '
        refused = exceptions.CellUnavailable('refused')
        for error, method, raised, line in (
                # Placement may have the change: the log does not deny that.
                (exceptions.JournalNotAsked('no time is left'), ADD, '',
                 'WARNING %sadd_host_to_aggregate could not be completed in '
                 'the journal: no time is left; it stays in the journal and '
                 'is retried' % host),
                # Nothing of it waits; its host is compared: no warning.
                (refused, ADD, 'InvalidAggregateActionAdd',
                 'INFO %snova raised InvalidAggregateActionAdd in '
                 'add_host_to_aggregate; the host is not compared with '
                 'placement yet: refused; it stays in the journal and is '
                 'retried' % host),
                # A sync removes only an aggregate that nova does not have.
                (refused, 'delete_aggregate', 'InvalidAggregateAction',
                 'INFO Aggregate 1 (request req-of-the-user): nova raised '
                 'InvalidAggregateAction in delete_aggregate; agg is not '
                 'compared with placement yet: refused')):
            self.log.reset_output()
            host_name = 'h1' if method == ADD else ''
            self.run_hook(error, method, host_name, raised)
            self.assertIn(line, self.log.output)
            self.assertNotIn('its deletion', self.log.output)

    def test_failure_that_is_logged(self) -> None:
        """Its text is there once."""
        for error, method in (
                (exceptions.JournalLocked('locked'), ADD),
                (exceptions.CellUnavailable('refused'), 'delete_aggregate')):
            self.run_hook(error, method, 'h1')
            self.assertEqual(1, self.log.output.count(str(error)))

    def test_removals_without_prune(self) -> None:
        """What no full sync repairs has the command that does."""
        doubles.hide_journal(self.conf)
        for prune, method, host, command in (
                (False, 'remove_host_from_aggregate', 'h 1', "--host 'h 1'"),
                (False, 'delete_aggregate', '', '--aggregate agg'),
                (False, ADD, 'h1', ''), (True, ADD, 'h1', ''),
                (True, 'remove_host_from_aggregate', 'h1', ''),
                (True, 'delete_aggregate', '', '')):
            self.conf.set_override('prune', prune, 'aggregate_mirror')
            log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
            self.run_hook(exceptions.CellUnavailable('refused'), method, host)
            self.assertEqual([
                '; with prune = false, "nova-aggregate-mirror-manage '
                'placement sync_aggregates --prune %s" repairs what fails%s'
                % (command, end) for end in ('.', '') if command],
                [line[line.index('; with'):]
                 for line in log.output.splitlines() if 'prune' in line])
            repair = 'a full sync repairs what fails'
            if not host:
                repair = 'a full sync removes it from compute nodes'
            self.assertEqual(method == ADD or prune, repair in log.output)

    def test_deletion_while_nova_cannot_be_read(self) -> None:
        """Its UUID is not known, so that it cannot be marked either."""
        self.conf.set_override('prune', False, 'aggregate_mirror')
        self.run_hook(exceptions.CellUnavailable('refused'),
                      'delete_aggregate', scopes=[
                          exceptions.NovaUnavailable('silent')])
        self.assertIn(
            'Aggregate 1 (request req-of-the-user): silent; with prune = '
            'false, "nova-aggregate-mirror-manage placement sync_aggregates '
            '--prune" repairs what fails\n', self.log.output)

    def test_row_that_is_locked(self) -> None:
        """The hand-over would wait for the same lock."""
        with mock.patch.object(
                self.journal.rows, 'hand_over', autospec=True) as hand_over:
            self.run_hook(exceptions.JournalLocked('locked'), ADD, 'h1')
        hand_over.assert_not_called()
        self.assertIn('could not be completed in the journal: locked; it '
                      'stays in the journal', self.log.output)

    def test_row_that_was_not_recorded(self) -> None:
        """The log says so, and promises no retry."""
        wrong = mock.Mock(side_effect=exceptions.WrongNova('another nova\'s'))
        with mock.patch.multiple(self.journal.rows, record=wrong):
            self.run_hook(exceptions.CellUnavailable('refused'), ADD, 'h1')
        self.assertIn('is not mirrored to placement yet: refused; it is not '
                      'in the journal; a full sync repairs what fails\n',
                      self.log.output)
