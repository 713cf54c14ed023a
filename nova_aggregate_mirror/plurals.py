# SPDX-License-Identifier: Apache-2.0
"""Counts in words, with nouns that agree in number."""

from collections import abc

SOME = 12  # Maximum number of names in a message.


def count(number: int, noun: str, plural: str = '') -> str:
    """Return "1 association" or "2 associations"; -s is the default plural."""
    name = noun if number == 1 else plural or noun + 's'
    return '%d %s' % (number, name)


def some(names: abc.Iterable[str], limit: int = SOME) -> str:
    """List the first few of the names, sorted, and count the others."""
    return first(sorted(names), limit)


def first(names: abc.Sequence[str], limit: int) -> str:
    """List the first names, and count the others."""
    text, others = ', '.join(names[:limit]), len(names) - limit
    return '%s and %d more' % (text, others) if others > 0 else text
