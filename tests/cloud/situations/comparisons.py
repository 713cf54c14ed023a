# SPDX-License-Identifier: Apache-2.0
"""Random comparisons of nova with explanations, recorded in the cloud."""

import argparse
from collections import abc
import contextlib
import dataclasses
import json
import random
import sys
from typing import Any

from tests.cloud import cloud
from tests.cloud import forks
from tests.cloud.situations import scene
from tests.cloud.situations import schedulers

Compare = abc.Callable[[scene.Scene, int, random.Random], Any]
"""Makes the comparison with a number; returns a dataclass with ``equal``."""


def repeat(running: cloud.Cloud, chosen: argparse.Namespace, kind: type,
           compare: Compare, scheduler: abc.Callable[[int], str]) -> int:
    """Make the comparisons that a seed has left; return 0 if all are equal."""
    noun = chosen.command
    path = running.state.directory / ('%s-%s.json' % (noun, chosen.seed))
    comparisons = [kind(**each) for each in json.loads(
        path.read_text())] if path.exists() else []
    finished = {comparison.number for comparison in comparisons}
    running.forked = forks.Clients(running.programs)
    configurations = schedulers.Schedulers(running)
    try:
        for number in sorted(set(range(chosen.count)) - finished,
                             key=lambda number: (scheduler(number), number)):
            configurations.use(scheduler(number))
            with contextlib.ExitStack() as stack:
                comparison = compare(
                    scene.Scene(running, configurations, stack.callback),
                    number, random.Random('%s-%d' % (chosen.seed, number)))
            print(comparison, flush=True)
            comparisons.append(comparison)
            path.write_text(json.dumps(
                list(map(dataclasses.asdict, comparisons))))
    except scene.Failed as exc:
        print('%s: number %d: %s' % (noun, number, exc), file=sys.stderr)
        return 1
    finally:
        configurations.use('')
        running.forked.close()
    different = [each for each in comparisons if not each.equal]
    print('%d %s, %d different' % (len(comparisons), noun, len(different)))
    return 1 if different else 0
