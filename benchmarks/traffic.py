# SPDX-License-Identifier: Apache-2.0
"""Requests to placement, from its log."""

import pathlib
import re
import typing

# Without the documents of versions, which clients read once.
_LOGGED = re.compile(
    r'placement\.requestlog .*?"([A-Z]+) (/[^ "?][^ "]*)" .* '
    r'microversion: (\S+)')


class Request(typing.NamedTuple):
    """A request that placement has answered."""

    method: str
    path: str
    """With its query, without the path of the endpoint."""
    version: str


class Traffic:
    """Reader of the requests since the previous call."""

    def __init__(self, log: str) -> None:
        self._log = pathlib.Path(log)
        self._read = 0
        self.since()

    def since(self) -> list[Request]:
        """Return the requests since the previous call or the start."""
        with open(self._log, 'rb') as stream:
            stream.seek(self._read)
            new = stream.read()
        self._read += len(new)
        return [Request(*found) for found in _LOGGED.findall(new.decode())]
