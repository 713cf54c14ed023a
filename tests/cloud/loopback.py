# SPDX-License-Identifier: Apache-2.0
"""Ports and URLs of the loopback interface."""

import contextlib
import random
import socket
import urllib.error
import urllib.request

TIMEOUT = 10


def free_ports(count: int) -> list[int]:
    """Find free ports of the loopback interface.

    They lie below the range of ephemeral ports: otherwise a client could
    occupy the port of a stopped service.
    """
    ports: list[int] = []
    candidates = random.sample(range(20000, 32000), 1000)
    while len(ports) < count and candidates:
        port = candidates.pop()
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(('127.0.0.1', port))
            ports.append(port)
    if len(ports) < count:
        raise OSError('no free port on 127.0.0.1 between 20000 and 32000')
    return ports


def answers(url: str) -> bool:
    """Check whether a URL gives any answer other than a server error."""
    # The machine's proxy settings do not apply to the loopback interface.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT):
            return True
    except urllib.error.HTTPError as exc:
        exc.close()
        return exc.code < 500
    except OSError:
        return False


def listens(port: int) -> bool:
    """Check whether a port accepts connections."""
    with contextlib.suppress(OSError), socket.create_connection(
            ('127.0.0.1', port), TIMEOUT):
        return True
    return False
