# SPDX-License-Identifier: Apache-2.0
"""A relay of TCP connections that can be cut, held or truncated.

It acts as the wire between two services. As a process, run by path, it only
forwards: when it is killed, connections are refused and open connections are
reset; while it is stopped by SIGSTOP, packets are swallowed.
"""

import asyncio
import contextlib
import re
import socket
import struct
import sys

CHUNK = 65536
# Closes a socket with a reset.
RESET = struct.pack('ii', 1, 0)
REQUEST = re.compile(rb'^([A-Z]+ /\S*) HTTP/1\.1\r$', re.MULTILINE)


class Relay:
    """A loopback port whose connections continue to another port.

    ``accepted`` counts its connections.

    :param log: a file for the method and path of each HTTP request, or ''
    """

    def __init__(self, port: int, target: int, log: str = '') -> None:
        self.accepted = 0
        self._log = log
        self._port = port
        self._target = target
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Event()
        self._requests: int | None = None
        self._answers: int | None = None

    async def forward(self) -> None:
        """Listen, and deliver everything, also what was held."""
        self._limit(None, None)
        if self._server is None:
            self._server = await asyncio.start_server(
                self._connected, '127.0.0.1', self._port)

    async def refuse(self) -> None:
        """Refuse connections, and reset those that are open."""
        self._limit(None, None)
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            _reset(writer)

    async def truncate(self, requests: int | None, answers: int | None
                       ) -> None:
        """Deliver only so many bytes of requests and of their answers."""
        self._limit(requests, answers)

    def _limit(self, requests: int | None, answers: int | None) -> None:
        self._requests, self._answers = requests, answers
        self._changed.set()
        # Each mode has an event of its own: what waits for the previous mode
        # to change must not wait again.
        self._changed = asyncio.Event()

    async def _connected(self, reader: asyncio.StreamReader,
                         writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        writers = {writer}
        self._writers |= writers
        try:
            there = await asyncio.open_connection('127.0.0.1', self._target)
            writers.add(there[1])
            self._writers |= writers
            if self._server is None:
                # Meanwhile, connections are refused.
                _reset(there[1])
            await asyncio.gather(self._copy(reader, there[1], is_answer=False),
                                 self._copy(there[0], writer, is_answer=True))
        except OSError:
            # Closest to refusing a connection that has already been accepted.
            writer.close()
        finally:
            self._writers -= writers

    async def _copy(self, reader: asyncio.StreamReader,
                    writer: asyncio.StreamWriter, is_answer: bool) -> None:
        """Copy data until either side closes."""
        mode, passed = self._changed, 0
        with contextlib.suppress(OSError):
            data = b' '
            while data:
                data = await reader.read(CHUNK)
                if self._log and not is_answer:
                    with open(self._log, 'ab') as log:
                        log.writelines(request + b'\n' for request
                                       in REQUEST.findall(data))
                # The end of the data is held like the data.
                left = data or b'.'
                while left:
                    if mode is not self._changed:
                        mode, passed = self._changed, 0
                    limit = self._answers if is_answer else self._requests
                    now = left if limit is None else left[:limit - passed]
                    if not now:
                        await mode.wait()
                        continue
                    left = left[len(now):]
                    passed += len(now)
                    if data:
                        writer.write(now)
                        await writer.drain()
        writer.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection with a reset."""
    # It may be closed already.
    with contextlib.suppress(OSError):
        writer.get_extra_info('socket').setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


async def main(port: str, target: str, log: str = '') -> None:
    """Forward connections until this process is killed."""
    await Relay(int(port), int(target), log).forward()
    await asyncio.Event().wait()


if __name__ == '__main__':
    asyncio.run(main(*sys.argv[1:]))
