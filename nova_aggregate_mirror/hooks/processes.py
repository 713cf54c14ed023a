# SPDX-License-Identifier: Apache-2.0
"""Journal, source and placement of one process; logs errors as ``mirror``."""

import os

from oslo_config import cfg
from oslo_log import log as logging

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import journal
from nova_aggregate_mirror.journal import api_processes
from nova_aggregate_mirror.journal import nova_identity
from nova_aggregate_mirror.journal import store
from nova_aggregate_mirror.limits import engines
from nova_aggregate_mirror.limits import placement_breaker
from nova_aggregate_mirror.placement import client
from nova_aggregate_mirror.reconcile import reconciler
from nova_aggregate_mirror.source import database

LOG = logging.getLogger(__name__)


class Process:
    """Per-process objects, created again after a fork."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        options = conf.aggregate_mirror
        self.pid = os.getpid()
        self.limits = engines.Limits.of_call(
            options.inline_timeout, options.inline_backoff)
        self._presence = api_processes.Presence(options.mode)
        self.journal = store.Journal(
            conf, limits=self.limits, presence=self._presence)
        self.source = database.DatabaseSource(self.limits)
        self.placement = client.Client(conf, announces=True)
        self._binding = nova_identity.Binding(
            self.journal.database, self.source.cell_mappings,
            self.source.aggregates)
        self.reconciler = reconciler.Reconciler(
            self.journal.ledger, self.source, self.placement,
            self.journal.rows)
        self.unrecorded = reconciler.Reconciler(
            journal.Ledger(), self.source, self.placement, self.journal.rows)
        """For operations without a confirmed row; reads no ledger."""
        self.breaker = placement_breaker.PlacementBreaker(
            options.inline_backoff)

    def check_nova(self) -> None:
        """Raise WrongNova if the journal belongs to another nova.

        If nova cannot be read, that is logged.
        """
        failure = exceptions.failure_of(
            self._binding.check, exceptions.NovaUnavailable)
        if failure:
            LOG.warning('Could not check whether the journal belongs to this '
                        'nova: %s', failure)

    def announce(self) -> None:
        """Write the mode of this process to the journal, if that is due."""
        if not self._presence.begin_write():
            return
        failure = exceptions.failure_of(
            self._write_presence, exceptions.JournalUnavailable,
            exceptions.WrongNova)
        if failure:
            LOG.warning('The mode of this nova-api is missing in the journal, '
                        'where the agent expects it: %s', failure)

    def _write_presence(self) -> None:
        self.check_nova()
        self.journal.database.run(self._presence.write)
        self._presence.set_written()
