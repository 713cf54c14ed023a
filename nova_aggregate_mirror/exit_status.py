# SPDX-License-Identifier: Apache-2.0
"""Exit statuses: the one table of what each means, and those of errors."""

from nova_aggregate_mirror import exceptions

OK = 0
NO_HOST = 1
NOT_READ = 2
NOT_UPDATED = 3
NOT_MAPPED = 4
NO_NODE = 5
NO_PROVIDER = 6
DRIFT = 7
REFUSED = 8
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143
COULD_NOT_RUN = 255
TEXTS = {
    OK: 'everything mirrored',
    NO_HOST: 'no host is left, or too few',
    NOT_READ: 'placement, or a provider in it, could not be read',
    NOT_UPDATED:
    'a provider could not be updated, or records of nova cannot be used',
    NOT_MAPPED: 'a host is not mapped to its cell',
    NO_NODE: 'a host has no compute node, or its cell did not answer',
    NO_PROVIDER: 'a compute node has no resource provider yet',
    DRIFT: 'placement differs from nova',
    REFUSED: 'refused without --force',
    INTERRUPTED: 'interrupted by Ctrl-C',
    TERMINATED: 'interrupted by SIGTERM',
    COULD_NOT_RUN:
    'a service, a database, an option or an argument could not be used'}


def _select(*statuses: int) -> dict[int, str]:
    always = OK, INTERRUPTED, TERMINATED, COULD_NOT_RUN
    return {status: TEXTS[status] for status in sorted({*always, *statuses})}


# What the exit statuses of each command mean.
COMPARISON = _select(
    NOT_READ, NOT_UPDATED, NOT_MAPPED, NO_NODE, NO_PROVIDER, DRIFT)
WAIT = COMPARISON | {REFUSED: 'nova-compute disabled its service itself'}
SYNC = _select(*COMPARISON, REFUSED)
LISTING = _select(NOT_READ, NO_NODE) | {
    OK: 'everything could be read', NO_NODE: 'a cell did not answer'}
JOURNAL = _select(REFUSED) | {OK: 'nothing was refused'}
EXPLANATION = _select(NO_HOST, NO_NODE) | {
    NO_NODE: 'a cell did not answer, whatever hosts are left',
    OK: 'a host is left; with --count N or --servers-of, for each server'}
AUDIT = _select(NO_NODE, DRIFT) | {
    OK: 'no server is on a host that contradicts its request',
    NO_NODE: 'a cell did not answer; its other servers are not audited',
    DRIFT: 'a server is on a host that contradicts its request'}


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
