# SPDX-License-Identifier: Apache-2.0
"""Number of requests to placement, counted from its log."""

import pathlib
import re

# Without the documents of versions, which clients read once.
_LOGGED = re.compile(rb'placement\.requestlog .*?"[A-Z]+ /[^ "?]')


class Traffic:
    """Counter of the requests since the previous call.

    :param log: path of placement's log
    """

    def __init__(self, log: str) -> None:
        self._log = pathlib.Path(log)
        self._read = 0
        self.since()

    def since(self) -> int:
        """Count the requests since the previous call or the start."""
        with open(self._log, 'rb') as stream:
            stream.seek(self._read)
            new = stream.read()
        self._read += len(new)
        return len(_LOGGED.findall(new))
