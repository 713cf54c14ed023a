# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud faults``: selected rows of the table."""

import argparse
from collections import abc
import contextlib
import itertools

from tests.cloud.faults import backbone
from tests.cloud.faults import calls
from tests.cloud.faults import lane as lanes
from tests.cloud.faults import report
from tests.cloud.faults import standing
from tests.cloud.faults import table
from tests.cloud import output
from tests.cloud import servers


def main(chosen: argparse.Namespace) -> int:
    """Measure rows; return 0 if none breaks the promise.

    :raises CloudError: when the cloud cannot be started
    :raises Unavailable: when a server is not installed
    """
    servers.install()
    tell = output.teller()
    outages = [row for row in chosen.rows if row.call]
    parts = [row for row in chosen.rows if row.moment == table.STANDING]
    if outages:
        outages = [*table.healthy(), *outages]
    results = report.Report([*outages, *parts], tell)
    postgresql = any(row.journal == 'postgresql' for row in chosen.rows)
    try:
        with backbone.running(postgresql, tell) as shared:
            numbers = itertools.count(1)
            if outages:
                _measure_calls(results, outages, shared, [
                    next(numbers) for _job in range(chosen.jobs)], tell)
            _measure_parts(results, parts, shared, numbers, chosen.jobs)
    finally:
        status = results.finish()
    if chosen.write:
        results.write()
    return status


def _measure_calls(results: report.Report, rows: abc.Sequence[table.Row],
                   shared: backbone.Backbone, numbers: abc.Sequence[int],
                   tell: output.Tell) -> None:
    """Measure calls on some lanes."""
    healthy: dict[str, calls.Answer] = {}
    tell('Creating %d lanes' % len(numbers))
    with contextlib.ExitStack() as stack:
        measurers = [calls.Measurer(stack.enter_context(
            lanes.Lane(shared, number)), healthy) for number in numbers]
        first = measurers[0]
        for row in rows[:len(table.CALLS)]:
            results.attempt(row, first.measure)
        if len(healthy) < len(table.CALLS):
            return
        first.check_wires()
        # A lane seldom changes its journal.
        results.measure(
            sorted(rows[len(table.CALLS):], key=lambda row: row.journal),
            [measurer.measure for measurer in measurers])
        results.repeat(rows, first.measure)


def _measure_parts(results: report.Report, rows: abc.Sequence[table.Row],
                   shared: backbone.Backbone, numbers: abc.Iterator[int],
                   jobs: int) -> None:
    """Measure bad parts, each on a lane of its own."""
    def measure(row: table.Row) -> report.Measured:
        return standing.measure(shared, next(numbers), row)

    for heavy in (False, True):
        results.measure([row for row in rows if row.is_heavy == heavy],
                        [measure] * (1 if heavy else jobs))
    results.repeat(rows, measure)
