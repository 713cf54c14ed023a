# SPDX-License-Identifier: Apache-2.0
"""The ``mirror`` hook: record in the journal, call nova, converge in time.

It is long because the parts around nova's method share the state and the time
of their request. A failure is logged after its ``except`` block, inside which
oslo.log would append the exception to the message.
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
from nova_aggregate_mirror.hooks import contract
from nova_aggregate_mirror.hooks import processes
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror import source

LOG = logging.getLogger(__name__)

REMOVE = 'remove_host_from_aggregate'
LEFT = 'the agent mirrors its hosts later'
PATIENTLY = reconciler.Mode(patience=math.inf)
"""The call has a deadline: a slow provider may take all of it."""


@dataclasses.dataclass
class _ApiRequest:
    """State of an API request, shared by its operations on one host."""

    key: object
    budget: deadline.Budget
    nodes: frozenset[str] = frozenset()
    failure: exceptions.MirrorError | None = None
    """Why the journal is not used any more; None while it is used."""
    is_reported: bool = False


@dataclasses.dataclass(frozen=True)
class _RowState:
    """State of the row of an add or remove, from ``before`` to ``after``."""

    row: journal.Row
    recorded: bool = False
    """Whether the write of the row was confirmed."""
    may_exist: bool = False
    """Whether the row is, or may be, in the journal."""
    memberships: source.Memberships = dataclasses.field(default_factory=dict)
    """Compute node to its aggregates before nova's method."""


@dataclasses.dataclass(frozen=True)
class _Deletion:
    """State of a deletion, from ``before`` to ``after``."""

    uuid: str
    marked: bool
    """Whether the UUID is marked as deleted in the ledger."""


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

    def before(self, operation: contract.Operation
               ) -> _RowState | _Deletion | None:
        """Record the dirty host durably, or mark the aggregate as deleted.

        :returns: state for ``after``; None for the deletion of an aggregate
            that nova does not have or whose UUID could not be read, and if
            nova mirrors by itself
        """
        process, request = self._process(), self._request(operation)
        with request.budget.spending():
            if self._is_observer:
                process.announce()
                return None
            scope = self._scope(process, operation, request)
        with request.budget.spending(essential=True):
            return self._record(process, operation, request, scope)

    def after(self, operation: contract.Operation,
              state: _RowState | _Deletion | None) -> None:
        """Converge the host or hand its row over; or remove the aggregate."""
        if state is None:
            return
        request = self._request(operation)
        if isinstance(state, _Deletion):
            # What is not marked has no other attempt for every provider.
            with request.budget.spending(essential=not state.marked):
                self._remove(operation, state)
        else:
            self._finish_host(operation, state, request)

    def _request(self, operation: contract.Operation) -> _ApiRequest:
        """Return an API request's state; its first operation creates it."""
        key = operation.nova_request_id or operation
        request: _ApiRequest | None = getattr(self._local, 'request', None)
        if request is None or request.key != key:
            # The floor is for the journal when placement took all the time.
            request = self._local.request = _ApiRequest(key, deadline.Budget(
                self._conf.aggregate_mirror.inline_timeout,
                floor=self._process().limits.least + engines.HEALTHY,
                quick=engines.HEALTHY))
        return request

    def _record(self, process: processes.Process,
                operation: contract.Operation, request: _ApiRequest,
                scope: source.Scope | None) -> _RowState | _Deletion | None:
        """Record the row, or mark the deletion; see ``before``."""
        uuid = scope.aggregate_uuid if scope else ''
        if not operation.host:
            return self._mark(process, operation, uuid) if uuid else None
        row = process.rows.make(journal.Dirty(
            operation.host, request.nodes, operation.request_id))
        uuids = {uuid} if uuid else set[str]()
        may_exist = False
        if request.failure:
            process.ledger.defer(uuids)
        else:
            def record() -> None:
                if scope:
                    process.check_nova()
                process.rows.record(row, uuids)

            request.failure = exceptions.failure_of(
                record, exceptions.JournalUnavailable, exceptions.WrongNova)
            if not request.failure:
                memberships = (dict.fromkeys(scope.nodes, scope.members)
                               if scope else {})
                return _RowState(row, recorded=True, may_exist=True,
                                 memberships=memberships)
            may_exist = not request.failure.is_unwritten
        if not request.is_reported:
            request.is_reported = True
            LOG.error('%s: %s. This operation and the next ones of its '
                      'request are mirrored without the journal; %s.',
                      operation, request.failure, self._repair(operation))
        return _RowState(row, may_exist=may_exist)

    def _finish_host(self, operation: contract.Operation, state: _RowState,
                     request: _ApiRequest) -> None:
        """Converge the host and close its row, or hand the row over."""
        process = self._process()
        # This remains for what is no error of this package.
        error: exceptions.MirrorError | None = exceptions.MirrorError(
            'it ended unexpectedly')
        try:
            # What is not in the journal has no other attempt.
            with request.budget.spending(essential=not state.recorded):
                nodes = self._converge_and_close(process, state)
            for node in nodes:
                LOG.warning('%s: placement has no resource provider %s; '
                            'nova-compute creates it, and the next full sync '
                            'adds its aggregates', operation, node)
            error = None
        except exceptions.MirrorError as exc:
            error = exc
        finally:
            if error is not None:
                with request.budget.spending(essential=True):
                    failure = _hand_over(process, operation, state, error,
                                         self._repair(operation))
                request.failure = failure or request.failure

    def _scope(self, process: processes.Process,
               operation: contract.Operation, request: _ApiRequest
               ) -> source.Scope | None:
        """Read the scope and note its nodes; None if nova cannot be read."""
        failure, scope = None, None
        try:
            scope = process.source.scope(
                int(operation.aggregate_id), operation.host)
        except exceptions.Retriable as exc:
            failure = exc
        if scope is None:
            # A deletion is not marked then.
            repair = '' if operation.host else '; ' + self._repair(operation)
            LOG.warning('%s: %s', operation, str(failure) + repair)
            return None
        for _name, silence in sorted(scope.cells_down.items()):
            LOG.warning('%s: a cell was not read: %s', operation,
                        dataclasses.replace(silence, consequence=LEFT))
        for aggregate in sorted(scope.invalid_aggregates):
            # Nothing is removed from a host that is in any of these.
            if (operation.method == REMOVE
                    or aggregate.id == int(operation.aggregate_id)):
                LOG.warning('%s: it is not mirrored completely: %s: %s',
                            operation, aggregate.problem, aggregate.step)
        # A cell that is down may have nodes of the previous operation.
        request.nodes = scope.nodes | (
            request.nodes if scope.cells_down else frozenset())
        return scope

    def _mark(self, process: processes.Process, operation: contract.Operation,
              uuid: str) -> _Deletion:
        """Try to mark an aggregate as deleted by a user."""
        def mark() -> None:
            process.check_nova()
            process.ledger.mark(uuid)

        failure = exceptions.failure_of(
            mark, exceptions.JournalUnavailable, exceptions.WrongNova)
        if failure:
            LOG.error('%s: %s. Its deletion could not be marked in the '
                      'ledger; if placement is unavailable now, %s may remain '
                      'there; %s.', operation, failure, uuid,
                      self._repair(operation, uuid))
        return _Deletion(uuid, marked=failure is None)

    def _converge_and_close(self, process: processes.Process, state: _RowState
                            ) -> list[str]:
        """Converge and close; return the nodes without a provider yet."""
        process.breaker.check(recorded=state.recorded)
        start, dirty = process.breaker.now(), state.row.dirty
        with process.placement.request_id(dirty.request_id):
            if state.recorded:
                outcome = process.reconciler.converge_and_close(
                    [state.row], state.memberships)
            elif state.may_exist:
                # The row exists if only the answer to its COMMIT was lost.
                outcome = process.unrecorded.converge_and_close([state.row])
            else:
                outcome = process.unrecorded.converge([dirty], PATIENTLY)
        error = outcome.unfinished.get(dirty)
        # The host is converged, and the log has the failure of the journal.
        only_close_failed = not state.recorded and isinstance(
            error, exceptions.JournalUnavailable)
        if error and not only_close_failed:
            process.breaker.begin(outcome.outage, start)
            raise error
        return sorted(outcome.pending)

    def _remove(self, operation: contract.Operation, state: _Deletion) -> None:
        """Remove an aggregate that nova no longer has from every provider."""
        process = self._process()

        def remove() -> None:
            process.breaker.check(recorded=state.marked)
            start = process.breaker.now()
            with process.placement.request_id(operation.request_id):
                outcome = process.unrecorded.remove(state.uuid, PATIENTLY)
            error = next(iter(outcome.failed.values()), None)
            if error:
                process.breaker.begin(outcome.outage, start)
                raise error

        failure = exceptions.failure_of(remove)
        if failure and operation.raised:
            LOG.info('%s: nova raised %s in %s; %s is not compared with '
                     'placement yet: %s', operation, operation.raised,
                     operation.method, state.uuid, failure)
        elif failure:
            consequence = 'the next full sync removes %s' % state.uuid
            if not state.marked:
                consequence = '%s may remain there; %s' % (
                    state.uuid, self._repair(operation, state.uuid))
            LOG.warning('%s: its deletion is not mirrored to placement: %s; '
                        '%s', operation, failure, consequence)

    def _repair(self, operation: contract.Operation, uuid: str = '') -> str:
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


def _hand_over(process: processes.Process, operation: contract.Operation,
               state: _RowState, error: exceptions.MirrorError, repair: str
               ) -> exceptions.MirrorError | None:
    """Hand over the row that has this error; return why that failed."""
    consequence = 'it stays in the journal and is retried'
    failure: exceptions.MirrorError | None = None
    if not state.may_exist:
        consequence = 'it is not in the journal; ' + repair
    elif isinstance(error, exceptions.JournalLocked):
        # The hand-over would wait for the same lock.
        failure = error
    else:
        failure = exceptions.failure_of(
            lambda: process.rows.hand_over(state.row, str(error)),
            exceptions.JournalUnavailable)
        if failure:
            consequence = (
                'its journal row could not be updated: %s' % failure
                if state.recorded else 'it may be missing from the journal: '
                '%s; %s' % (failure, repair))
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
    return failure
