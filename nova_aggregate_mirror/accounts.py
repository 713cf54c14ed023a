# SPDX-License-Identifier: Apache-2.0
"""Names of users, as this host has them."""

import pwd

NUMBER = '%d'


def user(number: int, unnamed: str = NUMBER) -> str:
    """Return the name of a user.

    :param unnamed: form of the number of a user without a name
    """
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return unnamed % number
