# SPDX-License-Identifier: Apache-2.0
"""The same function for many items, in turn or in parallel."""

from collections import abc
from typing import Any

Each = abc.Callable[[abc.Callable[[Any], Any], abc.Iterable[Any]], list[Any]]
"""Calls a function for each item; returns the results, in the same order."""


def in_turn(call: abc.Callable[[Any], Any], items: abc.Iterable[Any]
            ) -> list[Any]:
    """Return the results; no thread is started, as nova-api requires."""
    return [call(item) for item in items]
