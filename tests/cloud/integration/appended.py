# SPDX-License-Identifier: Apache-2.0
"""Options of some of the cloud's processes, until the test ends."""

from collections import abc
import pathlib

import fixtures

from tests.cloud import cloud


class Appended(fixtures.Fixture):
    """Processes restarted with options at the end of their configuration.

    :param files: name of the process to name of its configuration file
    :param text: sections and options that the files do not have
    """

    def __init__(self, running: cloud.Cloud, files: abc.Mapping[str, str],
                 text: str) -> None:
        super().__init__()
        self._cloud = running
        self._files = files
        self._text = text

    def _setUp(self) -> None:
        # Cleanups run in reverse order: this restarts with the old files.
        self.addCleanup(self._restart)
        for file in self._files.values():
            path = pathlib.Path(self._cloud.config.path(file))
            before = path.read_text()
            self.addCleanup(path.write_text, before)
            path.write_text(before + self._text)
        self._restart()

    def _restart(self) -> None:
        self._cloud.kill(*self._files)
        self._cloud.start(*self._files)
