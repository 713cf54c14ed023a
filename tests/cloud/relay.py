# SPDX-License-Identifier: Apache-2.0
"""A relay of TCP connections.

It acts as the wire between two services: when it is killed, connections are
refused and open connections are reset; while it is stopped by SIGSTOP, packets
are swallowed. Run by path, never imported, like ``child.py``.
"""

import asyncio
import contextlib
import sys

CHUNK = 65536


async def serve(port: int, target: int) -> None:
    """Listen on a loopback port, and connect clients to the target port."""
    async def connected(reader: asyncio.StreamReader,
                        writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection('127.0.0.1', target)
        except OSError:
            # Closest to refusing a connection that has already been accepted.
            writer.close()
            return
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))

    server = await asyncio.start_server(connected, '127.0.0.1', port)
    await server.serve_forever()


async def copy(reader: asyncio.StreamReader,
               writer: asyncio.StreamWriter) -> None:
    """Copy data until either side closes."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


if __name__ == '__main__':
    asyncio.run(serve(*map(int, sys.argv[1:])))
