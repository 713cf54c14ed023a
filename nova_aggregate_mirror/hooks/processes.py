# SPDX-License-Identifier: Apache-2.0
"""Journal, source and placement of one process."""

from collections import abc
import dataclasses
import math
import os
import time
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal import ledger
from nova_aggregate_mirror.journal import nova_identity
from nova_aggregate_mirror.journal import rows
from nova_aggregate_mirror.limits import backoff
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.reconcile import provider_writes
from nova_aggregate_mirror import source
from nova_aggregate_mirror.source import host_database

LOG = logging.getLogger(__name__)
REFUSED_PAUSE = 1.0
"""Seconds of back-off after an immediate failure: about the time that the
agent takes to detect that placement is available again."""


class Process:
    """Per-process objects, created again after a fork."""

    def __init__(self, conf: cfg.ConfigOpts,
                 now: abc.Callable[[], float] = time.monotonic) -> None:
        options = conf.aggregate_mirror
        self.pid = os.getpid()
        self.limits = engines.Limits.of_call(
            options.inline_timeout, options.inline_backoff)
        self._presence = rows.Presence(options.mode)
        self.database = engine.Database(conf, limits=self.limits)
        self.ledger = ledger.DatabaseLedger(self.database)
        self.rows = rows.Rows(
            self.database, self.ledger, presence=self._presence)
        self.source = host_database.HostSource(self.limits)
        self.placement = client.Client(conf, logs_first_answer=True)
        self._is_nova_checked = False
        # ``Any``: they lack methods that the fields of a context have. Only
        # drains and full syncs, which nova-api never makes, need these.
        parts: list[Any] = [self.ledger, self.source, self.placement]
        self.context = provider_writes.Context(*parts)
        self.without_ledger = provider_writes.Context(
            journal.Ledger(), *parts[1:])
        """For operations without a confirmed row; reads no ledger."""
        self._now = now
        seconds = options.inline_backoff
        self._hung = backoff.Backoff(first=seconds, longest=seconds)
        # Each call after a refusal would request a token from keystone.
        self._refused = backoff.Backoff(longest=min(seconds, REFUSED_PAUSE))

    def reconcile(self, call: abc.Callable[[], provider_writes.Outcome],
                  request_id: str, recorded: bool) -> provider_writes.Outcome:
        """Call unless placement just failed; begin a back-off if it fails.

        :param recorded: whether the operation is in the journal; if not, it is
            attempted unless placement hung, which would occupy every worker
        :raises NotTried: during the back-off, with its reason
        """
        pauses = [self._hung, self._refused] if recorded else [self._hung]
        for pause in pauses:
            if self._now() < pause.until:
                failure = pause.reason
                raise exceptions.NotTried(
                    'is not tried again yet: it %s' % failure.observation,
                    failure.party, failure.occasion, step=failure.step)
        began = self._now()
        with self.placement.request_id(request_id):
            result = call()
        error = result.outage
        # That a call had no time left is no fault of placement.
        if error and error.is_outage and not isinstance(
                error, exceptions.OutOfTime):
            # Other errors than a timeout may be slow, too: no route, or a slow
            # proxy. With a refused connection, others have taken the time.
            is_slow = (self._now() - began > REFUSED_PAUSE
                       and error.failure.kind != causes.REFUSED.kind)
            is_hung = is_slow or isinstance(error, exceptions.DeadlineExceeded)
            pause = self._hung if is_hung else self._refused
            pause.extend(self._now(), error.failure)
        return result

    def converge_and_close(self, row: journal.Row, before: source.Memberships,
                           recorded: bool) -> provider_writes.Outcome:
        """Converge the host of an operation, and close its row if in sync.

        :param before: provider to the aggregates that nova had for it before
            the operation; with the same after it, it is not written
        """
        mode = provider_writes.Mode(
            always=True, before=before, patience=math.inf)
        result = self.converge(row, mode, recorded)
        try:
            if result.skipped_writes and not self.are_settled(
                    result.skipped_writes, row):
                # Without ``before``, these providers are written, too.
                mode = dataclasses.replace(mode, before={})
                result.merge(self.converge(row, mode, recorded))
            if not result.unfinished:
                self.rows.close([row.id])
        except exceptions.JournalUnavailable as exc:
            result.hosts[row.dirty] = result.hosts[row.dirty] or exc
        return result

    def converge(self, row: journal.Row, mode: provider_writes.Mode,
                 recorded: bool) -> provider_writes.Outcome:
        """Converge the host of an operation."""
        parts = self.context if recorded else self.without_ledger
        return provider_writes.converge(parts, [row.dirty], mode)

    def are_settled(self, generations: abc.Mapping[str, int],
                    row: journal.Row) -> bool:
        """Check whether providers that were not written may stay so."""
        # Two operations, of which one reverted the other, may both have found
        # no change. The later one sees the row of the other, or its write: the
        # rows are read first, because a row is closed after its write.
        if self.rows.has_others(row):
            return False
        try:
            return all(self.placement.get(provider).generation == generation
                       for provider, generation in sorted(generations.items()))
        except exceptions.MirrorError:
            # The next converge has the same error and reports it.
            return False

    def write(self, call: abc.Callable[[], object], compares: bool = True
              ) -> exceptions.MirrorError | None:
        """Write to the journal; return why that failed, if so.

        :param compares: whether to compare the journal with nova before
        """
        def write() -> None:
            if compares:
                self.check_nova()
            call()

        return exceptions.failure_of(
            write, exceptions.JournalUnavailable, exceptions.WrongNova)

    def check_nova(self) -> None:
        """Raise WrongNova if the journal belongs to another nova.

        Raises JournalUnavailable, too. If nova is unavailable, it only logs.
        """
        def compare() -> None:
            self._is_nova_checked = nova_identity.check(
                self.database, self.source.cell_mappings,
                self.source.aggregates)

        failure = None if self._is_nova_checked else exceptions.failure_of(
            compare, exceptions.NovaUnavailable)
        if failure:
            LOG.warning('Could not check whether the journal belongs to this '
                        'nova: %s', failure)

    def announce(self) -> None:
        """Write the mode of this process to the journal, if that is due."""
        if not self._presence.begin_write():
            return
        failure = self.write(lambda: self.database.run(self._presence.write))
        if failure:
            LOG.warning('The mode of this nova-api is missing in the journal, '
                        'where the agent expects it: %s', failure)
        else:
            self._presence.set_written()
