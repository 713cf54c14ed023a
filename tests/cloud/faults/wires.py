# SPDX-License-Identifier: Apache-2.0
"""Relays in front of the parties of a cloud, run by a thread."""

import asyncio
from collections import abc
import threading
from typing import Any
from typing import Self

from tests.cloud import loopback
from tests.cloud import relay

# Less than the shortest answer of any party.
FIRST_BYTES = 8


class Wires:
    """The thread that runs all relays of this process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name='relays', daemon=True)
        self._all: list[Wire] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_details: object) -> None:
        for wire in self._all:
            # Servers end their sessions when connections are closed.
            wire.fail('refuses')
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def to(self, target: int) -> 'Wire':
        """Return a wire to a port of the loopback interface."""
        port, = loopback.free_ports(1)
        self._all.append(Wire(self, port, target))
        return self._all[-1]

    def run(self, work: abc.Coroutine[Any, Any, None]) -> None:
        """Run a coroutine of a relay, and wait until it has ended."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result()


class Wire:
    """The connections to one party, which can fail."""

    def __init__(self, wires: Wires, port: int, target: int) -> None:
        self.port = port
        self._wires = wires
        self._relay = relay.Relay(port, target)
        self.forward()

    @property
    def accepted(self) -> int:
        """Count the connections so far."""
        return self._relay.accepted

    def forward(self) -> None:
        """Deliver everything, also what was held."""
        self._wires.run(self._relay.forward())

    def fail(self, kind: str) -> None:
        """Fail in a way.

        :param kind: ``refuses`` resets open connections, too; ``silent``
            accepts data, but delivers nothing; ``middle`` delivers only the
            first bytes of the next answer
        """
        limits = (None, FIRST_BYTES) if kind == 'middle' else (0, 0)
        self._wires.run(self._relay.refuse() if kind == 'refuses'
                        else self._relay.truncate(*limits))
