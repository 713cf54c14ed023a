# SPDX-License-Identifier: Apache-2.0
"""Ports and URLs of the loopback interface."""

from collections import abc
import contextlib
import random
import socket

import requests

from tests import patience

TIMEOUT = patience.seconds(10)


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


def named_ports(names: abc.Collection[str]) -> dict[str, int]:
    """Find a free port for each name."""
    return dict(zip(names, free_ports(len(names))))


def session() -> requests.Session:
    """Return an HTTP session without the proxy settings of the machine."""
    http = requests.Session()
    http.trust_env = False
    return http


def answers(url: str) -> bool:
    """Check whether a URL gives any answer other than a server error."""
    try:
        with session() as http:
            return http.get(url, timeout=TIMEOUT).status_code < 500
    except requests.RequestException:
        return False


def listens(port: int) -> bool:
    """Check whether a port accepts connections."""
    with contextlib.suppress(OSError), socket.create_connection(
            ('127.0.0.1', port), TIMEOUT):
        return True
    return False
