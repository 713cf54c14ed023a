# SPDX-License-Identifier: Apache-2.0
"""The reports of nova-compute: what its host has, and which servers."""

from collections import abc
import contextlib
import json
import re

from tests.cloud import cloud
from tests.cloud import processes
from tests.cloud.situations import hosts
from tests.cloud.situations import scene
from tests.cloud import sql

RESERVED_MB = 512
_OFTEN = '''\
[DEFAULT]
update_resources_interval = 5
scheduler_instance_sync_interval = 4
'''
# Each line in which nova-scheduler logs the list of a host.
_LIST = re.compile(r"sync(?:ed instances from| for| request from an unknown)"
                   r" host '([^']+)'")
_SERVERS = '''
SELECT uuid, memory_mb, vcpus FROM instances
WHERE deleted = 0 AND host = :host
'''
_NODE = '''
SELECT uuid, memory_mb_used, vcpus_used, stats FROM compute_nodes
WHERE deleted = 0 AND host = :host
'''


@contextlib.contextmanager
def frequent(running: cloud.Cloud, names: abc.Sequence[str]
             ) -> abc.Iterator[None]:
    """Let nova-compute of some hosts report every few seconds meanwhile.

    By default it does so once a minute, and sends the list of its servers
    every two. Until then, nova-scheduler takes a server that was migrated live
    for one of the host that it has left, and the work of a migration for
    unfinished.
    """
    def restart(options: str) -> None:
        for name in names:
            hosts.write_options(running, name, options)
        running.restart(*names)

    restart(_OFTEN)
    try:
        yield
    finally:
        restart('')


def wait(at: scene.Scene, *names: str) -> None:
    """Wait until the hosts have reported what they have now."""
    lines = processes.NewLines(at.cloud.process('scheduler').log)

    def reported() -> bool:
        return set(_LIST.findall(lines.read())).issuperset(names) and all(
            _is_exact(at, name) for name in names)

    at.wait_until(reported, '%s have reported' % ', '.join(names))


def _is_exact(at: scene.Scene, name: str) -> bool:
    """Compare a host's row and allocations with its servers."""
    url = at.cloud.config.database_url('nova')
    servers = sql.execute(url, _SERVERS, host=name)
    [node] = sql.execute(url, _NODE, host=name)
    stats = json.loads(node.stats or '{}')
    memory = sum(server.memory_mb for server in servers)
    used = sum(server.vcpus for server in servers)
    return (node.memory_mb_used == RESERVED_MB + memory
            and node.vcpus_used == used
            and int(stats.get('num_instances', 0)) == len(servers)
            and not int(stats.get('io_workload', 0))
            and hosts.consumers(at, node.uuid) == {
                server.uuid for server in servers})
