# SPDX-License-Identifier: Apache-2.0
"""What each measurement may take, in seconds: pure."""

from collections import abc
import math

from tests.cloud.parts import situations
from tests import patience

INLINE_TIMEOUT = 5.0
SYNC_INTERVAL = 5.0
# More than a slow cell takes, and more than SYNC_INTERVAL and MARGIN.
CELL_TIMEOUT = 12.0
# Of the drain, of the full sync and of a call.
DRAIN, MARGIN, CALL = 5.0, 5.0, 1.0
# A full sync reads a slow cell to compare, and again to repair.
READS = 2
# Seconds after which nothing is waited for.
PATIENCE = patience.seconds(60)
ADD, DRAINED, FIRST_SYNC, LATER_SYNC, DELETE = (
    'add host', 'drain', 'first full sync', 'later full sync',
    'delete service')

Figures = abc.Mapping[str, float]
"""Measurement to its seconds; infinite if it was not seen."""


def limits(situation: situations.Situation) -> Figures:
    """Return the seconds that each measurement may take."""
    takes = READS * situations.SLOW * (situation.part == 'cell-slow')
    # A full sync that runs already may have compared too early.
    sync = max(SYNC_INTERVAL, takes) + takes + MARGIN
    silent = situation.part in ('cell-off', 'cell-silent')
    return {
        ADD: INLINE_TIMEOUT + CALL,
        DRAINED: math.inf if situation.part == 'table-locked' else DRAIN,
        FIRST_SYNC: sync + CELL_TIMEOUT * silent,
        LATER_SYNC: sync,
        DELETE: INLINE_TIMEOUT + CALL}


def problems(situation: situations.Situation, figures: Figures) -> list[str]:
    """List the measurements that took too long."""
    late = []
    for name, limit in limits(situation).items():
        limit *= patience.FACTOR
        if figures[name] > limit:
            late.append('%s: %s s instead of at most %g s' % (
                name, shown(figures[name]), limit))
    return late


def shown(seconds: float) -> str:
    """Return seconds for people."""
    if math.isnan(seconds):
        return 'n/a'
    return '> %g' % PATIENCE if math.isinf(seconds) else '%.1f' % seconds
