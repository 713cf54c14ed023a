# SPDX-License-Identifier: Apache-2.0
"""A situation's access to the cloud, and the clean-up of what it created."""

from collections.abc import Callable
from collections.abc import Sequence
import contextlib
import functools
import shlex
import time
from typing import Any
import uuid

from tests.cloud import cloud
from tests.cloud.situations import schedulers

MANAGE = 'nova-aggregate-mirror-manage'
PATIENCE = 120
POLL = 0.5


class Failed(Exception):
    """A situation does not take its expected course; the text says why."""


class Scene:
    """The cloud during a situation; leave it to restore the cloud.

    :param used: nova-scheduler, which a situation may restart
    """

    def __init__(self, running: cloud.Cloud, used: schedulers.Schedulers
                 ) -> None:
        self.cloud = running
        self.schedulers = used
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> 'Scene':
        self._stack.__enter__()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    @functools.cached_property
    def nova(self) -> Any:
        """The administrator's adapter for nova-api."""
        return self.cloud.nova()

    @functools.cached_property
    def placement(self) -> Any:
        """The administrator's adapter for placement."""
        return self.cloud.placement()

    def later(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function when the situation ends, in reverse order."""
        self._stack.callback(function, *arguments)

    def enter(self, context: Any) -> Any:
        """Enter a context, such as a fixture, until the situation ends."""
        return self._stack.enter_context(context)

    def name(self, kind: str) -> str:
        """Return a name for something of this situation alone."""
        return '%s-%s' % (kind, uuid.uuid4().hex[:8])

    def wait_until(self, done: Callable[[], bool], what: str) -> None:
        """Wait for a result of other processes.

        :raises Failed: when it takes too long
        """
        deadline = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > deadline:
                raise Failed('%s: not within %s s' % (what, PATIENCE))
            time.sleep(POLL)

    def run(self, command: str | Sequence[str]) -> tuple[int, str, str]:
        """Run a command of an operator.

        The commands of this package get the configuration of nova-scheduler.

        :returns: its exit status, standard output and standard error
        """
        argv = shlex.split(command) if isinstance(command, str) else [*command]
        if argv[0] == MANAGE:
            files = [self.cloud.config.nova_conf, *self.schedulers.options]
            argv[1:1] = [word for each in files
                         for word in ('--config-file', each)]
        return self.cloud.run(*argv)

    def check(self, command: str | Sequence[str]) -> None:
        """Run a command that has to succeed.

        :raises Failed: when it does not
        """
        status, out, err = self.run(command)
        if status:
            raise Failed('%s exits with %d: %s' % (
                command, status, (out + err)[-500:]))
