# SPDX-License-Identifier: Apache-2.0
"""Faults of a Galera node; they end when the node is synced again."""

from collections.abc import Callable
import shutil
import signal
import time

from tests.cloud import cluster
from tests.cloud import processes

Restart = Callable[[processes.Process], None]
"""Starts a process that does not run."""
Fault = Callable[[processes.Process, float, Restart], None]

# The others exclude a silent node after five seconds, so that about half of
# the faults last longer. All wait for it until then.
LONGER = 2


def kill(process: processes.Process, seconds: float, restart: Restart) -> None:
    """Kill a node; it gets what it has missed."""
    process.kill()
    time.sleep(seconds)
    restart(process)


def copy(process: processes.Process, seconds: float, restart: Restart) -> None:
    """Kill a node and delete its data; it gets a copy of another node's."""
    process.kill()
    for path in cluster.node(process).data.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    time.sleep(seconds)
    restart(process)


def stop(process: processes.Process, seconds: float, restart: Restart) -> None:
    """Stop a node in the middle of anything."""
    process.signal(signal.SIGSTOP)
    try:
        time.sleep(LONGER * seconds)
    finally:
        process.signal(signal.SIGCONT)


def separate(process: processes.Process, seconds: float, restart: Restart
             ) -> None:
    """Separate a node from the others, as a broken network does."""
    with cluster.node(process).isolated():
        time.sleep(LONGER * seconds)


def lag(process: processes.Process, seconds: float, restart: Restart) -> None:
    """Let a node apply nothing while it answers, as a backup does."""
    with cluster.node(process).lagging():
        time.sleep(LONGER * seconds)
