# SPDX-License-Identifier: Apache-2.0
"""Runs of an operator's commands in a cloud, with their costs."""

import json
import pathlib
import sys
from typing import Any

from benchmarks import figures
from benchmarks import floor
from tests.cloud import cloud
from tests.cloud import processes
from tests.cloud import programs
from tests import patience

STOCK = 'nova-manage'
OURS = 'nova-aggregate-mirror-manage'
TIMEOUT = patience.seconds(3600)
CHECKOUT = pathlib.Path(__file__).resolve().parent.parent


class Commands:
    """An operator's runner of commands; it creates the journal's tables."""

    def __init__(self, running: cloud.Cloud) -> None:
        path = running.config.path
        self._nova_conf = running.config.nova_conf
        self._placement = running.process('placement')
        self._result = path('measured.json')
        self._log = path('log/measured.log')
        self.traffic = floor.Traffic(path('log/placement.log'))
        status, _out, err = running.run(
            OURS, '--config-file', self._nova_conf, 'db', 'sync')
        if status:
            raise processes.CloudError(err)

    def sync(self, command: str) -> figures.Run:
        """Run ``placement sync_aggregates`` of the given command."""
        return self.run(command, self._nova_conf, 'placement',
                        'sync_aggregates')[0]

    def read(self, nova_conf: str, *argv: str, status: int = 0
             ) -> tuple[figures.Run, dict[str, Any]]:
        """Run a command of this package; return its document, too."""
        run, output = self.run(
            OURS, nova_conf, *argv, '--format', 'json', status=status)
        return run, json.loads(output[output.index('{'):])

    def run(self, command: str, nova_conf: str, *argv: str, status: int = 0
            ) -> tuple[figures.Run, str]:
        """Run a command with a configuration file; return its output, too."""
        program = pathlib.Path(sys.executable).with_name(command)
        process = processes.Process(
            command, programs.child(
                'measure', self._result, str(program), '--config-file',
                nova_conf, *argv), self._log, {}, tied=True)
        log = pathlib.Path(self._log)
        log.unlink(missing_ok=True)
        self.traffic.since()
        before = self._placement.cpu_seconds()
        try:
            process.start()
            process.finish(TIMEOUT)
        finally:
            process.kill()
        took = json.loads(pathlib.Path(self._result).read_text())
        output = log.read_text(errors='replace')
        ended = took.pop('status')
        if ended != status:
            raise processes.CloudError(
                '%s ended with status %d; the end of its output:\n%s'
                % (command, ended, output[-2000:]))
        return figures.Run(
            placement_requests=len(self.traffic.since()),
            placement_cpu_seconds=self._placement.cpu_seconds() - before,
            **took), output
