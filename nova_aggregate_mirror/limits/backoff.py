# SPDX-License-Identifier: Apache-2.0
"""Back-off of one failing part, which doubles with each failure: pure."""

import dataclasses
import math

FIRST, LONGEST = 1.0, 30.0  # Seconds.


@dataclasses.dataclass(slots=True)
class Backoff:
    """Back-off of a part, by a monotonic clock."""

    until: float = -math.inf
    """When the part is tried again."""
    seconds: float = 0.0

    def extend(self, now: float) -> None:
        """Begin the next, longer back-off after a failure."""
        self.seconds = min(max(FIRST, 2 * self.seconds), LONGEST)
        self.until = now + self.seconds
