# SPDX-License-Identifier: Apache-2.0
"""Processes that are forked from one that has imported their modules."""

from collections import abc
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
from typing import Any

import psutil

from tests.cloud import processes


class Forker:
    """A process that forks another one for each request."""

    def __init__(self, argv: abc.Sequence[str], timeout: float | None = None,
                 **options: Any) -> None:
        self._mutex = threading.Lock()
        # The process ends when this end of the socket is closed.
        here, there = socket.socketpair()
        here.settimeout(timeout)
        with there:
            self._process = subprocess.Popen(
                argv, stdin=there, start_new_session=True, **options)
        self._requests = here.makefile('w')
        self._answers = here.makefile('r')

    def ask(self, *request: Any) -> str:
        """Send a request; return the answer, or '' if the process has died."""
        with self._mutex:
            self._requests.write(json.dumps(request) + '\n')
            self._requests.flush()
            return self._answers.readline()

    def close(self) -> None:
        """Kill the process, and a command that runs."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@dataclasses.dataclass
class Forked(processes.Process):
    """A process that is forked from a template."""

    template: Forker | None = None

    def start(self) -> None:
        """Start it; its output is appended to its log."""
        assert self.template is not None
        pathlib.Path(self.log).touch(mode=0o600)
        answer = self.template.ask(self.argv, self.environment, self.log)
        if not answer:
            raise processes.CloudError(
                'the process that forks others has died; see template.log')
        self.pid = int(answer)
        self.created = psutil.Process(self.pid).create_time()
