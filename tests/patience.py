# SPDX-License-Identifier: Apache-2.0
"""How long tests wait, on a machine of any speed.

Only a failing test waits that long. What a test lets expire is not multiplied.
"""

from collections import abc
import math
import os
import time
from typing import Any

VARIABLE = 'AGGREGATE_MIRROR_TIMEOUT_FACTOR'
FACTOR = float(os.environ.get(VARIABLE, 1))
# The highest ``[aggregate_mirror] inline_timeout``, where it must not expire.
LONGEST_CALL = 120.0


def seconds(limit: float) -> int:
    """Return a limit as this machine needs it, in whole seconds."""
    return math.ceil(limit * FACTOR)


LONG = seconds(60)


def wait(done: abc.Callable[[], Any], limit: float = LONG, poll: float = 0.1
         ) -> Any:
    """Wait until a value is true, for some seconds; return its last value."""
    deadline = time.monotonic() + limit
    while not (value := done()) and time.monotonic() < deadline:
        time.sleep(poll)
    return value
