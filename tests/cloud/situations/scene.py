# SPDX-License-Identifier: Apache-2.0
"""A situation: its access to the cloud, explanations and clean-up."""

from collections import abc
import dataclasses
import json
import re
import shlex
from typing import Any
from typing import Protocol
import uuid

from tests.cloud import cloud
from tests.cloud import processes
from tests.cloud.situations import schedulers
from tests import patience

MANAGE = 'nova-aggregate-mirror-manage'
NO_HOST = 'No valid host was found'
PATIENCE = patience.seconds(180)
POLL = 0.5
CELL_DOWN = 5
# A command ends where a sentence continues.
_COMMAND = re.compile(r'(?:openstack|%s) [^,;"]*' % MANAGE)


class Failed(processes.CloudError):
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
        """Run an operator's command; return its exit status and outputs.

        The commands of this package get the configuration of nova-scheduler.
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

    def explain(self, arguments: abc.Sequence[str], error: bool = False
                ) -> 'Explanation':
        """Explain a request with the real command.

        :param error: whether it cannot explain what is asked; the summary is
            its error then
        """
        status, out, err = self.run([
            MANAGE, 'scheduling', 'explain', *arguments, '--format', 'json'])
        end = err[-500:]
        if error and not out:
            *_rest, summary = err.strip().splitlines()
            return Explanation(status, {'summary': summary, 'remarks': [],
                                        'notes': [], 'not_looked_at': ''})
        if error or status not in (0, 1, CELL_DOWN):
            raise Failed('explain exits with %d: %s' % (status, end))
        try:
            return Explanation(status, json.loads(out))
        except ValueError:
            raise Failed('explain prints %r: %s' % (out[:500], end))


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


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The document that the command has printed, and its exit status."""

    status: int
    document: dict[str, Any]

    @property
    def summary(self) -> str:
        return str(self.document['summary'])

    @property
    def notes(self) -> str:
        return '\n'.join([*self.document['remarks'], *self.document['notes']])

    def of(self, host: str) -> dict[str, Any]:
        """Return the row of a host's first compute node."""
        return next(one for one in self.document['hosts']
                    if one['host'] == host)

    def problems(self, expected: Round) -> list[str]:
        """List what differs from what a situation expects."""
        found = []
        if expected.host:
            row = self.of(expected.host)
            if row['kind'] != expected.kind:
                found.append('the kind is %s' % row['kind'])
            if expected.reason not in row['reason']:
                found.append('the reason is "%s"' % row['reason'])
            if expected.step not in row['step']:
                found.append('the step is "%s"' % row['step'])
        wanted = expected.summary or expected.reason
        if wanted not in self.summary:
            found.append('the summary lacks "%s"' % wanted)
        if expected.looked not in self.document['not_looked_at']:
            found.append('"%s" was looked at' % expected.looked)
        if expected.note not in self.notes:
            found.append('the notes are "%s"' % self.notes)
        return found


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


def situations(*plays: Play, scheduler: str = '', agents: bool = True
               ) -> list[Situation]:
    """Return the rows of functions: their names, and titles as docstrings."""
    return [Situation(play.__name__.replace('_', '-'), str(play.__doc__), play,
                      scheduler, agents) for play in plays]


def is_command(text: str) -> bool:
    """Check whether a text is a command."""
    return bool(_COMMAND.match(text))


def command(step: str) -> str:
    """Return the command in a step."""
    found = _COMMAND.search(step)
    if not found:
        raise Failed('no command in "%s"' % step)
    return found[0].strip()
