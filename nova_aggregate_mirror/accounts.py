# SPDX-License-Identifier: Apache-2.0
"""Names of users and groups, as this host has them."""

import grp
import pwd

NUMBER = '%d'
SUDO = "'#%d'"
"""Number of a user or group for sudo, quoted for a shell."""


def user(number: int, unnamed: str = NUMBER) -> str:
    """Return the name of a user.

    :param unnamed: form of the number of a user without a name
    """
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return unnamed % number


def group(number: int, unnamed: str = NUMBER) -> str:
    """Return the name of a group; see ``user``."""
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return unnamed % number
