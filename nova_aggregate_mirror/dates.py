# SPDX-License-Identifier: Apache-2.0
"""Seconds since the epoch, to and from dates in UTC."""

import datetime
import time


def iso(seconds: float) -> str:
    """Render seconds since the epoch as ISO 8601."""
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(seconds))


def epoch(at: datetime.datetime | None) -> float | None:
    """Convert a time in UTC, as nova stores it, to seconds since the epoch."""
    return at.replace(tzinfo=datetime.UTC).timestamp() if at else None
