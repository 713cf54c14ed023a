# SPDX-License-Identifier: Apache-2.0
"""Hands the bytes of TCP connections on, for as long as it lives.

It is the wire between two services: without it connections are refused and
those that were open are reset; while it is stopped by SIGSTOP packets are
swallowed. Run by path, never imported, as ``child.py`` is.
"""

import asyncio
import contextlib
import sys

CHUNK = 65536


async def serve(port: int, target: int) -> None:
    """Listen on one port of the loopback interface, connect to the other."""
    async def connected(reader: asyncio.StreamReader,
                        writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection('127.0.0.1', target)
        except OSError:
            # As near to a refused connection as who has accepted it gets.
            writer.close()
            return
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))

    server = await asyncio.start_server(connected, '127.0.0.1', port)
    await server.serve_forever()


async def copy(reader: asyncio.StreamReader,
               writer: asyncio.StreamWriter) -> None:
    """Hand everything on until either side ends."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


if __name__ == '__main__':
    asyncio.run(serve(*map(int, sys.argv[1:])))
