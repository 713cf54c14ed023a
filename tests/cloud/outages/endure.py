# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud endure``: progress, a table, an exit status."""

import argparse
from collections.abc import Sequence
from concurrent import futures
import contextlib
import time

from tests.cloud.integration import pages
from tests.cloud.outages import backbone
from tests.cloud.outages import endurance
from tests.cloud.outages import lane
from tests.cloud import servers

HEADER = ('Silent', 'Process', 'When', 'Memory, MiB', 'Descriptors', 'Threads',
          'Connections')
WIDTHS = (12, 12, 24, 14, 14, 12, 14)
SUMMARY = ('Silent', 'Calls', 'Answered 200', 'Others', 'Longest call, s',
           'Equal after, s')
INTERVAL = 60
# Short: a silent keystone is noticed only when a token has expired.
TOKEN_SECONDS = 240


def main(chosen: argparse.Namespace) -> int:
    """Silence each party on a lane of its own; return 0 if nothing grows.

    :raises CloudError: when the cloud cannot be started
    :raises Unavailable: when a server is not installed
    """
    servers.install()
    began = time.monotonic()

    def tell(text: str) -> None:
        print('%5.0f s  %s' % (time.monotonic() - began, text), flush=True)

    parties = chosen.party or list(endurance.PARTIES)
    with backbone.running(False, tell, TOKEN_SECONDS) as shared, \
            contextlib.ExitStack() as stack:
        tell('Creating %d lanes' % len(parties))
        found = [endurance.Endurance(
            stack.enter_context(lane.Lane(
                shared, number, hooks={lane.OURS: 'mirror'},
                cells=endurance.CELLS)), party, chosen.seconds)
            for number, party in enumerate(parties, start=1)]
        failed = _run(found, tell)
    results = [each.result for each in found
               if each.result.party not in failed]
    errors = ['%s: %s' % each for each in failed.items()]
    for each in results:
        errors += ['%s: %s' % (each.party, problem)
                   for problem in each.problems()]
    print('\n'.join([
        *_tables(results), *('WRONG: %s' % each for each in errors)]))
    return 1 if errors else 0


def _run(found: Sequence[endurance.Endurance], tell: backbone.Tell
         ) -> dict[str, str]:
    """Run all silences at the same time.

    :returns: party to the reason why its silence could not be run
    """
    with futures.ThreadPoolExecutor(len(found)) as pool:
        running = {pool.submit(endurance.attempt, each): each.result
                   for each in found}
        while futures.wait(running, INTERVAL).not_done:
            tell(', '.join('%s: %d calls' % (
                each.party, sum(each.statuses.values()))
                for each in running.values()))
    return {result.party: task.result()
            for task, result in running.items() if task.result()}


def _tables(results: Sequence[endurance.Endured]) -> list[str]:
    rows = []
    for each in results:
        for process in each.samples:
            rows += [(each.party, process, when, '%.0f' % sample.mib,
                      sample.descriptors, sample.threads, sample.connections)
                     for when, sample in _moments(each, process)]
    return [pages.figures('Calls', SUMMARY, (12, 12, 16, 24, 18, 18), [
        (each.party, sum(each.statuses.values()), each.statuses.get(200, 0),
         ' '.join('%s: %d' % (status or 'none', count) for status, count
                  in sorted(each.statuses.items()) if status != 200) or 'none',
         '%.1f' % each.longest, '%.1f' % each.healed) for each in results]),
        pages.figures('Use of resources', HEADER, WIDTHS, rows)]


def _moments(endured: endurance.Endured, process: str
             ) -> list[tuple[str, endurance.Sample]]:
    """Return the highest figures of some parts of a silence."""
    samples = endured.samples[process]
    return [('before', [each for each in samples if each.at < 0][-1]),
            *(('%.0f to %.0f %%' % (100 * part[0], 100 * part[1]),
               endured.worst(process, part))
              for part in (endurance.EARLY, endurance.MIDDLE, endurance.LATE)),
            ('after', samples[-1])]
