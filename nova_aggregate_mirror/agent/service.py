# SPDX-License-Identifier: Apache-2.0
"""Loops of the agent, and election of the leader by a lease."""

from collections import abc
import threading
import time

from oslo_log import log as logging

from nova_aggregate_mirror.agent import drain
from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror.agent import periodic_sync
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal import lease

LOG = logging.getLogger(__name__)
STEP_INTERVAL, IDLE_INTERVAL = 1.0, 2.0
"""Seconds between steps of a loop; longer while the journal is empty, or
another agent holds its lease."""
Audit = abc.Callable[[abc.Callable[[], bool]], None]
"""Step of the audit; its argument checks whether to stop."""


class Agent:
    """Agent with a thread for each loop: drain, lease, sync and audit."""

    def __init__(self, drain: drain.Drain, sync: periodic_sync.PeriodicSync,
                 lease: lease.Lease, binding: binding.Binding,
                 figures: metrics.Metrics, stop: threading.Event,
                 audit: Audit | None = None, observes: bool = False) -> None:
        self._drain, self._sync = drain, sync
        self._lease, self._binding = lease, binding
        self._figures, self._stop = figures, stop
        self._leader_role = (
            'is the leader in mode observe: it compares nova with placement, '
            'and changes nothing there' if observes else
            'is the leader: it drains the journal and runs the full syncs')
        self._role = ''
        self._holds = self._leads = self._bound = False
        """Whether it has the lease; whether it leads, for which the journal
        must be of this nova, too; whether the journal is known to be."""
        self._troubles = dict[str, exceptions.Failure | None].fromkeys(
            ('drain', 'lease'))
        """Why a loop cannot work, per loop; None when it can."""
        self._trouble_log = metrics.Lasting(
            LOG.error, 'The journal cannot be processed: %s',
            'The journal can be processed again')
        self._lock_log = metrics.Lasting(
            LOG.warning, 'This agent leads, but cannot write its lease: %s')
        self._mutex = threading.Lock()
        """Held to stop, to report whether it leads, and to report troubles."""
        self._steps = {'drain': self._drain_step, 'lease': self._lease_step,
                       'sync': self._sync_step}
        if audit:
            self._steps[metrics.AUDIT] = lambda: self._audit_step(audit)
        # A thread whose lock a library has patched may never be joined.
        self._ended = {name: threading.Event() for name in self._steps}

    def start(self) -> None:
        for name, step in self._steps.items():
            # The interpreter would wait for other threads, even if they hang.
            threading.Thread(target=self._loop, name=name, args=(name, step),
                             daemon=True).start()

    def stop(self, seconds: float) -> bool:
        """Finish the current steps, and release the lease.

        The current page of an audit, which only reads, is not waited for: that
        takes several services, and nothing is drained or synced meanwhile.

        :param seconds: how long the other loops are waited for; if one has
            not ended by then, it may still write, and the lease is kept
        :returns: whether all loops have ended
        """
        with self._mutex:
            self._stop.set()
            self._figures.set_leader(False)
        end = time.monotonic() + seconds
        late = []
        for name in sorted(self._ended.keys() - {metrics.AUDIT}):
            if not self._ended[name].wait(end - time.monotonic()):
                late.append(name)
        if late:
            LOG.warning('After %d s these loops have not ended: %s. The lease '
                        'is not released and will expire', seconds,
                        ', '.join(late))
        elif self._holds:
            exc = exceptions.failure_of(
                self._lease.release, exceptions.JournalUnavailable)
            if exc:
                LOG.info('The lease is not released and will expire: %s', exc)
        return all(ended.is_set() for ended in self._ended.values())

    def _loop(self, name: str, step: abc.Callable[[], float]) -> None:
        """Repeat a step, which returns the seconds until the next one."""
        try:
            while not self._stop.is_set():
                seconds = STEP_INTERVAL
                try:
                    seconds = step()
                except Exception:
                    # It must not end the loop, which is what repairs drift.
                    LOG.exception(
                        'The %s loop failed and will be retried', name)
                self._figures.beat(name)
                if seconds:
                    self._stop.wait(seconds)
        finally:
            self._ended[name].set()

    def _drain_step(self) -> float:
        seconds, trouble = STEP_INTERVAL, None
        try:
            if self._leads and self._drain.step():
                seconds = 0.0
            elif self._leads and self._drain.is_idle():
                seconds = IDLE_INTERVAL
        except exceptions.JournalUnavailable as exc:
            trouble = exc.failure
        self._report('drain', trouble)
        return seconds

    def _lease_step(self) -> float:
        leads, trouble = False, None
        try:
            if not self._bound:
                self._bound = self._binding.bind(self._leads)
            self._holds = self._lease.step()
            self._lock_log.log_failures(self._lease.locked)
            if self._holds and not self._leads:
                # Before it led, another nova may have bound an empty journal.
                self._bound = False
                self._bound = self._binding.bind(leads=True)
                self._sync.hasten()
            # Last: after an error above, this agent does not lead.
            leads = self._holds
        except exceptions.MirrorError as exc:
            trouble = exc.failure
        self._report('lease', trouble)
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

    def _audit_step(self, audit: Audit) -> float:
        if self._leads:
            audit(lambda: self._stop.is_set() or not self._leads)
        return STEP_INTERVAL

    def _log_role(self, leads: bool) -> None:
        """Log what this agent does, whenever that changes."""
        role, holder = self._role, self._lease.watched
        if leads:
            role = self._leader_role
        elif holder:
            role = ('stands by: the agent on %s holds the lease; this one '
                    'takes over when that releases it, or does not renew it '
                    'for %g seconds' % (holder.host, holder.seconds))
        elif self._leads:  # So it was, until this step.
            role = 'is no longer the leader'
        if role != self._role:
            LOG.info('This agent %s', role)
        self._role = role

    def _report(self, loop: str, trouble: exceptions.Failure | None) -> None:
        """Log a lasting problem once, whichever loop finds it first."""
        with self._mutex:
            self._troubles[loop] = trouble
            self._trouble_log.log_failures(*self._troubles.values())
