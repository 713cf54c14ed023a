# SPDX-License-Identifier: Apache-2.0
"""Exit statuses of the commands, and the mapping from errors in a result.

An error that ends a command on a nova host is always ``COULD_NOT_RUN``, except
for ``placement wait``.
"""

from nova_aggregate_mirror import exceptions

OK = 0
NOT_READ = 2
NOT_UPDATED = 3
NOT_MAPPED = 4
NO_NODE = 5
NO_PROVIDER = 6
DRIFT = 7
REFUSED = 8
INTERRUPTED = 130
BROKEN_PIPE = 141
"""The status that a shell reports for a program killed by SIGPIPE."""
TERMINATED = 143
COULD_NOT_RUN = 255


def of(error: exceptions.MirrorError, unwritten: bool = False) -> int:
    """Return the exit status for an error.

    :param unwritten: whether placement could be read but not written
    """
    if isinstance(error, exceptions.CellUnavailable):
        return NO_NODE
    if isinstance(error, exceptions.RemovalsRefused):
        return REFUSED
    if not error.is_of_placement:
        return COULD_NOT_RUN
    return NOT_UPDATED if unwritten else NOT_READ
