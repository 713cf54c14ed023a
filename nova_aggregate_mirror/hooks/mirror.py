# SPDX-License-Identifier: Apache-2.0
"""The ``mirror`` hook: record in the journal, call nova, converge in time.

It is long because its parts share the state and the time of their request.
"""

import dataclasses
import math
import os
import shlex
import threading

from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror import commands
import nova_aggregate_mirror.conf
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import hooks
from nova_aggregate_mirror.hooks import processes
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import host_database

LOG = logging.getLogger(__name__)
REMOVE = 'remove_host_from_aggregate'
LEFT = 'the agent mirrors its hosts later'
PATIENTLY = provider_writes.Mode(patience=math.inf)
"""Only the budget of the request bounds the wait for a slow provider."""


@dataclasses.dataclass
class _ApiRequest:
    """State of an API request, shared by its operations on one host."""

    key: object
    """Nova's ID of the request; without one, its only operation."""
    process: processes.Process
    budget: deadline.Budget
    nodes: frozenset[str] = frozenset()
    failure: exceptions.MirrorError | None = None
    """Why the journal is not used any more; None while it is used."""
    is_failure_logged: bool = False


@dataclasses.dataclass(frozen=True)
class _State:
    """State of an operation, from ``before`` to ``after``."""

    recorded: bool
    """Whether the journal confirmed the row, or the mark of a deletion."""
    uuid: str = ''
    """UUID of the aggregate that is deleted, and marked in the ledger."""
    row: journal.Row | None = None
    """Row of any other operation."""
    may_have_row: bool = False
    """Whether the row is, or may be, in the journal."""
    memberships: source.Memberships = dataclasses.field(default_factory=dict)
    """Compute node to its aggregates before nova's method, if recorded."""


class Mirror:
    """Hook that mirrors each aggregate operation to placement."""

    replaces_mirroring = True

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._mutex = threading.Lock()
        self._current: processes.Process | None = None
        self._local = threading.local()
        self._is_observer = nova_aggregate_mirror.conf.observes(conf)
        if self._is_observer:
            return
        missing = exceptions.failure_of(
            lambda: auth.load(conf, 'placement'),
            exceptions.MissingCredentials)
        if missing and conf.aggregate_mirror.missing_credentials == 'fail':
            raise missing
        if missing:
            LOG.warning('Host aggregates cannot be mirrored to placement; '
                        'operations stay in the journal: %s', missing)

    def before(self, operation: hooks.Operation) -> _State | None:
        """Record the dirty host durably, or mark the aggregate as deleted.

        :returns: state for ``after``; None if nova mirrors by itself, and for
            the deletion of an aggregate whose UUID is not known
        """
        request = self._request(operation)
        with request.budget.spending():
            if self._is_observer:
                request.process.announce()
                return None
            scope = self._scope(operation, request)
        with request.budget.spending(essential=True):
            if operation.host:
                return self._record(operation, request, scope)
            if scope and scope.aggregate_uuid:
                return self._mark(operation, request, scope.aggregate_uuid)
        return None

    def after(self, operation: hooks.Operation, state: _State | None) -> None:
        """Converge the host and close its row, or remove the aggregate.

        A row that could not be closed is handed over.
        """
        if state is None:
            return
        request = self._request(operation)
        # It stays if what is raised below is no error of this package.
        error: exceptions.MirrorError | None = exceptions.MirrorError(
            'it ended unexpectedly')
        try:
            # Without a record, nothing tries again what fails here.
            with request.budget.spending(essential=not state.recorded):
                error = exceptions.failure_of(
                    lambda: self._converge(operation, request, state))
        finally:
            if error and state.row:
                with request.budget.spending(essential=True):
                    self._hand_over(
                        operation, request, state, state.row, error)
            elif error:
                self._report_deletion(operation, state, error)

    def _request(self, operation: hooks.Operation) -> _ApiRequest:
        """Return an API request's state; its first operation creates it."""
        key = operation.nova_request_id or operation
        process = self._process()
        request: _ApiRequest | None = getattr(self._local, 'request', None)
        if not request or (request.key, request.process) != (key, process):
            # The floor is for the journal when placement took all the time.
            budget = deadline.Budget(
                self._conf.aggregate_mirror.inline_timeout,
                floor=process.limits.least_left + engines.HEALTHY_SECONDS,
                tolerance=engines.HEALTHY_SECONDS)
            request = self._local.request = _ApiRequest(key, process, budget)
        return request

    def _scope(self, operation: hooks.Operation, request: _ApiRequest
               ) -> host_database.Scope | None:
        """Read the scope and note its nodes; None if nova cannot be read."""
        failure, scope = None, None
        aggregate_id = int(operation.aggregate_id)
        try:
            scope = request.process.source.scope(aggregate_id, operation.host)
        except exceptions.Retriable as exc:
            # Logged after this block; see ``failure_of``.
            failure = exc
        if scope is None:
            # Without a scope, a deletion is not marked in the ledger.
            repair = '' if operation.host else '; ' + self._repair(operation)
            LOG.warning('%s: %s', operation, str(failure) + repair)
            return None
        for _name, silence in sorted(scope.cells_down.items()):
            LOG.warning('%s: a cell was not read: %s', operation,
                        dataclasses.replace(silence, consequence=LEFT))
        for aggregate in sorted(scope.invalid_aggregates):
            # Nothing is removed from a host that is in an invalid aggregate.
            if operation.method == REMOVE or aggregate.id == aggregate_id:
                LOG.warning('%s: it is not mirrored completely: %s: %s',
                            operation, aggregate.problem, aggregate.step)
        # The request's previous operation may have read a cell that is down.
        request.nodes = scope.nodes | (
            request.nodes if scope.cells_down else frozenset())
        return scope

    def _record(self, operation: hooks.Operation, request: _ApiRequest,
                scope: host_database.Scope | None) -> _State:
        """Try to write the row of an operation on a host."""
        process = request.process
        row = process.rows.make(journal.Dirty(
            operation.host, request.nodes, operation.request_id))
        uuid = scope.aggregate_uuid if scope else ''
        uuids = [uuid] if uuid else []
        may_have_row = False
        if request.failure:
            process.ledger.defer(uuids)
        else:
            request.failure = process.write(
                lambda: process.rows.record(row, uuids), compares=bool(scope))
            if not request.failure:
                memberships = (dict.fromkeys(scope.nodes, scope.members)
                               if scope else {})
                return _State(recorded=True, row=row, may_have_row=True,
                              memberships=memberships)
            may_have_row = not request.failure.is_unwritten
        if not request.is_failure_logged:
            request.is_failure_logged = True
            LOG.error('%s: %s. This operation and the next ones of its '
                      'request are mirrored without the journal; %s.',
                      operation, request.failure, self._repair(operation))
        return _State(recorded=False, row=row, may_have_row=may_have_row)

    def _mark(self, operation: hooks.Operation, request: _ApiRequest,
              uuid: str) -> _State:
        """Try to mark an aggregate as deleted by a user."""
        process = request.process
        failure = process.write(lambda: process.ledger.mark(uuid))
        if failure:
            LOG.error('%s: %s. Its deletion could not be marked in the '
                      'ledger; if placement is unavailable now, %s may remain '
                      'there; %s.', operation, failure, uuid,
                      self._repair(operation, uuid))
        return _State(recorded=failure is None, uuid=uuid)

    def _converge(self, operation: hooks.Operation, request: _ApiRequest,
                  state: _State) -> None:
        """Converge and close, or remove the aggregate; raise what fails."""
        process, row = request.process, state.row

        def run() -> provider_writes.Outcome:
            if not row:
                return provider_writes.remove(
                    process.without_ledger, state.uuid, PATIENTLY)
            if state.may_have_row:
                return process.converge_and_close(
                    row, state.memberships, state.recorded)
            return process.converge(row, PATIENTLY, recorded=False)

        result = process.reconcile(run, operation.request_id, state.recorded)
        errors = result.unfinished if row else result.failed
        for error in errors.values():
            # Without a record, a row that cannot be closed is no failure: the
            # host is converged, and ``_record`` has logged why.
            is_of_journal = isinstance(error, exceptions.JournalUnavailable)
            if state.recorded or not is_of_journal:
                raise error
        for node in sorted(result.pending):
            LOG.warning('%s: placement has no resource provider %s; '
                        'nova-compute creates it, and the next full sync '
                        'adds its aggregates', operation, node)

    def _report_deletion(self, operation: hooks.Operation, state: _State,
                         error: exceptions.MirrorError) -> None:
        """Log why the providers of a deleted aggregate may still have it."""
        if operation.raised:
            LOG.info('%s: nova raised %s in %s; %s is not compared with '
                     'placement yet: %s', operation, operation.raised,
                     operation.method, state.uuid, error)
            return
        consequence = 'the next full sync removes %s' % state.uuid
        if not state.recorded:
            consequence = '%s may remain there; %s' % (
                state.uuid, self._repair(operation, state.uuid))
        LOG.warning('%s: its deletion is not mirrored to placement: %s; %s',
                    operation, error, consequence)

    def _hand_over(self, operation: hooks.Operation, request: _ApiRequest,
                   state: _State, row: journal.Row,
                   error: exceptions.MirrorError) -> None:
        """Hand over the row after an error; log whether the journal has it."""
        consequence = 'it stays in the journal and is retried'
        if not state.may_have_row:
            consequence = (
                'it is not in the journal; ' + self._repair(operation))
        elif isinstance(error, exceptions.JournalLocked):
            # The hand-over would wait for the same lock.
            request.failure = error
        elif failure := exceptions.failure_of(
                lambda: request.process.rows.hand_over(row, str(error)),
                exceptions.JournalUnavailable):
            request.failure = failure
            consequence = 'its journal row could not be updated: %s' % failure
            if not state.recorded:
                consequence = 'it may be missing from the journal: %s; %s' % (
                    failure, self._repair(operation))
        if operation.raised:
            LOG.info('%s: nova raised %s in %s; the host is not compared with '
                     'placement yet: %s; %s', operation, operation.raised,
                     operation.method, error, consequence)
        elif isinstance(error, exceptions.JournalUnavailable):
            LOG.warning('%s: %s could not be completed in the journal: %s; %s',
                        operation, operation.method, error, consequence)
        else:
            LOG.warning('%s: %s is not mirrored to placement yet: %s; %s',
                        operation, operation.method, error, consequence)

    def _repair(self, operation: hooks.Operation, uuid: str = '') -> str:
        """Return what repairs an operation without a record."""
        removes = operation.method == REMOVE or not operation.host
        if self._conf.aggregate_mirror.prune and not operation.host:
            return 'a full sync removes it from compute nodes'
        if self._conf.aggregate_mirror.prune or not removes:
            return 'a full sync repairs what fails'
        # Without a scope the command removes everything stale.
        scope = ' --aggregate ' + uuid if uuid else ''
        if operation.host:
            scope = ' --host ' + shlex.quote(operation.host)
        return 'with prune = false, "%s --prune%s" repairs what fails' % (
            commands.SYNC, scope)

    def _process(self) -> processes.Process:
        """Return the objects of this process; a fork needs its own."""
        with self._mutex:
            if self._current is None or self._current.pid != os.getpid():
                self._current = processes.Process(self._conf)
            return self._current
