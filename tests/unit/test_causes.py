# SPDX-License-Identifier: Apache-2.0
"""The table of what a party can do, and its one next step."""

from collections import abc
import contextlib
import dataclasses
import io
import itertools
import sys
from typing import Any
from unittest import mock

import fixtures
import testtools

from nova_aggregate_mirror.agent import periodic_audit
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror import causes
from nova_aggregate_mirror import checks
from nova_aggregate_mirror.cmd import program
from nova_aggregate_mirror.console import syncs
from nova_aggregate_mirror.console import wait_run
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.html_report import collect
from nova_aggregate_mirror.html_report import report
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal import full_syncs
from nova_aggregate_mirror.reconcile import full_sync
from nova_aggregate_mirror.reconcile import outcome
from nova_aggregate_mirror.reconcile import problems
from nova_aggregate_mirror.reconcile import result
from nova_aggregate_mirror.reconcile import sync_history
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import connections
from nova_aggregate_mirror.source import host_database
from tests.unit.agent import case
from tests.unit.hooks import test_mirror
from tests.unit import servers

CAUSES = {name: value for name, value in vars(causes).items()
          if isinstance(value, causes.Cause)}
STEPLESS = {'NO_PROVIDER', 'CHANGED', 'OUT_OF_TIME', 'NOT_ASKED',
            'NOT_ASKED_FURTHER', 'FILE_FAILED'}
"""What heals alone, and what nothing is known of."""


def parties() -> list[causes.Party]:
    """Return a party of each kind."""
    accounts = [auth.party(servers.make_conf(
        auth_type=kind, username='{odd} %s'), 'placement')
        for kind in ('password', 'v3applicationcredential')]
    services = [*accounts, causes.openstack_client('placement')]
    return [*services, *map(causes.keystone, services), engine.PARTY,
            connections.PARTY, causes.cell('one', 'mysql://cell'),
            causes.cell('two', '{scheme}://{hostname}/two')]


def errors(step: int = 1) -> abc.Iterator[exceptions.MirrorError]:
    """Yield each cause of each party, or of some, one after another.

    :param step: below the number of parties, so that no cause is left out
    """
    pairs = itertools.product(CAUSES.values(), parties())
    for cause, party in itertools.islice(pairs, 0, None, step):
        yield exceptions.ServiceFailed.of(cause, party, 'GET /')


def values(failure: exceptions.Failure) -> tuple[str, str, str]:
    return failure.kind, failure.party, failure.step


def everything(error: exceptions.MirrorError) -> result.Result:
    """Return a sync with the failure in each of its four parts."""
    subject = outcome.Subject(outcome.PROVIDER, 'n1')
    return result.Result(
        outcome.Outcome(failed={subject: error}),
        source.Nova({}, {}, {}, cells_down={'one': error.failure}),
        refused=error, not_compared=error)


def shown(error: exceptions.MirrorError) -> list[exceptions.Failure | None]:
    """Return the failure as each place has it that lists problems."""
    found = [
        *everything(error).problems,
        *(finding.problem for finding in checks.failed(error)),
        # Of an audit, of explain, and of the log of nova-api.
        *problems.of_cells({'one': error.failure}, 'it waits'),
        problems.Problem.of(type(error).again(error.failure))]
    return [problem.failure for problem in found]


def documents(error: exceptions.MirrorError) -> list[dict[str, Any]]:
    """Return the failure as programs read it, from a sync and an audit."""
    document = syncs.document(everything(error))
    audited = auditor.document([], auditor.Totals(), {'one': error.failure})
    return [*document['cells_down'], *document['failed'], document['refused'],
            document['not_compared'], *audited['cells_down']]


def printed(error: exceptions.MirrorError) -> dict[str, str]:
    """Return what each place prints that has no list of problems."""
    judged = full_sync.without_comparison(error, full_sync.Request())
    with mock.patch.object(full_syncs, 'add', autospec=True) as add:
        sync_history.note(mock.Mock(), 'agent', 1.0, judged)
    with fixtures.FakeLogger() as audit_log:
        periodic_audit.PeriodicAudit(
            mock.Mock(side_effect=error), 1.0, mock.Mock()).step(lambda: False)
    err, program_err = io.StringIO(), io.StringIO()
    waits = exceptions.JournalUnavailable.again(error.failure)
    with mock.patch.object(full_sync, 'of_hosts', autospec=True, return_value=(
            full_sync.without_comparison(waits, full_sync.Request()))), \
            contextlib.redirect_stderr(err):
        wait_run.run(mock.Mock(), mock.Mock(), frozenset({'h1'}), 0, 'sync')
    with contextlib.redirect_stderr(program_err), \
            mock.patch.object(sys, 'argv', ['explain']):
        program.run('explain', mock.Mock(side_effect=error))
    content = collect.Content(judged, collect.JournalContent(), {}, '')
    return {'history': add.call_args[0][1].reason,
            'agent\'s audit': audit_log.output, 'wait': err.getvalue(),
            'explain': program_err.getvalue(),
            'report': report.summary(content)}


class TestCauses(testtools.TestCase):

    def test_each_row_has_one_step(self) -> None:
        self.assertEqual(STEPLESS, {
            name for name, cause in CAUSES.items() if not cause.step})

    def test_steps_name_the_options_of_the_party(self) -> None:
        """Whatever a person has written there.

        Those of the openstack client are for its own options. A refused login
        changes no account: a wrong password may be an unknown user.
        """
        user, *_others, template = parties()
        client = causes.openstack_client('placement')
        for cause, party, step in (
                (causes.LOGIN, user, 'correct username (now {odd} %s), '
                 'domains, password or project of [placement] in nova.conf'),
                (causes.PASSWORD, template, 'correct user and password in '
                 '[database] connection, which fills in the URL of the cell '
                 'mapping; if they are right, let that user connect from this '
                 'host'),
                (causes.TABLE, connections.PARTY, 'correct the name of the '
                 'database in [api_database] connection; if it is right, run '
                 '"nova-manage api_db sync"'),
                (causes.COLUMN, connections.PARTY,
                 'run "nova-manage api_db sync"')):
            self.assertEqual(step, cause.step_for(party))
        for cause, party in itertools.product(CAUSES.values(), parties()):
            step = cause.step_for(party)
            self.assertNotIn('{a', step)
            if party in (client, causes.keystone(client)):
                self.assertNotIn('nova.conf', step)
                self.assertNotIn('[placement]', step)
            if cause in (causes.LOGIN, causes.PASSWORD):
                self.assertTrue(step.startswith('correct '), step)

    def test_values_are_the_same_in_each_place(self) -> None:
        """Kind, party and step, which no place takes from a sentence."""
        rows = itertools.product(CAUSES.values(), parties())
        for (cause, party), error in zip(rows, errors(), strict=True):
            expected = cause.kind, party.name, cause.step_for(party)
            self.assertEqual(expected, values(error.failure))
            found = [values(failure) for failure in shown(error)]
            self.assertEqual([expected] * 7, found)
            self.assertEqual(expected[1:], values(
                exceptions.NotTried.because_of(error).failure)[1:])
            for entry in documents(error):
                self.assertEqual((*expected, str(dataclasses.replace(
                    error.failure, consequence=''))), (
                    entry['kind'], entry['who'], entry['step'],
                    entry['reason']))

    def test_sentence_is_the_same_in_each_place(self) -> None:
        """It is made of the values by the failure alone."""
        for error in errors():
            [finding] = checks.failed(error)
            self.assertEqual('%s.' % error, finding.text)
            for place, text in printed(error).items():
                self.assertEqual(1, text.count(str(error.failure)), place)


class TestAgentLog(case.AgentTest):
    """Sentences of an agent that mirrors journal rows."""

    def assert_logged(self, message: str, error: exceptions.MirrorError
                      ) -> None:
        """Mirror as an agent that has just started."""
        with fixtures.FakeLogger() as log:
            self.new_drain().step()
        self.assertIn('%s: %s' % (message, error), log.output.splitlines())

    def test_row_that_fails_and_outage(self) -> None:
        """A line of the log, and the row that failed, have the sentence."""
        for error in errors(step=9):
            row = self.hand_over('h1', ['n1'])
            self.placement.broken = {('GET', 'n1'): error}
            self.assert_logged(
                'Host h1 (request -) is not mirrored yet', error)
            self.assertEqual([str(error)], [
                left.last_error for left in self.left()])
            self.break_all(error)
            self.assert_logged('Mirroring is suspended, operations stay in '
                               'the journal', error)
            self.journal.rows.close([row.id])


class TestHookLog(test_mirror.HookTest):
    """Sentences of a nova-api whose user changes an aggregate."""

    def assert_logged(self, text: str, *operation: Any, **options: Any
                      ) -> None:
        with fixtures.FakeLogger() as log:
            self.run_hook(*operation, **options)
        self.assertIn(text, log.output)

    def test_each_failure(self) -> None:
        """Of a converge, of nova's API database or a cell, of the journal.

        A row that waits has the sentence, too.
        """
        for error in errors(step=9):
            self.assert_logged(
                '%s is not mirrored to placement yet: %s; '
                % (test_mirror.ADD, error), error, test_mirror.ADD, 'h1')
            row, = self.journal.rows.all()
            self.assertEqual(str(error), row.last_error)
            self.assert_logged(
                'its deletion is not mirrored to placement: %s; ' % error,
                error, 'delete_aggregate')
            failure = dataclasses.replace(
                error.failure, consequence='the agent mirrors its hosts later')
            for scope, sentence in (
                    (exceptions.NovaUnavailable.again(error.failure),
                     'request req-of-the-user): %s\n' % error),
                    (host_database.Scope(
                        'agg', cells_down={'one': error.failure}),
                     'a cell was not read: %s\n' % failure)):
                self.assert_logged(
                    sentence, error, test_mirror.ADD, 'h1', scopes=[scope])
            failing = mock.Mock(
                side_effect=exceptions.JournalUnavailable.again(error.failure))
            with mock.patch.object(self.journal.rows, 'record', failing), \
                    mock.patch.object(self.journal.ledger, 'mark', failing):
                for method, host, end in (
                        (test_mirror.ADD, 'h1', 'This operation'),
                        ('delete_aggregate', '', 'Its deletion')):
                    self.assert_logged(
                        'request req-of-the-user): %s. %s ' % (error, end),
                        error, method, host)
            self.journal.rows.close(
                [row.id for row in self.journal.rows.all()])
