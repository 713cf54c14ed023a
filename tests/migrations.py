# SPDX-License-Identifier: Apache-2.0
"""Migrations in processes of their own, interrupted or concurrent."""

from collections import abc
import os
import signal
from typing import Any

from oslo_config import cfg
import sqlalchemy as sa

from nova_aggregate_mirror.journal.db import engine
from nova_aggregate_mirror.journal.db import existing
from tests import patience
from tests import processes

READS = ('DESCRIBE', 'PRAGMA', 'SELECT', 'SET', 'SHOW')
TIMEOUT = patience.seconds(300)


def killed(conf: cfg.ConfigOpts, number: int) -> bool:
    """Kill a migration after a number of writes, if it has so many."""
    def work() -> None:
        left = number

        def count() -> None:
            nonlocal left
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

        _on_write('after_cursor_execute', count)
        existing.migrate(conf)

    return processes.killed_inside(work)


def at_once(confs: abc.Sequence[cfg.ConfigOpts]) -> None:
    """Migrate in several processes, all of which find no table."""
    barrier = processes.barrier(len(confs))

    def work(number: int) -> None:
        first = True

        def wait() -> None:
            nonlocal first
            if first:
                first = False
                barrier.wait(TIMEOUT)

        if existing.sqlite_file(confs[number]) is None:
            _on_write('before_cursor_execute', wait)
        existing.migrate(confs[number])
        engine.Database(confs[number]).prepare(migrates=False)

    processes.at_once(len(confs), work)


def _on_write(event: str, action: abc.Callable[[], None]) -> None:
    """Call the action at each statement of this process that writes."""
    def see(*arguments: Any) -> None:
        if not arguments[2].lstrip().upper().startswith(READS):
            action()

    sa.event.listen(sa.engine.Engine, event, see)
