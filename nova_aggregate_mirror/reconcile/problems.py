# SPDX-License-Identifier: Apache-2.0
"""What an operator is told of: what is wrong, and the one next step."""

from collections import abc
import dataclasses
import itertools
from typing import Any

from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror import exit_status
from nova_aggregate_mirror import plurals
from nova_aggregate_mirror import source

MOST_LISTED = 10
"""Problems of one kind that are listed each."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """Something that is not mirrored, compared or audited."""

    subject: str
    """What it is about: a host, a provider, a cell."""
    text: str
    """What was observed, or what the failure leaves undone."""
    step: str = ''
    """The next step; empty if the failure has it."""
    status: int = 0
    """Exit status of a command that ends with this problem."""
    failure: exceptions.Failure | None = None

    @classmethod
    def of(cls, error: exceptions.MirrorError, subject: str = '',
           text: str = '', unwritten: bool = False) -> 'Problem':
        """Return the problem for an error; see ``exit_status.of``."""
        return cls(subject, text, failure=error.failure,
                   status=exit_status.of(error, unwritten))

    def __str__(self) -> str:
        texts = self.text, str(self.failure or ''), self.step
        return ': '.join(filter(None, texts))

    @property
    def key(self) -> tuple[str, str]:
        """What several may share: kind and party of the failure, or a step."""
        return self.failure.key if self.failure else (self.step, '')


def of_cells(down: source.Down, consequence: str) -> list[Problem]:
    """Describe cells that did not answer, and what follows from that."""
    return [
        Problem(subject=name, text='', status=exit_status.NO_NODE,
                failure=dataclasses.replace(failure, consequence=consequence))
        for name, failure in sorted(down.items())]


def document(failure: exceptions.Failure, **subject: str) -> dict[str, Any]:
    """Return a failure of a subject for a program."""
    return {**subject, 'reason': str(failure), 'kind': failure.kind,
            'who': failure.party, 'step': failure.step}


def documents(down: source.Down) -> list[dict[str, Any]]:
    """Return the cells that did not answer for a program."""
    return [document(failure, cell=cell)
            for cell, failure in sorted(down.items())]


def shortened(problems: abc.Iterable[Problem], listing: str,
              most: int = MOST_LISTED) -> list[list[Problem]]:
    """Group problems of one kind; count those after the first of a group.

    :param problems: those of one kind after one another
    :param listing: a command that lists all
    """
    groups = []
    for key, group in itertools.groupby(
            problems, key=lambda problem: problem.key):
        same = list(group)
        # Without failure and step, nothing is shared: each is listed.
        if any(key) and len(same) > most:
            others = '... and %d more of the same kind; %s lists all' % (
                len(same) - most, listing)
            same[most:] = [Problem('', others)]
        groups.append(same)
    return groups


def lines(problems: abc.Iterable[Problem], listing: str) -> list[str]:
    """Return a line for each, but few of those of one kind."""
    shown = itertools.chain.from_iterable(shortened(problems, listing))
    return list(map(str, shown))


def owner(nova: source.Nova) -> str:
    """Say what a provider may be: a compute node of what was not read."""
    return 'may be a compute node of %s' % plurals.some(nova.unread)


def unread(nova: source.Nova) -> str:
    """Say which cells a count of compute nodes leaves out, if any."""
    down = len(nova.cells_down)
    if not down:
        return ''
    # The number of cells is 0 if unknown.
    cells = plurals.count(max(nova.cells, down), 'cell')
    return ' (%s, %s not read)' % (cells, 'one' if down == 1 else down)
