# SPDX-License-Identifier: Apache-2.0
"""The command ``tools/cloud chaos``: progress, a table, an exit status."""

import argparse
import secrets

from tests.cloud.chaos import observed
from tests.cloud.chaos import report
from tests.cloud.chaos import soak
from tests.cloud.chaos import wiring
from tests.cloud import cloud
from tests.cloud import options
from tests.cloud import output


def run(running: cloud.Cloud, chosen: argparse.Namespace) -> int:
    """Soak a cloud; return 0 if placement equals nova and no answer is wrong.

    :raises CloudError: when it cannot be done
    """
    seed = chosen.seed or secrets.token_hex(4)
    tell, kinds = output.teller(), chosen.fault or options.FAULTS
    print('Seed %s' % seed, flush=True)
    tell('Putting relays between each nova-api and what it uses')
    try:
        wiring.prepare(running, chosen.without, chosen.mode)
        if chosen.mode == 'observe':
            watched = observed.Observed(running, seed, kinds, tell)
            watched.run(chosen.seconds)
            print('\n' + watched.render(), flush=True)
            return 0 if watched.good else 1
        soaked = soak.Soak(running, seed, kinds, tell)
        try:
            soaked.run(chosen.seconds)
        finally:
            print('\n' + report.render(soaked.result), flush=True)
    finally:
        wiring.revive(running)
    return 0 if soaked.result.good else 1
