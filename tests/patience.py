# SPDX-License-Identifier: Apache-2.0
"""How long tests wait, on a machine of any speed.

Only a failing test waits that long. What a test lets expire is not multiplied.
"""

import math
import os

VARIABLE = 'AGGREGATE_MIRROR_TIMEOUT_FACTOR'
FACTOR = float(os.environ.get(VARIABLE, 1))
# The highest ``[aggregate_mirror] inline_timeout``, where it must not expire.
LONGEST_CALL = 120.0


def seconds(limit: float) -> int:
    """Return a limit as this machine needs it, in whole seconds."""
    return math.ceil(limit * FACTOR)
