# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud situations``: progress, a table, a status."""

import argparse
import sys

from tests.cloud import cloud
from tests.cloud import forks
from tests.cloud import observer
from tests.cloud.situations.cases import aggregates
from tests.cloud.situations.cases import edges
from tests.cloud.situations.cases import filters
from tests.cloud.situations.cases import moves
from tests.cloud.situations.cases import networks
from tests.cloud.situations.cases import resources
from tests.cloud.situations import page
from tests.cloud.situations import run

INVALID = 2
SITUATIONS = (*resources.SITUATIONS, *aggregates.SITUATIONS,
              *filters.SITUATIONS, *networks.SITUATIONS, *moves.SITUATIONS,
              *edges.SITUATIONS, *moves.TOGETHER)
"""In the order of the table."""


def main(running: cloud.Cloud, chosen: argparse.Namespace) -> int:
    """Play the situations; return 0 if all take their expected course."""
    known = {one.name: one for one in SITUATIONS}
    unknown = sorted(set(chosen.only) - known.keys())
    if unknown:
        print('Situation %s does not exist; situations: %s' % (
            unknown[0], ', '.join(known)), file=sys.stderr)
        return INVALID
    running.forked = forks.Clients(running.programs)
    played = run.Run(running)
    try:
        played.play([known[name] for name in chosen.only or known])
    finally:
        running.forked.close()
        if chosen.write:
            page.update(played.results, list(known))
    rows = observer.compared(running, {})
    if not all(row.equal for row in rows):
        print('Placement differs from nova in the end:\n'
              + observer.table(rows))
        return 1
    count = len(played.results)
    failed = len([one for one in played.results if one.problems])
    print('%d situations, %d as expected, %d failed' % (
        count, count - failed, failed))
    return 1 if failed else 0
