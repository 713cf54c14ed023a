# SPDX-License-Identifier: Apache-2.0
"""The agent's loops, and which of several agents leads."""

from collections.abc import Callable
import threading

from oslo_log import log as logging

from nova_aggregate_mirror import agent
from nova_aggregate_mirror.agent import drain
from nova_aggregate_mirror.agent import periodic_sync
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.journal import binding
from nova_aggregate_mirror.journal import lease

LOG = logging.getLogger(__name__)

DRAIN_INTERVAL = 1.0


class Agent:
    """The two loops, each in a thread of its own, and who may do what.

    :param drain: mirrors what the journal holds
    :param sync: compares everything
    :param lease: whose holder alone drains and syncs
    :param binding: keeps the agent of another nova from the lease
    :param stop: is set to end the loops, and seen within their steps
    """

    def __init__(self, drain: drain.Drain,
                 sync: periodic_sync.PeriodicSync, lease: lease.Lease,
                 binding: binding.Binding, figures: agent.Figures,
                 stop: threading.Event) -> None:
        self._drain = drain
        self._sync = sync
        self._lease = lease
        self._binding = binding
        self._figures = figures
        self._stop = stop
        self._leads = self._bound = False
        self._troubles = dict.fromkeys(('drain', 'lease'), '')
        """Why a loop can do nothing; empty when it can."""
        self._threads = [
            threading.Thread(target=self._loop, name=name, args=(name, step))
            for name, step in (('drain', self._drain_step),
                               ('lease', self._lease_step),
                               ('sync', self._sync_step))]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish the step in hand, and let another agent lead."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._leads:
            try:
                self._lease.leave()
            except exceptions.JournalUnavailable as exc:
                LOG.info('The lease runs out by itself: %s', exc)

    def _loop(self, name: str, step: Callable[[], bool]) -> None:
        while not self._stop.is_set():
            again = False
            try:
                again = step()
            except Exception:
                # One surprise must not end the process that repairs.
                LOG.exception('The %s loop failed; it goes on', name)
            self._figures.beat(name)
            if not again:
                self._stop.wait(DRAIN_INTERVAL)

    def _drain_step(self) -> bool:
        again, trouble = False, ''
        try:
            again = self._leads and self._drain.step()
        except exceptions.JournalUnavailable as exc:
            trouble = str(exc)
        self._say('drain', trouble)
        return again

    def _lease_step(self) -> bool:
        leads, trouble = False, ''
        try:
            if not self._bound:
                self._binding.bind()
                self._bound = True
            leads = self._lease.step()
        except exceptions.MirrorError as exc:
            trouble = str(exc)
        self._say('lease', trouble)
        if leads != self._leads:
            LOG.info('This agent %s', 'leads: it drains the journal and does '
                     'the full syncs' if leads else 'does not lead any more')
        self._leads = leads
        self._figures.leading(leads)
        return False

    def _sync_step(self) -> bool:
        if self._leads and self._sync.step() is not None:
            # Cells come and go one by one: the journal is bound to them again.
            self._bound = False
        return False

    def _say(self, loop: str, trouble: str) -> None:
        """Log what is wrong once, whichever loop finds it first."""
        before = any(self._troubles.values())
        self._troubles[loop] = trouble
        if trouble and not before:
            LOG.error('Nothing in the journal can be mirrored: %s', trouble)
        elif before and not any(self._troubles.values()):
            LOG.info('The journal can be used again')
