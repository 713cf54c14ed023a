# SPDX-License-Identifier: Apache-2.0
"""Nova-apis and agents, forked from one process that has imported them."""

import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
from typing import Self

import psutil

from tests.cloud import processes
from tests.cloud import programs
from tests.cloud import services


class Template:
    """The process from which others are forked; they end with it.

    :param log: of its own output
    """

    def __init__(self, log: str) -> None:
        self._mutex = threading.Lock()
        self._log = log
        # The process exits when this side of the socket is closed.
        here, there = socket.socketpair()
        with there, open(log, 'ab') as output:
            self._process = subprocess.Popen(
                programs.script('outages/template.py'), stdin=there,
                stdout=output, stderr=output, start_new_session=True,
                env={**processes.clean_environment(), **services.NATIVE})
        self._requests = here.makefile('w')
        self._answers = here.makefile('r')

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_details: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def fork(self, task: str, arguments: list[str],
             environment: dict[str, str], log: str) -> int:
        """Fork a process for a task; return its process ID.

        :raises CloudError: when the template has died
        """
        with self._mutex:
            self._requests.write(json.dumps(
                [task, arguments, environment, log]) + '\n')
            self._requests.flush()
            answer = self._answers.readline()
        if not answer:
            raise processes.CloudError(
                'the process that forks others has died; '
                + processes.tail(self._log))
        return int(answer)


@dataclasses.dataclass
class Forked(processes.Process):
    """A process that is forked from the template.

    :param argv: the task of the template, and its arguments
    """

    template: Template | None = None

    def start(self) -> None:
        """Start it; its output is appended to its log."""
        assert self.template is not None
        pathlib.Path(self.log).touch(mode=0o600)
        self.pid = self.template.fork(
            self.argv[0], self.argv[1:], self.environment, self.log)
        self.created = psutil.Process(self.pid).create_time()
