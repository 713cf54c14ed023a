# SPDX-License-Identifier: Apache-2.0
"""Faults of a Galera node, and the end of a fault."""

from collections.abc import Callable
from collections.abc import Mapping
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
# Longer than evs.suspect_timeout.
SETTLES = 6


def wait_complete(process: processes.Process,
                  known: Mapping[str, processes.Process]) -> None:
    """If it is a Galera node, wait until the cluster is complete again.

    It has to stay so for a while: nodes exclude a node late, also after it
    continues, and the next fault must not meet an incomplete cluster.

    :param known: the processes of the cloud by name
    """
    if process.name not in cluster.NODES:
        return
    found = [cluster.node(known[name]) for name in cluster.NODES]
    last, since = '', 0.0

    def settled() -> bool:
        nonlocal last, since
        views = {node.view(len(found)) for node in found}
        view = views.pop() if len(views) == 1 else ''
        if view != last:
            last, since = view, time.monotonic()
        return bool(view) and time.monotonic() - since > SETTLES

    process.wait(settled, 'is not synced with all others')


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
