# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud faults``: selected rows of the table."""

import argparse
import collections
from collections import abc
import contextlib
import functools
import itertools
import secrets

from tests.cloud import cloud
from tests.cloud.faults import backbone
from tests.cloud.faults import calls
from tests.cloud.faults import lane as lanes
from tests.cloud.faults import observing
from tests.cloud.faults import report
from tests.cloud.faults import silences
from tests.cloud.faults import soak
from tests.cloud.faults import standing
from tests.cloud.faults import table
from tests.cloud.faults import wiring
from tests.cloud import output
from tests.cloud import servers

CALL = 'call'
# Default seconds of random faults, and of long silences.
SOAKED, SILENT = 120, 3600
SOAKS = {table.RANDOM: soak.Soak, table.OBSERVED: observing.Observing}


def main(running: cloud.Cloud | None, chosen: argparse.Namespace) -> int:
    """Measure rows; return 0 if none breaks the promise."""
    servers.install()
    tell = output.teller()
    moments: dict[str, list[table.Row]] = collections.defaultdict(list)
    for row in chosen.rows:
        moments[CALL if row.call else row.moment].append(row)
    healthy = {CALL: table.healthy(), **{moment: [
        table.Row(table.NONE, table.NONE, moment)] for moment in SOAKS}}
    for moment in moments:
        moments[moment] = [*healthy.get(moment, []), *moments[moment]]
    rows = list(itertools.chain(*moments.values()))
    results = report.Report(rows, tell)
    try:
        for moment in SOAKS:
            if running is not None and moment in moments:
                _soak(results, running, moments[moment], chosen, tell)
        if moments.keys() & {CALL, table.STANDING}:
            _measure(results, chosen, moments, tell)
        if table.LONG in moments:
            _endure(results, chosen, moments[table.LONG], tell)
    finally:
        status = results.finish()
    if chosen.write:
        results.write()
    return status


def _soak(results: report.Report, running: cloud.Cloud,
          rows: abc.Sequence[table.Row], chosen: argparse.Namespace,
          tell: output.Tell) -> None:
    """Let faults occur at random on the full cloud."""
    moment, seed = rows[0].moment, chosen.seed or secrets.token_hex(4)
    print('Seed %s' % seed, flush=True)
    tell('Putting relays between each nova-api and what it uses')
    try:
        wiring.prepare(running, chosen.without, moment == table.OBSERVED)
        soaked = SOAKS[moment](running, rows[1:], seed, tell)
        for measured in soaked.run(chosen.seconds or SOAKED):
            results.add(measured)
    finally:
        # Every process that does not run.
        running.start(*(process.name for process in running.state.processes))


def _measure(results: report.Report, chosen: argparse.Namespace,
             moments: abc.Mapping[str, list[table.Row]], tell: output.Tell
             ) -> None:
    """Measure rows on lanes of small clouds."""
    postgresql = any(row.journal == 'postgresql' for row in chosen.rows)
    with backbone.running(postgresql, tell) as shared:
        if CALL in moments:
            tell('Creating %d lanes' % chosen.jobs)
            with contextlib.ExitStack() as stack:
                _measure_calls(results, moments[CALL], [
                    stack.enter_context(lanes.Lane(shared))
                    for _job in range(chosen.jobs)])
        parts = moments.get(table.STANDING, [])
        measure = functools.partial(standing.measure, shared)
        for heavy, jobs in ((False, chosen.jobs), (True, 1)):
            results.measure([row for row in parts if row.is_heavy == heavy],
                            [measure] * jobs)
        results.repeat(parts, measure)


def _measure_calls(results: report.Report, rows: abc.Sequence[table.Row],
                   measured: abc.Sequence[lanes.Lane]) -> None:
    """Measure calls on some lanes, first without a fault."""
    healthy: dict[str, calls.TimedAnswer] = {}
    callers = [calls.Caller(lane, healthy) for lane in measured]
    first, count = callers[0], len(table.CALLS)
    for row in rows[:count]:
        results.attempt(row, first.measure)
    if len(healthy) < count:
        return
    first.check_wires()
    # A lane seldom changes its journal.
    results.measure(sorted(rows[count:], key=lambda row: row.journal),
                    [caller.measure for caller in callers])
    results.repeat(rows, first.measure)


def _endure(results: report.Report, chosen: argparse.Namespace,
            rows: abc.Sequence[table.Row], tell: output.Tell) -> None:
    """Measure all rows at the same time."""
    with backbone.running(False, tell, silences.TOKEN_SECONDS) as shared:
        measure = functools.partial(
            silences.measure, shared, chosen.seconds or SILENT)
        results.measure(rows, [measure] * len(rows))
