# SPDX-License-Identifier: Apache-2.0
"""Requests to placement and keystone by kind, counted from their logs."""

import collections
from collections.abc import Iterable
import pathlib
import re

PLACEMENT = ('GET providers', 'GET member_of', 'GET aggregates',
             'PUT aggregates', 'other')
"""Kinds of requests to placement, without discovery."""
TOKEN = 'token'
DISCOVERY = 'discovery'

_LOGGED = re.compile(r'placement\.requestlog .*?"([A-Z]+) ([^ "]+)"')
_ASKED = re.compile(r'^([A-Z]+) (/\S*)$')


def placement_kind(method: str, path: str) -> str:
    """Return the kind of a request to placement."""
    path, _, query = path.partition('?')
    if path in ('', '/'):
        return DISCOVERY
    if method == 'GET' and path == '/resource_providers':
        return 'GET member_of' if 'member_of=' in query else 'GET providers'
    kind = method + ' aggregates'
    if path.endswith('/aggregates') and kind in PLACEMENT:
        return kind
    return 'other'


def keystone_kind(method: str, path: str) -> str | None:
    """Return the kind of a request to keystone; None if not by a client."""
    if path.endswith('/auth/tokens'):
        # The GET is placement's validation of a new token.
        return TOKEN if method == 'POST' else None
    return DISCOVERY


def count(placement: Iterable[str], keystone: Iterable[str]
          ) -> dict[str, int]:
    """Count the requests in lines of both logs, including kinds with 0."""
    found = collections.Counter({
        kind: 0 for kind in (*PLACEMENT, TOKEN, DISCOVERY)})
    for line in placement:
        if request := _LOGGED.search(line):
            found[placement_kind(*request.groups())] += 1
    for line in keystone:
        if request := _ASKED.match(line):
            kind = keystone_kind(*request.groups())
            found.update([kind] if kind else [])
    return dict(found)


class Traffic:
    """Counter of the requests since the previous call."""

    def __init__(self, placement: str, keystone: str) -> None:
        """Create a counter.

        :param placement: the path of placement's log
        :param keystone: the path of keystone's log
        """
        self._logs = [pathlib.Path(placement), pathlib.Path(keystone)]
        self._read = [0, 0]
        self.since()

    def since(self) -> dict[str, int]:
        """Count the requests since the previous call or the start."""
        lines = []
        for number, log in enumerate(self._logs):
            with open(log, 'rb') as stream:
                stream.seek(self._read[number])
                new = stream.read()
            self._read[number] += len(new)
            lines.append(new.decode(errors='replace').splitlines())
        return count(*lines)
