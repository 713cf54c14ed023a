# SPDX-License-Identifier: Apache-2.0
"""A situation: its access to the cloud, its rounds, and its clean-up."""

from collections import abc
import dataclasses
import shlex
from typing import Any
from typing import Protocol
import uuid

from tests.cloud import cloud
from tests.cloud.situations import schedulers
from tests import patience

MANAGE = 'nova-aggregate-mirror-manage'
NO_HOST = 'No valid host was found'
PATIENCE = patience.seconds(180)
POLL = 0.5


class Failed(Exception):
    """A situation does not take its expected course; the text says why."""


class Scene:
    """The cloud during a situation or a test.

    :param used: nova-scheduler, which a situation may restart
    :param later: registers a function that is called with arguments at the
        end, in reverse order, to restore the cloud
    """

    def __init__(self, running: cloud.Cloud, used: schedulers.Schedulers,
                 later: abc.Callable[..., Any]) -> None:
        self.cloud = running
        self.nova: Any = running.nova()
        self.placement: Any = running.placement()
        self.schedulers = used
        self.later = later

    def enter(self, context: Any) -> Any:
        """Enter a context, such as a fixture, until the end."""
        entered = context.__enter__()
        self.later(context.__exit__, None, None, None)
        return entered

    def name(self, kind: str) -> str:
        """Return a name for something of this situation alone."""
        return '%s-%s' % (kind, uuid.uuid4().hex[:8])

    def wait_until(self, done: abc.Callable[[], bool], what: str) -> None:
        """Wait for a result of other processes."""
        if not patience.wait(done, PATIENCE, POLL):
            raise Failed('%s: not within %s s' % (what, PATIENCE))

    def run(self, command: str | abc.Sequence[str]) -> tuple[int, str, str]:
        """Run a command of an operator.

        The commands of this package get the configuration of nova-scheduler.

        :returns: its exit status, standard output and standard error
        """
        argv = shlex.split(command) if isinstance(command, str) else [*command]
        if argv[0] == MANAGE:
            files = [self.cloud.config.nova_conf, *self.schedulers.options]
            argv[1:1] = ['--config-file=%s' % each for each in files]
        return self.cloud.run(*argv)

    def check(self, command: str | abc.Sequence[str]) -> None:
        """Run a command that has to succeed."""
        status, out, err = self.run(command)
        if status:
            end = (out + err)[-500:]
            raise Failed('%s exits with %d: %s' % (command, status, end))


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
Play = abc.Callable[[Scene], Rounds]
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
