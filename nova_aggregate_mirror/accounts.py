# SPDX-License-Identifier: Apache-2.0
"""Names of users, as this host has them."""

import pwd


def user(number: int) -> str:
    """Return the name of a user, or the number of one without a name."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return '%d' % number
