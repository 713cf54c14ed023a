# SPDX-License-Identifier: Apache-2.0
"""A load balancer in front of Galera nodes, like HAProxy with clustercheck.

Connections lead to the first node that is synced, and end when their node no
longer is. Run by path, never imported, like ``child.py``.
"""

import asyncio
from collections.abc import Sequence
import contextlib
import importlib
import sys

CHUNK = 65536
# Seconds between two checks of a node, and that each may take.
INTERVAL, TIMEOUT = 1, 2
# Checks after which a node is no longer used. A busy machine may miss one.
FALL = 2
SYNCED = '4'


class Target:
    """A port to connect to, and the connections to it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.failed = 0
        self.open: set[asyncio.StreamWriter] = set()

    async def watch(self) -> None:
        """Close the connections while it is not a synced node."""
        while True:
            synced = await asyncio.to_thread(is_synced, self.port)
            self.failed = 0 if synced else self.failed + 1
            if self.failed >= FALL:
                for writer in [*self.open]:
                    writer.transport.abort()
            await asyncio.sleep(INTERVAL)


async def serve(port: int, *ports: int) -> None:
    """Listen on a loopback port, and connect clients to a target."""
    targets = [Target(target) for target in ports]

    async def connected(reader: asyncio.StreamReader,
                        writer: asyncio.StreamWriter) -> None:
        # Sorting keeps the order of those in the same state.
        for target in sorted(targets, key=lambda each: each.failed >= FALL):
            with contextlib.suppress(OSError):
                there = await asyncio.open_connection(
                    '127.0.0.1', target.port)
                break
        else:
            # Closest to refusing a connection that has already been accepted.
            writer.close()
            return
        both = {writer, there[1]}
        target.open |= both
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))
        target.open -= both

    server = await asyncio.start_server(connected, '127.0.0.1', port)
    async with server:
        await asyncio.gather(*(target.watch() for target in targets))


async def copy(reader: asyncio.StreamReader,
               writer: asyncio.StreamWriter) -> None:
    """Copy data until either side closes."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


def is_synced(port: int) -> bool:
    """Check whether a node is synced."""
    driver = importlib.import_module('pymysql')
    try:
        with contextlib.closing(driver.connect(
                host='127.0.0.1', port=port, user='root',
                connect_timeout=TIMEOUT, read_timeout=TIMEOUT,
                ssl_disabled=True)) as connection, \
                connection.cursor() as cursor:
            cursor.execute("SHOW STATUS LIKE 'wsrep_local_state'")
            found: Sequence[str] = cursor.fetchone() or ('', '')
    except driver.Error:
        return False
    return found[1] == SYNCED


if __name__ == '__main__':
    asyncio.run(serve(*map(int, sys.argv[1:])))
