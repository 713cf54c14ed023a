# SPDX-License-Identifier: Apache-2.0
"""UUIDs of compute nodes and resource providers, as placement writes them."""

import uuid


def canonical(text: str) -> str:
    """Return the spelling in which placement stores a provider's UUID.

    Nova keeps the spelling that it was given, for example in upper case.
    Aggregate UUIDs are compared as they are: placement stores any spelling.
    """
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return text
