# SPDX-License-Identifier: Apache-2.0
"""Hooks that report each moment of a call, and wait until it may go on.

They run in nova-api, ``outer`` before and after all other hooks and ``inner``
directly around nova's method.
"""

import json
import os
import socket
import time
from typing import Any

SOCKET = 'OUTAGE_MOMENTS'


class _Hook:
    replaces_mirroring = False
    moments = '', ''

    def __init__(self, _conf: Any) -> None:
        """Do nothing: nova-api may fork."""

    def before(self, operation: Any) -> None:
        _report(self.moments[0], operation)

    def after(self, operation: Any, _kept: None) -> None:
        _report(self.moments[1], operation)


class Outer(_Hook):
    moments = 'begin', 'done'


class Inner(_Hook):
    moments = 'ready', 'returned'


def _report(moment: str, operation: Any) -> None:
    """Send a moment to the test, and wait for its answer."""
    report = {'moment': moment, 'method': operation.method,
              'at': time.monotonic()}
    with socket.socket(socket.AF_UNIX) as test:
        test.connect(os.environ[SOCKET])
        test.sendall(json.dumps(report).encode() + b'\n')
        test.recv(1)
