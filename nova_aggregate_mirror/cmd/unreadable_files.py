# SPDX-License-Identifier: Apache-2.0
"""Configuration files that the user of a command may not read."""

from collections import abc
import os
import pathlib

from nova_aggregate_mirror import accounts
from nova_aggregate_mirror import exceptions


def check(paths: abc.Iterable[str | pathlib.Path], program: str) -> None:
    """Check that the user may read these files and directories.

    What does not exist is not checked.

    :raises InvalidConfiguration: one may not be read
    """
    # The user may not enter the directory that a symbolic link leads to.
    for path in map(pathlib.Path, map(os.path.realpath, paths)):
        for folder in reversed(path.parents):
            _check(folder, os.X_OK, program)
        right = os.R_OK | (os.X_OK if os.path.isdir(path) else 0)
        _check(path, right, program)


def _check(path: pathlib.Path, right: int, program: str) -> None:
    if os.path.exists(path) and not os.access(path, right, effective_ids=True):
        # Root reads each file, but leaves files that nova's user cannot use.
        raise exceptions.InvalidConfiguration(
            'user %s may not read %s, which belongs to user %s' % (
                accounts.user(os.geteuid()), path,
                accounts.user(path.stat().st_uid)),
            step='run the program as the user of nova-api, such as with '
                 '"sudo -u nova %s ..."' % program)
