# SPDX-License-Identifier: Apache-2.0
"""Configuration files that the user of a command may not read."""

from collections import abc
import contextlib
import grp
import os
import pathlib
import pwd

from nova_aggregate_mirror import accounts
from nova_aggregate_mirror import exceptions

SUDO = "'#%d'"
"""Number of a user or group for sudo, quoted for a shell."""


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
        status, reader = path.stat(), accounts.user(os.geteuid())
        raise exceptions.InvalidConfiguration(
            'user %s may not read %s, which belongs to user %s and group %s'
            % (reader, path, accounts.user(status.st_uid),
               _group(status.st_gid)),
            step=_step(status, right, program))


def _step(status: os.stat_result, right: int, program: str) -> str:
    """Return the command of a user who may read a file, or can be let to.

    Root reads each file, but leaves files that nova's user cannot use.
    """
    owner, group = (status.st_mode >> bits & right == right for bits in (6, 3))
    if status.st_uid and owner:
        return 'sudo -u %s %s ...' % (
            accounts.user(status.st_uid, SUDO), program)
    if status.st_gid and group:
        # A service's user and group have the same name.
        name = _group(status.st_gid, SUDO)
        with contextlib.suppress(KeyError):
            return 'sudo -u %s %s ...' % (pwd.getpwnam(name).pw_name, program)
        return 'sudo -g %s %s ...' % (name, program)
    return 'let the user of nova-api read it, and run the program as that user'


def _group(number: int, unnamed: str = accounts.NUMBER) -> str:
    """Return the name of a group; see ``accounts.user``."""
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return unnamed % number
