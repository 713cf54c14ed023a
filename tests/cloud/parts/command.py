# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud parts``: progress, a table, an exit status."""

import argparse
import itertools

from tests.cloud.outages import backbone
from tests.cloud.outages import run
from tests.cloud import output
from tests.cloud.parts import judge
from tests.cloud.parts import measure
from tests.cloud.parts import page
from tests.cloud.parts import situations
from tests.cloud import servers


def main(arguments: argparse.Namespace) -> int:
    """Measure the situations; return 0 if no healthy host waits too long.

    :raises CloudError: when the cloud cannot be started
    :raises Unavailable: when a server is not installed
    """
    servers.install()
    lines = situations.table()
    if arguments.only:
        lines = [line for line in lines if str(line) in arguments.only]
    measured = run.Run(
        lines, lambda result: [
            *judge.problems(result.situation, result.figures),
            *result.problems],
        lambda result: ', '.join(
            '%s %s' % (name, judge.shown(seconds))
            for name, seconds in result.figures.items()),
        tell := output.teller())
    numbers = itertools.count(1)
    postgresql = any(line.journal == 'postgresql' for line in lines)
    with backbone.running(postgresql, tell) as shared:
        def attempt(line: situations.Situation) -> measure.Measured:
            return measure.measure(shared, next(numbers), line)

        for heavy, jobs in ((False, arguments.jobs), (True, 1)):
            measured.measure(
                run.Queue(line for line in lines if line.is_heavy == heavy),
                [(attempt, str)] * jobs)
        measured.repeat(attempt)
    print(page.table([*measured.results.values()]))
    return measured.summarize(lambda result: result.logs)
