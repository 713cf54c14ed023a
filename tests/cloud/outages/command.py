# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud outages``: progress, a table, an exit status."""

import argparse
import contextlib
import importlib.metadata
import platform
import threading

from tests.cloud.outages import backbone
from tests.cloud.outages import cases
from tests.cloud.outages import lane
from tests.cloud.outages import measure
from tests.cloud.outages import page
from tests.cloud.outages import run
from tests.cloud import servers
from tests import databases

# Seconds; the selection of pairs has to be short.
INLINE_TIMEOUT, CUT = 5.0, 60.0
PAIRS_INLINE_TIMEOUT, PAIRS_CUT = 2.5, 8.0
PACKAGES = ('nova', 'openstack-placement', 'keystone', 'SQLAlchemy', 'oslo.db',
            'PyMySQL', 'psycopg2-binary')


def main(chosen: argparse.Namespace) -> int:
    """Measure the table; return 0 if no case breaks the promise.

    :raises CloudError: when the cloud cannot be started
    :raises Unavailable: when a server is not installed
    """
    servers.install()
    measured = run.Run(_plan(chosen))
    about: dict[str, str] = {}
    try:
        _measure(measured, chosen.jobs, about)
    finally:
        _summarize(measured)
    failures = measured.failures()
    if chosen.write and len(measured.results) == len(measured.plan.cases):
        page.write(measured.results, failures, [*about.items()])
    return 1 if failures else 0


def _plan(chosen: argparse.Namespace) -> run.Plan:
    parties = chosen.party
    if chosen.pairs and not parties:
        # The command "parts" has other cells that are bad.
        parties = [party for party in cases.PARTIES if party != 'other-cell']
    table = cases.table(parties, chosen.fault, chosen.moment, chosen.call)
    healthy = cases.healthy()
    if chosen.pairs:
        return run.Plan([*healthy, *cases.pairs(table)],
                        PAIRS_INLINE_TIMEOUT, PAIRS_CUT)
    return run.Plan([*healthy, *table], INLINE_TIMEOUT, CUT)


def _measure(measured: run.Run, jobs: int, about: dict[str, str]) -> None:
    plan = measured.plan
    with backbone.running(plan.uses_postgresql, measured.tell) as shared, \
            contextlib.ExitStack() as stack:
        about.update(_about(shared))
        measured.tell('Creating %d lanes' % jobs)
        measurers = [measure.Measurer(
            stack.enter_context(lane.Lane(
                shared, number + 1, plan.inline_timeout)), plan.cut)
            for number in range(jobs)]
        for case in cases.healthy():
            measured.attempt(measurers[0], case)
        if measured.errors:
            return
        measurers[0].check_wires()
        queue = run.Queue(plan.cases[len(cases.healthy()):])
        # An interrupt kills the processes that these threads wait for.
        threads = [threading.Thread(
            target=measured.work, args=(each, queue), daemon=True)
            for each in measurers]
        for each in threads:
            each.start()
        try:
            for each in threads:
                each.join()
        finally:
            queue.clear()
        measured.repeat(measurers[0])


def _about(shared: backbone.Backbone) -> dict[str, str]:
    """Return the versions of a run."""
    found = {'Python': platform.python_version(), **{
        name: importlib.metadata.version(name) for name in PACKAGES}}
    found['MariaDB'] = databases.execute(shared.mysql, 'SELECT VERSION()')[
        0][0]
    if shared.postgresql:
        found['PostgreSQL'] = databases.execute(
            shared.postgresql, 'SHOW server_version')[0][0]
    return found


def _summarize(measured: run.Run) -> None:
    """Print the table, and all details of each failure."""
    results, failures = measured.results, measured.failures()
    for case, each in results.items():
        print('%-55s %-18s %s' % (case, *page.cell(each).split(' / ')))
    for case, problems in failures.items():
        print('\n%s\n  %s' % (case, '\n  '.join(problems)))
        if case in results:
            print('  stock: %s\n  ours:  %s\n%s' % (
                results[case].stock, results[case].ours,
                results[case].ours.log))
    print('\n%d of %d cases measured, %d failed' % (
        len(results), len(measured.plan.cases), len(failures)), flush=True)
