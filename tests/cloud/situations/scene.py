# SPDX-License-Identifier: Apache-2.0
"""A situation's access to the cloud, and the clean-up of what it created."""

from collections import abc
import shlex
from typing import Any
import uuid

from tests.cloud import cloud
from tests.cloud.situations import schedulers
from tests import patience

MANAGE = 'nova-aggregate-mirror-manage'
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
