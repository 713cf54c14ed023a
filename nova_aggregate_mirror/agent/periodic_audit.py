# SPDX-License-Identifier: Apache-2.0
"""Periodic audits of the servers, with their log lines and metrics."""

from collections import abc
import time

from oslo_log import log as logging

from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror.audit import auditor
from nova_aggregate_mirror.audit import readers
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror.reconcile import problems

LOG = logging.getLogger(__name__)


class PeriodicAudit:
    def __init__(self, build: abc.Callable[[], readers.DatabaseAudit],
                 interval: float, figures: metrics.Metrics,
                 now: abc.Callable[[], float] = time.monotonic) -> None:
        self._build = build
        self._interval, self._figures = interval, figures
        self._now = now
        self._due = now()
        self._troubles = metrics.Lasting(
            LOG.warning, 'The audit of the servers is incomplete: %s',
            'The audit of the servers is complete again')
        self._misplaced_before = 0

    def step(self, stopping: abc.Callable[[], bool]) -> None:
        """Run an audit when it is due, and report its result."""
        start = self._now()
        if start < self._due:
            return
        self._due = start + self._interval
        totals = auditor.Totals()
        try:
            audit = self._build()
            totals = audit.totals
            for _page in audit.run():
                # An audit of many servers takes minutes.
                self._figures.beat(metrics.AUDIT)
                if stopping():
                    # It stays due: a new leader audits at once.
                    self._due = start
                    return
            troubles = audit.source.problems()
        except exceptions.MirrorError as exc:
            troubles = [problems.Problem.of(exc)]
        # That only some servers have no request (OK) is normal.
        troubles = troubles or [
            problem for problem in totals.unaudited()
            if problem.status != exit_status.OK]
        self._troubles.log_change(
            frozenset((problem.key, problem.text) for problem in troubles),
            '; '.join(map(str, troubles)))
        seconds = self._now() - start
        if troubles:
            self._figures.observe_audit('failure', seconds)
            return
        self._figures.observe_audit(
            'success', seconds, totals.servers, totals.by_rule)
        if totals.misplaced > self._misplaced_before:
            LOG.warning(
                'Audit: %s on a host that contradicts the request: run '
                '"nova-aggregate-mirror-manage placement audit_servers" for '
                'the list', plurals.count(
                    totals.misplaced, 'server is', 'servers are'))
        self._misplaced_before = totals.misplaced
