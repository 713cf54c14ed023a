# SPDX-License-Identifier: Apache-2.0
"""What a situation consists of, and what it expects of an explanation."""

from collections import abc
import dataclasses
from typing import Protocol

from tests.cloud.situations import scene

NO_HOST = 'No valid host was found'


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What nova has done with a request."""

    hosts: frozenset[str]
    """Where the servers are; empty if nova found no host."""
    message: str = ''
    """What nova has told the user."""

    def __str__(self) -> str:
        return ', '.join(sorted(self.hosts)) or self.message


class Request(Protocol):
    """A request to nova-api that nova-scheduler has to find a host for."""

    def make(self) -> Outcome:
        """Make the request, again if it was made; wait for the outcome."""

    def arguments(self) -> abc.Sequence[str]:
        """Return the arguments that explain the last request."""


@dataclasses.dataclass(frozen=True)
class Round:
    """An explanation to check, and how its step is followed.

    :param host: the host whose explanation is checked, and that takes the
        server once the step is followed; empty if no host is explained
    :param action: a command that is run, by default the command in the step;
        or in words, what the situation does when it continues
    :param again: the request that succeeds in the end, if it is another
    :param takes: the host that takes the server in the end, if it is another
    :param wrong: the host that takes the server although it should not
    :param summary: a part of the summary, by default the reason
    :param refusal: a pattern of what nova tells, by default ``NO_HOST``
    :param error: whether the command explains nothing: the summary is a part
        of its error
    """

    request: Request
    host: str
    kind: str = ''
    reason: str = ''
    step: str = ''
    action: str = ''
    again: Request | None = None
    takes: str = ''
    wrong: str = ''
    summary: str = ''
    note: str = ''
    looked: str = ''
    refusal: str = ''
    error: bool = False
    anywhere: bool = False
    is_final: bool = False


Rounds = abc.Iterator[Round]
Play = abc.Callable[[scene.Scene], Rounds]
"""Sets up a situation and yields; then follows the step if it is no
command."""


@dataclasses.dataclass(frozen=True)
class Situation:
    """A row of the table."""

    name: str
    title: str
    play: Play
    scheduler: str = ''
    agents: bool = True
