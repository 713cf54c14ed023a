# SPDX-License-Identifier: Apache-2.0
"""UUIDs of compute nodes, resource providers and aggregates."""

import functools
import uuid

from oslo_utils import uuidutils


def canonical(text: str) -> str:
    """Return the spelling in which placement stores a provider's UUID.

    Nova keeps the spelling that it was given, for example in upper case.
    Aggregate UUIDs are compared as they are: placement stores any spelling.
    """
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return text


# More than a cloud has, so that each sync finds the results of the last one.
@functools.lru_cache(maxsize=1 << 15)
def is_uuid(text: str | None) -> bool:
    """Check whether a text of nova's databases is a UUID, in any spelling.

    Nova stores and returns any other text as well. Placement refuses each
    request that contains one, whatever else is in it.
    """
    return uuidutils.is_uuid_like(text)
