# SPDX-License-Identifier: Apache-2.0
"""A small file system, which tests can fill."""

import contextlib
import pathlib
import subprocess

import fixtures
import testtools


class SmallDisk(fixtures.Fixture):
    """A file system of one MiB."""

    def __init__(self, test: testtools.TestCase) -> None:
        self._test = test

    def _setUp(self) -> None:
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        try:
            subprocess.run(
                ['mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', self.path],
                check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            self._test.skipTest('this process may not mount a file system')
        # Lazily, because a process that is killed may still use it.
        self.addCleanup(subprocess.run, ['umount', '-l', self.path],
                        check=True)

    def fill(self) -> None:
        with contextlib.suppress(OSError), \
                (self.path / 'other').open('wb', buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def clear(self) -> None:
        (self.path / 'other').unlink()
