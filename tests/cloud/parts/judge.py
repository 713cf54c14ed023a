# SPDX-License-Identifier: Apache-2.0
"""What each measurement may take, in seconds: pure."""

from collections import abc
import math
import re

from tests.cloud.parts import situations
from tests import patience

INLINE_TIMEOUT = 5.0
SYNC_INTERVAL = 5.0
# More than a slow cell takes, and more than SYNC_INTERVAL and MARGIN.
CELL_TIMEOUT = 12.0
# Of the drain, of the full sync, of a call and of a restarted agent.
DRAIN, MARGIN, CALL, RESTART = 5.0, 5.0, 1.0, 10.0
# Of a drain whose requests may take the time of a call.
LONG_DRAIN = INLINE_TIMEOUT + 1.5
# A full sync reads a slow cell to compare, and again to repair.
READS = 2
# As long as a sync interval, as by default.
REQUEST_TIMEOUT = SYNC_INTERVAL
# Seconds after which nothing is waited for.
PATIENCE = patience.seconds(60)
ADD, MIRRORED, DRAINED, FIRST_SYNC, LATER_SYNC, DELETE = (
    'add host', 'mirrored after it', 'drain', 'first full sync',
    'later full sync', 'delete service')
# Of some situations.
CORRECTED, RELOADED, ENDED = (
    'full sync after the correction', 'reload after SIGHUP',
    'end after SIGTERM')
LINE = re.compile(r' (?:WARNING|ERROR|CRITICAL) nova_aggregate_mirror\.\S+ ')
WORD = re.compile(r'[\w-]+')
# What was not tried was not observed.
NOT_TRIED = 'is not tried again yet'

Figures = abc.Mapping[str, float]
"""Measurement to its seconds; infinite if it was not seen."""


def limits(situation: situations.Situation) -> Figures:
    """Return the seconds that each measurement may take."""
    takes = READS * situations.SLOW * (situation.part == 'cell-slow')
    # A full sync that runs already may have compared too early.
    sync = max(SYNC_INTERVAL, takes) + takes + MARGIN
    silent = situation.part in ('cell-off', 'cell-silent')
    seconds = {
        ADD: INLINE_TIMEOUT + CALL,
        MIRRORED: LONG_DRAIN if situation.is_called else 0.0,
        DRAINED: math.inf if situation.part == 'table-locked' else
        LONG_DRAIN if situation.takes_requests else DRAIN,
        FIRST_SYNC: sync + CELL_TIMEOUT * silent,
        LATER_SYNC: sync,
        DELETE: INLINE_TIMEOUT + CALL,
        CORRECTED: sync,
        RELOADED: RESTART,
        ENDED: RESTART}
    return {name: limit * patience.FACTOR for name, limit in seconds.items()}


def problems(situation: situations.Situation, figures: Figures) -> list[str]:
    """List the measurements that took too long."""
    return ['%s: %s s instead of at most %g s' % (
        name, shown(figures[name]), limit)
        for name, limit in limits(situation).items()
        if figures.get(name, 0.0) > limit]


def misnaming(log: str, names: abc.Container[str], of_calls: bool = False
              ) -> list[str]:
    """Find warnings and errors that name what has not failed.

    :param names: hosts and providers that did nothing wrong
    :param of_calls: whether it is the log of nova-api, which may have to leave
        their operations to the agent
    :returns: a problem with the first such line, if any
    """
    lines = [line for line in log.splitlines()
             if LINE.search(line) and not (of_calls and NOT_TRIED in line)
             and any(word in names for word in WORD.findall(line))]
    return ['%d warnings name what has not failed, the first is: %s' % (
        len(lines), lines[0])] if lines else []


def shown(seconds: float) -> str:
    """Return seconds for people."""
    if math.isnan(seconds):
        return 'n/a'
    return '> %g' % PATIENCE if math.isinf(seconds) else '%.1f' % seconds
