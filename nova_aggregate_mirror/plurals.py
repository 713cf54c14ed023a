# SPDX-License-Identifier: Apache-2.0
"""Counts in words, with nouns that agree in number."""

from collections import abc

SOME = 12
"""Maximum number of names in a message."""


def count(number: int, noun: str, plural: str = '') -> str:
    """Return "1 association" or "2 associations"; -s is the default plural."""
    return '%d %s' % (number, noun if number == 1 else plural or noun + 's')


def some(names: abc.Iterable[str], limit: int = SOME) -> str:
    """List the first few of the names, sorted, and count the others."""
    return first(sorted(names), limit)


def first(names: abc.Sequence[str], limit: int) -> str:
    """List the first names, and count the others."""
    text, others = ', '.join(names[:limit]), len(names) - limit
    return '%s and %d more' % (text, others) if others > 0 else text


def lines(texts: abc.Iterable[str], limit: int = SOME) -> list[str]:
    """Return the first texts, and a line that counts the others."""
    shown = list(texts)
    others = len(shown) - limit
    return shown if others <= 0 else [
        *shown[:limit], '... and %d more' % others]


def associations(added: int, removed: int, add: str = 'added',
                 remove: str = 'removed') -> str:
    """Return how many associations changed, without a part that is 0.

    :param add: words after the first number, such as "to add"
    :returns: "1 association added, 2 removed"; empty when both are 0
    """
    if not added:
        return '%s %s' % (
            count(removed, 'association'), remove) if removed else ''
    text = '%s %s' % (count(added, 'association'), add)
    return '%s, %d %s' % (text, removed, remove) if removed else text
