# SPDX-License-Identifier: Apache-2.0
"""Back-off of one failing part, which doubles with each failure: pure."""

import dataclasses
import math
from typing import Any


@dataclasses.dataclass(slots=True)
class Backoff:
    """Back-off of a part, by a monotonic clock."""

    first: float = 1.0
    """Seconds of the first back-off; ``longest`` bounds the later ones."""
    longest: float = 30.0
    until: float = -math.inf
    """When the part is tried again."""
    seconds: float = 0.0
    reason: Any = None
    """What the part did, for those who are kept from trying it."""

    def extend(self, now: float, reason: Any = None) -> None:
        """Begin the next, longer back-off after a failure."""
        self.seconds = min(max(self.first, 2 * self.seconds), self.longest)
        self.until, self.reason = now + self.seconds, reason
