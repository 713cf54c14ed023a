# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud chaos``: progress, a table, an exit status."""

import argparse
from collections.abc import Callable
import secrets
import sys
import time

from tests.cloud.chaos import report
from tests.cloud.chaos import soak
from tests.cloud.chaos import wiring
from tests.cloud import cloud

# Seconds between two progress lines if the output is not a terminal.
INTERVAL = 10


def run(running: cloud.Cloud, chosen: argparse.Namespace) -> int:
    """Soak a cloud; return 0 if placement equals nova and no answer is wrong.

    :raises CloudError: when it cannot be done
    """
    seed = chosen.seed or secrets.token_hex(4)
    tell = _teller()
    print('Seed %s' % seed, flush=True)
    tell('Putting relays between each nova-api and what it uses')
    try:
        wiring.prepare(running, chosen.without)
        soaked = soak.Soak(running, seed, chosen.faults, tell)
        try:
            soaked.run(chosen.seconds)
        finally:
            print('\n' + report.render(soaked.result), flush=True)
    finally:
        wiring.revive(running)
    return 0 if soaked.result.good else 1


def _teller() -> Callable[[str], None]:
    """Return a printer of progress: a line that updates, or periodic lines."""
    began, last = time.monotonic(), {'text': '', 'at': -float(INTERVAL)}
    terminal = sys.stdout.isatty()

    def tell(text: str) -> None:
        now = time.monotonic() - began
        counts = text[:1].isdigit()
        if counts and not terminal and now - last['at'] < INTERVAL:
            return
        last['at'] = now
        line = '%5.0f s  %s' % (now, text)
        if terminal and counts:
            print('\r\033[K%s' % line[:100], end='', flush=True)
        else:
            print('\r\033[K%s' % line if terminal else line, flush=True)

    return tell
