# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud outages``: progress, a table, an exit status."""

import argparse
from collections import abc
import contextlib

from tests.cloud.outages import backbone
from tests.cloud.outages import cases
from tests.cloud.outages import judge
from tests.cloud.outages import lane
from tests.cloud.outages import measure
from tests.cloud.outages import page
from tests.cloud.outages import run
from tests.cloud import output
from tests.cloud import servers

# Seconds; the selection of pairs has to be short.
INLINE_TIMEOUT, CUT = 5.0, 60.0
PAIRS_INLINE_TIMEOUT, PAIRS_CUT = 2.5, 8.0


def main(chosen: argparse.Namespace) -> int:
    """Measure the table; return 0 if no case breaks the promise.

    :raises CloudError: when the cloud cannot be started
    :raises Unavailable: when a server is not installed
    """
    servers.install()
    tell, healthy = output.teller(), cases.healthy()
    table, inline_timeout, cut = _plan(chosen)

    def problems(result: measure.Measured) -> list[str]:
        return judge.problems(result, {
            case.call: measured.results[case].stock for case in healthy
            if case in measured.results}, inline_timeout)

    measured = run.Run(
        [*healthy, *table], problems, lambda result: (
            '%s, equal after %.1f s' % (page.cell(result), result.healed)),
        tell)
    postgresql = any(case.journal == 'postgresql' for case in table)
    try:
        with backbone.running(postgresql, tell) as shared, \
                contextlib.ExitStack() as stack:
            tell('Creating %d lanes' % chosen.jobs)
            measurers = [measure.Measurer(stack.enter_context(lane.Lane(
                shared, number + 1, inline_timeout)), cut)
                for number in range(chosen.jobs)]
            _measure(measured, table, measurers)
    finally:
        for case, result in measured.results.items():
            print('%-55s %-18s %s' % (case, *page.cell(result).split(' / ')))
        status = measured.summarize(lambda result: (
            '  stock: %s\n  ours:  %s\n%s' % (
                result.stock, result.ours, result.ours.log)))
    if chosen.write and len(measured.results) == len(measured.cases):
        page.write(measured.results)
    return status


def _plan(chosen: argparse.Namespace) -> tuple[list[cases.Case], float, float]:
    """Return the cases, ``inline_timeout`` and the limit of a call."""
    parties = chosen.party
    if chosen.pairs and not parties:
        # The command "parts" has other cells that are bad.
        parties = [party for party in cases.PARTIES if party != 'other-cell']
    table = cases.table(parties, chosen.fault, chosen.moment, chosen.call)
    if chosen.pairs:
        return cases.pairs(table), PAIRS_INLINE_TIMEOUT, PAIRS_CUT
    return table, INLINE_TIMEOUT, CUT


def _measure(measured: run.Run, table: abc.Sequence[cases.Case],
             measurers: abc.Sequence[measure.Measurer]) -> None:
    first = measurers[0]
    for case in cases.healthy():
        measured.attempt(case, first.measure)
    if measured.errors:
        return
    first.check_wires()
    measured.measure(run.Queue(table), [
        (each.measure, lambda each=each: each.journal) for each in measurers])
    measured.repeat(first.measure)
