# SPDX-License-Identifier: Apache-2.0
"""The same function for many items, in turn or in parallel."""

from collections import abc
from typing import Protocol
from typing import TypeVar

Item = TypeVar('Item')
Result = TypeVar('Result')


class Each(Protocol):
    """Interface to call a function for each item."""

    def __call__(self, call: abc.Callable[[Item], Result],
                 items: abc.Iterable[Item]) -> list[Result]:
        """Return the results, in the order of the items."""


def in_turn(call: abc.Callable[[Item], Result], items: abc.Iterable[Item]
            ) -> list[Result]:
    """Return the results; no thread is started, as nova-api requires."""
    return [call(item) for item in items]
