# SPDX-License-Identifier: Apache-2.0
"""Every error that this package raises: *retry or give up*?

::

    MirrorError
    |-- Retriable                 the same call may succeed later
    |   |-- PlacementUnreachable  refused, DNS, TLS, keystone, discovery
    |   |-- DeadlineExceeded      no complete answer in time
    |   |-- NotAuthorized         401 or 403, also while credentials rotate
    |   |-- PlacementFailed       5xx, 429, or what placement never sends
    |   |-- MalformedAnswer       a body that is not what placement sends
    |   |-- GenerationConflict    somebody else changed the provider
    |   |-- CellUnavailable       a cell database did not answer
    |   |-- NovaUnavailable       nova's API database did not answer
    |   |-- JournalUnavailable    the journal could not be read or written
    |   |-- NotTried              placement has just failed: not asked again
    |   `-- Stopped               this process ends before it was done
    `-- Permanent                 somebody must change something first
        |-- ProviderNotFound      placement has no such provider (yet)
        |-- RequestRejected       placement refused the request
        |-- WrongPlacement        this placement has none of the providers
        |-- WrongNova             the journal belongs to another nova
        |-- RemovalsRefused       so many removals look like a damaged nova
        |-- UnknownName           nova has no such host or aggregate
        |-- MissingCredentials    nova.conf does not say how to reach it
        |-- InvalidConfiguration  an option has a value that cannot work
        `-- UnexpectedNova        nova's internals are not as we know them
"""


class MirrorError(Exception):
    """The root of the tree; its text is complete and fit for an operator."""


class Retriable(MirrorError):
    """The same call may succeed later."""


class PlacementUnreachable(Retriable):
    """No connection to placement or to keystone could be made."""


class DeadlineExceeded(Retriable):
    """Placement or keystone did not answer completely in time."""


class NotAuthorized(Retriable):
    """Keystone or placement refused the credentials of [placement]."""


class PlacementFailed(Retriable):
    """Placement, or a proxy before it, answered with an error of its own."""


class MalformedAnswer(Retriable):
    """An answer is not what placement sends: nothing can be read from it."""


class GenerationConflict(Retriable):
    """The provider changed since it was read: read it again, then write."""


class CellUnavailable(Retriable):
    """A cell database could not be read, so its compute nodes are unknown."""


class NovaUnavailable(Retriable):
    """Nova's API database could not be read."""


class JournalUnavailable(Retriable):
    """The journal could not be read or written."""


class NotTried(Retriable):
    """Placement has just failed, and is left alone for a while."""


class Stopped(Retriable):
    """This process was told to end before it came to this."""


class Permanent(MirrorError):
    """The same call fails until somebody changes something."""


class ProviderNotFound(Permanent):
    """Placement has no such provider; nova-compute may yet create it."""


class RequestRejected(Permanent):
    """Placement understood the request and refused it."""


class WrongPlacement(Permanent):
    """This placement has no provider of any compute node that nova has."""


class WrongNova(Permanent):
    """The journal belongs to another nova."""


class RemovalsRefused(Permanent):
    """A full sync would remove so much that nova's answer may be wrong."""


class UnknownName(Permanent):
    """Nova has no host, or no aggregate, of the name that was given."""


class MissingCredentials(Permanent):
    """The [placement] section does not say how to authenticate."""


class InvalidConfiguration(Permanent):
    """An option has a value that cannot work."""


class UnexpectedNova(Permanent):
    """Nova's internals are not as this release of the package knows them."""


STALE_ENDPOINT = (NotAuthorized, PlacementUnreachable, MalformedAnswer,
                  InvalidConfiguration)
"""After these the endpoint, the catalog or the token may be out of date, so
that the next call asks keystone."""

OUTAGE = (PlacementUnreachable, DeadlineExceeded, NotAuthorized)
"""After one of these the next request would fail in the same way."""
