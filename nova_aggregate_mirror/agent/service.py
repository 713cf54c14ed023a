# SPDX-License-Identifier: Apache-2.0
"""Loops of the agent, and election of the leader by a lease."""

from collections import abc
import threading
import time

from oslo_log import log as logging

from nova_aggregate_mirror.agent import drain
from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror.agent import periodic_audit
from nova_aggregate_mirror.agent import periodic_sync
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import lease
from nova_aggregate_mirror.journal import nova_identity

LOG = logging.getLogger(__name__)

STEP_INTERVAL, IDLE_INTERVAL = 1.0, 2.0
"""Seconds between steps of a loop; longer while the journal is empty, or
another agent holds its lease."""


class Agent:
    """Agent with a thread for each loop: drain, lease, sync and audit."""

    def __init__(self, drain: drain.Drain,
                 sync: periodic_sync.PeriodicSync, lease: lease.Lease,
                 binding: nova_identity.Binding, figures: metrics.Metrics,
                 stop: threading.Event,
                 audit: periodic_audit.PeriodicAudit | None = None,
                 observes: bool = False) -> None:
        self._drain = drain
        self._sync = sync
        self._lease = lease
        self._binding = binding
        self._figures = figures
        self._stop = stop
        self._audit = audit
        self._leader_role = (
            'is the leader in mode observe: it compares nova with placement, '
            'and changes nothing there' if observes else
            'is the leader: it drains the journal and runs the full syncs')
        self._role = ''
        self._leads = self._bound = False
        self._troubles = dict.fromkeys(('drain', 'lease'), '')
        """Why a loop cannot work, per loop; empty when it can."""
        self._mutex = threading.Lock()
        """Held to stop, and to report who leads to the metrics."""
        steps = {'drain': self._drain_step, 'lease': self._lease_step,
                 'sync': self._sync_step}
        if audit:
            steps[periodic_audit.LOOP] = self._audit_step
        # The interpreter waits for other threads when it ends, however long
        # one hangs.
        self._threads = [
            threading.Thread(target=self._loop, name=name, args=(name, step),
                             daemon=True) for name, step in steps.items()]
        # A thread may never be joined if a library has patched its lock.
        self._ended = {name: threading.Event() for name in steps}

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float) -> bool:
        """Finish the current steps, and release the lease.

        The current page of an audit is not waited for: several services are
        read for it, and nothing is drained or synced meanwhile. An audit only
        reads.

        :param seconds: how long the other loops are waited for; if one has
            not ended then, it may still write, and the lease is kept
        :returns: whether all loops have ended
        """
        with self._mutex:
            self._stop.set()
            self._figures.set_leader(False)
        end = time.monotonic() + seconds
        late = [name for name, ended in self._ended.items()
                if name != periodic_audit.LOOP
                and not ended.wait(max(0.0, end - time.monotonic()))]
        if late:
            LOG.warning('After %d s these loops have not ended: %s. The lease '
                        'is not released and will expire', seconds,
                        ', '.join(late))
        elif self._leads:
            self._release()
        return all(ended.is_set() for ended in self._ended.values())

    def _release(self) -> None:
        try:
            self._lease.release()
        except exceptions.JournalUnavailable as exc:
            LOG.info('The lease is not released and will expire: %s', exc)

    def state(self) -> dict[str, str]:
        """Describe the agent for a report, without waiting for anything."""
        return {
            'leader': str(self._leads),
            'journal belongs to this nova': str(self._bound),
            **{'trouble of the %s loop' % name: trouble or 'none'
               for name, trouble in self._troubles.items()},
            **{'thread of the %s loop' % thread.name:
               'alive' if thread.is_alive()
               and not self._ended[thread.name].is_set() else 'ended'
               for thread in self._threads}}

    def _loop(self, name: str, step: abc.Callable[[], float]) -> None:
        """Repeat a step until the stop; then set the event of the loop."""
        try:
            self._repeat(name, step)
        finally:
            self._ended[name].set()

    def _repeat(self, name: str, step: abc.Callable[[], float]) -> None:
        """Repeat a step, which returns the seconds until the next one."""
        while not self._stop.is_set():
            seconds = STEP_INTERVAL
            try:
                seconds = step()
            except Exception:
                # An unexpected error must not end the process that repairs.
                LOG.exception('The %s loop failed and will be retried', name)
            self._figures.beat(name)
            if seconds:
                self._stop.wait(seconds)

    def _drain_step(self) -> float:
        seconds, trouble = STEP_INTERVAL, ''
        try:
            if self._leads:
                seconds = (0.0 if self._drain.step() else IDLE_INTERVAL
                           if self._drain.is_idle() else STEP_INTERVAL)
        except exceptions.JournalUnavailable as exc:
            trouble = str(exc)
        self._log_trouble('drain', trouble)
        return seconds

    def _lease_step(self) -> float:
        leads, trouble = False, ''
        try:
            if not self._bound:
                self._bound = self._binding.bind(self._leads)
            has_lease = self._lease.step()
            if has_lease and not self._leads:
                # Another nova may have bound a journal without content since.
                self._bound = False
                self._bound = self._binding.bind(leads=True)
            leads = has_lease
        except exceptions.MirrorError as exc:
            trouble = str(exc)
        self._log_trouble('lease', trouble)
        self._log_role(leads)
        self._leads = leads
        with self._mutex:
            # After a reload, the next agent reports to the same metrics.
            if not self._stop.is_set():
                self._figures.set_leader(leads)
        if trouble:
            return STEP_INTERVAL
        return self._lease.renewal if leads else IDLE_INTERVAL

    def _sync_step(self) -> float:
        if self._leads and self._sync.step() is not None:
            # Cells may have been added or deleted: bind the journal again.
            self._bound = False
        return STEP_INTERVAL

    def _audit_step(self) -> float:
        if self._leads and self._audit:
            self._audit.step(
                lambda: self._stop.is_set() or not self._leads)
        return STEP_INTERVAL

    def _log_role(self, leads: bool) -> None:
        """Log what this agent does, whenever that changes."""
        role, other = self._role, self._lease.watched
        if leads:
            role = self._leader_role
        elif other:
            role = ('stands by: the agent on %s holds the lease; this one '
                    'takes over when that releases it, or does not renew it '
                    'for %g seconds' % (other.host, other.seconds))
        elif self._leads:
            role = 'is no longer the leader'
        if role != self._role:
            LOG.info('This agent %s', role)
        self._role = role

    def _log_trouble(self, loop: str, trouble: str) -> None:
        """Log a lasting problem once, whichever loop finds it first."""
        before = any(self._troubles.values())
        self._troubles[loop] = trouble
        if trouble and not before:
            LOG.error('The journal cannot be processed: %s', trouble)
        elif before and not any(self._troubles.values()):
            LOG.info('The journal can be processed again')
