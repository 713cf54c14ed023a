# SPDX-License-Identifier: Apache-2.0
"""The reports of nova-compute: what its host has, and which servers."""

from collections import abc
import json
import re
from typing import Any
from typing import Self

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


class Reports:
    """Nova-compute of some hosts, which reports every few seconds meanwhile.

    By default it does so once a minute, and sends the list of its servers
    every two. Until then, nova-scheduler takes a server that was migrated live
    for one of the host that it has left, and the work of a migration for
    unfinished.
    """

    def __init__(self, running: cloud.Cloud, names: abc.Sequence[str]) -> None:
        self._cloud = running
        self._names = names

    def __enter__(self) -> Self:
        self._configure(_OFTEN)
        return self

    def __exit__(self, *_exception: object) -> None:
        self._configure('')

    def _configure(self, options: str) -> None:
        """Restart nova-compute with further options."""
        for name in self._names:
            hosts.write_options(self._cloud, name, options)
        self._cloud.restart(*self._names)

    def wait(self, at: scene.Scene, *names: str) -> None:
        """Wait until the hosts have reported what they have now."""
        lines = processes.NewLines(self._cloud.process('scheduler').log)

        def reported() -> bool:
            listed = set(_LIST.findall(lines.read()))
            return listed.issuperset(names) and all(
                self._is_exact(at, name) for name in names)

        at.wait_until(reported, '%s have reported' % ', '.join(names))

    def _is_exact(self, at: scene.Scene, name: str) -> bool:
        """Compare a host's row and allocations with its servers."""
        servers = self._read(_SERVERS, name)
        [node] = self._read(_NODE, name)
        stats = json.loads(node.stats or '{}')
        memory = sum(server.memory_mb for server in servers)
        used = sum(server.vcpus for server in servers)
        return (
            node.memory_mb_used == RESERVED_MB + memory
            and node.vcpus_used == used
            and int(stats.get('num_instances', 0)) == len(servers)
            and not int(stats.get('io_workload', 0))
            and hosts.consumers(at, node.uuid) == {
                server.uuid for server in servers})

    def _read(self, statement: str, name: str) -> list[Any]:
        return sql.execute(
            self._cloud.config.database_url('nova'), statement, host=name)
