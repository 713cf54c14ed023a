# SPDX-License-Identifier: Apache-2.0
"""The ``mirror`` hook: journal first, then nova, then placement, in time."""

import dataclasses
import os
import threading

from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import hooks
from nova_aggregate_mirror import journal as mirror_journal
from nova_aggregate_mirror import pauses
from nova_aggregate_mirror import reconciler
from nova_aggregate_mirror import report as mirror_report
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import database

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class _Kept:
    """What is dirty, and its row if it could be written."""

    dirty: mirror_journal.Dirty
    row: mirror_journal.Row | None = None
    unsure: mirror_journal.Row | None = None
    """A row that is perhaps in the journal although it was not written."""


class _Process:
    """What one process needs; a child of a fork makes its own."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.pid = os.getpid()
        self.journal = mirror_journal.Journal(conf)
        self.source = database.DatabaseSource()
        self.report = mirror_report.ReportClient(conf)
        self.reconciler = reconciler.Reconciler(
            self.journal, self.source, self.report)
        self.pauses = pauses.Pauses()


class Mirror:
    """Keeps placement equal to nova around each aggregate operation.

    :param conf: nova's configuration, with this package's options
    :raises MissingCredentials: when ``missing_credentials = fail``
    """

    replaces_mirroring = True

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._mutex = threading.Lock()
        self._made: _Process | None = None
        try:
            mirror_report.ReportClient(conf).check_credentials()
        except exceptions.MissingCredentials as exc:
            if conf.aggregate_mirror.missing_credentials == 'fail':
                raise
            LOG.warning('Host aggregates cannot be mirrored to placement, and '
                        'operations stay in the journal: %s', exc)

    def before(self, operation: hooks.Operation) -> _Kept:
        """Record what the operation may leave different, durably."""
        process = self._process()
        place = source.Place('')
        try:
            place = process.source.place(
                int(operation.aggregate_id), operation.host)
        except exceptions.Retriable as exc:
            LOG.warning('Aggregate %s, host %s (request %s): %s',
                        operation.aggregate_id, operation.host or '-',
                        operation.request_id, exc)
        for cell, reason in sorted(place.cells_down.items()):
            LOG.warning('Aggregate %s, host %s (request %s): cell %s did not '
                        'answer: %s', operation.aggregate_id, operation.host,
                        operation.request_id, cell, reason)
        uuid = place.aggregate_uuid
        dirty = mirror_journal.Dirty(
            host=operation.host, nodes=place.nodes,
            aggregate_uuid='' if operation.host else uuid,
            request_id=operation.request_id)
        if not operation.host and not uuid:
            return _Kept(dirty)
        try:
            return _Kept(dirty, process.journal.record(dirty, {uuid} - {''}))
        except exceptions.NotRecorded as exc:
            LOG.error('Aggregate %s, host %s (request %s): %s. The operation '
                      'is mirrored without the journal; if that fails, run '
                      '"nova-aggregate-mirror-manage placement '
                      'sync_aggregates".', operation.aggregate_id,
                      operation.host or '-', operation.request_id, exc)
            return _Kept(dirty, unsure=exc.row)

    def after(self, operation: hooks.Operation, kept: _Kept) -> None:
        """Converge as nova is now, or hand the row over."""
        dirty, row = kept.dirty, kept.row
        if not dirty.host and not dirty.aggregate_uuid:
            return
        process = self._process()
        error: exceptions.MirrorError | str = 'the operation was interrupted'
        closed = False
        try:
            error = self._converge(process, dirty, row)
            closed = not error
        except exceptions.MirrorError as exc:
            error = exc
        finally:
            if kept.unsure:
                process.journal.forsake(kept.unsure)
            if not closed:
                self._leave(process, operation, row, error)

    def _converge(self, process: _Process, dirty: mirror_journal.Dirty,
                  row: mirror_journal.Row | None
                  ) -> exceptions.MirrorError | str:
        """Why placement may not be right now; empty when it is."""
        reason = process.pauses.reason(recorded=row is not None)
        if reason:
            return 'not tried, because %s' % reason
        began = process.pauses.now()
        options = self._conf.aggregate_mirror
        with process.report.deadline(options.inline_timeout), \
                process.report.request_id(dirty.request_id):
            if row is None:
                # There is nothing to close, and an ERROR said so: a ledger
                # that cannot be read either is no news.
                outcome = process.reconciler.converge([dirty])
                if isinstance(outcome.unfinished.get(dirty),
                              exceptions.JournalUnavailable):
                    return ''
            else:
                outcome = process.reconciler.close([row])
        error = outcome.unfinished.get(dirty, '')
        process.pauses.begin(error, began, options.inline_backoff)
        return error

    def _leave(self, process: _Process, operation: hooks.Operation,
               row: mirror_journal.Row | None,
               error: exceptions.MirrorError | str) -> None:
        where = 'the journal keeps it until placement is right'
        try:
            if row is None:
                where = 'it is not in the journal either'
            else:
                process.journal.hand_over(row.id, str(error))
        except exceptions.JournalUnavailable as exc:
            where = 'its journal row stays as it was written: %s' % exc
        LOG.warning('Aggregate %s, host %s (request %s): %s did not reach '
                    'placement: %s; %s', operation.aggregate_id,
                    operation.host or '-', operation.request_id,
                    operation.method, error, where)

    def _process(self) -> _Process:
        with self._mutex:
            if self._made is None or self._made.pid != os.getpid():
                self._made = _Process(self._conf)
            return self._made
