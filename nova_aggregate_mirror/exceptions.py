# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the package, either retriable or permanent.

Long because the tree, which says what each class is for, is drawn, too.

::

    MirrorError
    |-- Retriable                 the same call may succeed later
    |   |-- ServiceUnreachable    refused, DNS, TLS, keystone, discovery
    |   |-- DeadlineExceeded      no complete answer in time
    |   |   `-- OutOfTime         earlier requests have taken the time
    |   |-- NotAuthorized         401 or 403, also while credentials rotate
    |   |-- ServiceFailed         5xx, 429, or an unexpected status
    |   |-- MalformedAnswer       a body that the service does not send
    |   |-- GenerationConflict    the provider was changed concurrently
    |   |-- CellUnavailable       a cell database did not answer
    |   |-- NovaUnavailable       nova's API database did not answer
    |   |-- JournalUnavailable    the journal could not be read or written
    |   |   |-- JournalLocked     another session holds a lock of its database
    |   |   |-- JournalNotAsked   this process had no time or connection left
    |   |   `-- WrongDatabase     its database has other tables
    |   |-- NotTried              skipped after other failures
    |   `-- Stopped               the process was stopped before this call
    `-- Permanent                 the same call fails again
        |-- ProviderNotFound      placement has no such provider (yet)
        |-- RequestRejected       a service refused the request
        |-- WrongPlacement        this placement has none of the providers
        |-- WrongNova             the journal belongs to another nova
        |-- RemovalsRefused       the brake of a full sync
        |-- Contradiction         records of nova, or of placement, conflict
        |-- UnknownName           nothing has the given name
        |-- MissingCredentials    nova.conf has none for a service
        |-- InvalidConfiguration  an option, argument or file cannot be used
        `-- UnexpectedNova        nova's internals are not supported
"""

from collections import abc
import dataclasses
import re
from typing import Self

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import printable


@dataclasses.dataclass(frozen=True)
class Failure:
    """A failure as it was observed, without secrets.

    :param kind: stable name for programs, such as ``service_unreachable``
    :param observation: what the party did, such as "refused the connection";
        a whole sentence if there is no party
    :param party: a service with its address, a database or a cell
    :param occasion: the request or the action
    :param consequence: what follows for the mirror
    :param step: the one next step for an operator, if any is known
    """

    kind: str
    observation: str
    party: str = ''
    occasion: str = ''
    consequence: str = ''
    step: str = ''

    @property
    def key(self) -> tuple[str, str]:
        """Identity of a lasting failure, whose text may differ each time."""
        return self.kind, self.party

    def __str__(self) -> str:
        """Return the sentence; no other place makes one of the parts."""
        text = ' '.join(filter(None, (self.party, self.observation)))
        parts = ((' (%s)', self.occasion), ('; %s', self.consequence),
                 (': %s', self.step))
        for template, part in parts:
            text += template % part if part else ''
        # An observation may quote an answer of another service.
        return printable.line(text)


class MirrorError(Exception):
    """Root of the tree; parameters and text are those of ``Failure``.

    :param kind: by default the name of the class
    """

    is_outage = False  # The party failed, so that it fails every request.
    is_refusal = False  # The party refused the account.
    is_of_provider = True  # It may concern only the provider of the request.
    is_of_placement = True  # Placement, or the way to it, failed.
    is_unwritten = False  # It is known that the journal was not written.
    is_repeatable = False
    """Whether the answer came from something else than a working service, such
    as one backend of many: the same GET may be answered by another."""
    may_have_moved = True  # The service may have another address now.
    retry_after = 0.0  # Seconds to wait, as the service asks.
    cells = frozenset[str]()  # Names of the cells that are down.

    def __init__(self, observation: str, party: str = '', occasion: str = '',
                 consequence: str = '', step: str = '', kind: str = ''
                 ) -> None:
        super().__init__(observation)
        name = re.sub('(?<!^)(?=[A-Z])', '_', type(self).__name__).lower()
        self.failure = Failure(
            kind or name, observation, party, occasion, consequence, step)

    @classmethod
    def of(cls, cause: causes.Cause, party: causes.Party, occasion: str = ''
           ) -> Self:
        """Create the error for what a party did."""
        return cls(cause.phrase, party=party.name, occasion=occasion,
                   step=cause.step_for(party), kind=cause.kind)

    @classmethod
    def again(cls, failure: Failure) -> Self:
        """Create the error for a failure that was observed before."""
        error = cls(failure.observation)
        error.failure = failure
        return error

    def __str__(self) -> str:
        return str(self.failure)


class Retriable(MirrorError):
    """The same call may succeed later."""


class ServiceUnreachable(Retriable):
    is_outage = True


class DeadlineExceeded(Retriable):
    is_outage = True


class OutOfTime(DeadlineExceeded):
    may_have_moved = False


class NotAuthorized(Retriable):
    is_outage = True
    is_refusal = True


class ServiceFailed(Retriable):
    is_repeatable = True


class MalformedAnswer(Retriable):
    is_repeatable = True


class GenerationConflict(Retriable):
    """The provider changed since it was read; read it again, then write."""


class CellUnavailable(Retriable):
    is_of_provider = False

    @classmethod
    def of_any(cls, down: abc.Mapping[str, Failure]) -> 'CellUnavailable':
        """Create the error for what may be in any of these cells, by one."""
        error = cls.again(down[min(down)])
        error.cells = frozenset(down)
        return error


class NovaUnavailable(Retriable):
    is_of_placement = False
    is_of_provider = False


class JournalUnavailable(Retriable):
    is_of_placement = False
    is_of_provider = False


class JournalLocked(JournalUnavailable):
    is_unwritten = True  # Other rows may be free to be written.


class JournalNotAsked(JournalUnavailable):
    """This process had no time or connection left for the journal."""


class WrongDatabase(JournalUnavailable):
    """The journal's database has other tables than the journal's."""


class NotTried(Retriable):
    is_of_provider = False

    @classmethod
    def because_of(cls, error: MirrorError) -> MirrorError:
        """Return the error for what is skipped after an outage or a stop."""
        if isinstance(error, Stopped):
            return error
        failure = error.failure
        text = failure.observation
        if failure.party:
            text = 'was not asked again: it ' + text
        return cls(text, failure.party, failure.occasion, step=failure.step)


class Stopped(Retriable):
    is_of_provider = False


class Permanent(MirrorError):
    """The same call fails until its cause is fixed."""


class ProviderNotFound(Permanent):
    """Placement has no such provider; nova-compute may create it later."""


class RequestRejected(Permanent):
    """A service understood the request and refused it."""


class WrongPlacement(Permanent):
    """This placement has no provider of any compute node of nova."""


class WrongNova(Permanent):
    is_unwritten = True
    is_of_placement = False


class RemovalsRefused(Permanent):
    """The brake of a full sync: too much would be removed, or everything."""


class Contradiction(Permanent):
    """Records of one service contradict each other; none of them is obeyed."""


class UnknownName(Permanent):
    is_of_placement = False


class MissingCredentials(Permanent):
    options: abc.Sequence[str] = ()
    """The missing ones; of several alternatives, one."""
    is_of_placement = False


class InvalidConfiguration(Permanent):
    is_of_placement = False


class UnexpectedNova(Permanent):
    is_of_placement = False


def failure_of(call: abc.Callable[[], object],
               *expected: type[MirrorError]) -> MirrorError | None:
    """Call, and return the error that was raised; None if none was.

    To log the error: in an ``except`` block, oslo.log would append it again.

    :param expected: classes; by default any error of this package
    """
    try:
        call()
    except expected or MirrorError as exc:
        return exc
    return None
