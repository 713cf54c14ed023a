# SPDX-License-Identifier: Apache-2.0
"""The moves that nova takes for a server in a state: pure."""

LIVE, COLD, EVACUATION = 'live-migrate', 'migrate', 'evacuate'

STATES = {LIVE: ('active', 'paused'), COLD: ('active', 'stopped'),
          EVACUATION: ('active', 'stopped', 'error')}
"""Move to the ``vm_state`` of the servers that nova-api takes it for:
``API.live_migrate``, ``API.resize`` and ``API.evacuate``."""


def of_state(state: str) -> str:
    """Return the move for a server in a state; empty if nova takes none."""
    return next((move for move in (LIVE, COLD) if state in STATES[move]), '')
