# SPDX-License-Identifier: Apache-2.0
"""Configuration files that the user of a command may not read."""

from collections import abc
import os
import pathlib
import pwd

from nova_aggregate_mirror import accounts
from nova_aggregate_mirror import exceptions


def check(paths: abc.Iterable[str | pathlib.Path], program: str) -> None:
    """Check that the user may read these files and directories.

    What does not exist is not checked.

    :raises InvalidConfiguration: advises to run the program by sudo
    """
    # The user may not enter the directory that a symbolic link leads to.
    for path in map(pathlib.Path, map(os.path.realpath, paths)):
        for folder in reversed(path.parents):
            _check(folder, os.X_OK, program)
        right = os.R_OK | (os.X_OK if os.path.isdir(path) else 0)
        _check(path, right, program)


def _check(path: pathlib.Path, right: int, program: str) -> None:
    if os.path.exists(path) and not os.access(path, right, effective_ids=True):
        status = path.stat()
        raise exceptions.InvalidConfiguration(
            'user %s may not read %s, which belongs to user %s and group %s'
            % (accounts.user(os.geteuid()), path,
               accounts.user(status.st_uid), accounts.group(status.st_gid)),
            step='%s %s ...' % (_sudo(status), program))


def _sudo(status: os.stat_result) -> str:
    """Return the sudo command for a user or group that may read a file."""
    if status.st_uid and status.st_mode & 0o400:
        return 'sudo -u %s' % accounts.user(status.st_uid, accounts.SUDO)
    if status.st_gid and status.st_mode & 0o040:
        # A service's user and group have the same name.
        name = accounts.group(status.st_gid, accounts.SUDO)
        try:
            return 'sudo -u %s' % pwd.getpwnam(name).pw_name
        except KeyError:
            return 'sudo -g %s' % name
    return 'sudo'
